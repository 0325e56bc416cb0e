"""Topics: list, describe, create, change, delete, and make them match a declared list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin
from headrace.client.types import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    NewTopic,
    Outcome,
    ResourceType,
    TopicDescription,
)
from headrace.manager.limits import PAGE_ITEMS_MAX
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem, refusal
from headrace.manager.responses import respond
from headrace.model.errors import ErrorCode
from headrace.operations.amounts import count_text
from headrace.operations.topic_changes import carry_out, existing_topics
from headrace.operations.topic_details import PartitionDetails, TopicDetails, topic_details, topic_id_text
from headrace.operations.topic_plan import Action, PlanError, Step, parse_topics, plan

router = APIRouter(prefix="/v1/topics", tags=["topics"])
BROKER_DEFAULT = -1
INT32_MAX = 2**31 - 1
INT16_MAX = 2**15 - 1


@dataclass(frozen=True, slots=True)
class TopicSummary:
    name: str
    id: str
    partitions: int
    replication_factor: int
    internal: bool
    without_leader: int
    """Partitions without a leader."""


@dataclass(frozen=True, slots=True)
class TopicPage:
    topics: list[TopicSummary]
    total: int
    next: str | None
    """The `after` of the next page; null on the last one."""


@dataclass(frozen=True, slots=True)
class PartitionView:
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    eligible: list[int]
    start_offset: int
    end_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    name: str
    id: str
    internal: bool
    partitions: list[PartitionView]
    configs: dict[str, str | None]
    own_configs: dict[str, str]
    """The configs that the topic itself sets."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    action: str
    topic: str
    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    steps: list[PlannedStep]
    applied: bool


class TopicToCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=249, examples=["orders"])
    partitions: int | None = Field(None, ge=1, le=INT32_MAX)
    replication_factor: int | None = Field(None, ge=1, le=INT16_MAX)
    configs: dict[str, str] = Field(default_factory=dict, examples=[{"retention.ms": "86400000"}])


class TopicChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    partitions: int | None = Field(None, ge=1, le=INT32_MAX)
    configs: dict[str, str | None] = Field(default_factory=dict)
    """A value of null resets the config to its default."""


DryRun = Annotated[bool, Query(description="Let the brokers validate the change without making it.")]


@router.get("", response_model=TopicPage, summary="List topics")
async def list_topics(
    request: Request,
    parts: Parts,
    internal: Annotated[bool, Query(description="Also list internal topics.")] = False,
    search: Annotated[str, Query(max_length=249, description="List only names that contain this.")] = "",
    after: Annotated[str, Query(max_length=249, description="List names that come after this one.")] = "",
    limit: Annotated[int, Query(ge=1, le=PAGE_ITEMS_MAX)] = PAGE_ITEMS_MAX,
) -> Response:
    topics = await parts.cluster.run(lambda admin: admin.topics())
    chosen = sorted(
        (topic for topic in topics if (internal or not topic.internal) and search in topic.name),
        key=lambda topic: topic.name,
    )
    rest = [topic for topic in chosen if topic.name > after]
    shown = [_summary(topic) for topic in rest[:limit]]
    return respond(request, TopicPage(shown, len(chosen), shown[-1].name if len(rest) > limit else None))


def _summary(topic: TopicDescription) -> TopicSummary:
    return TopicSummary(
        topic.name,
        topic_id_text(topic.topic_id),
        len(topic.partitions),
        max((len(partition.replicas) for partition in topic.partitions), default=0),
        topic.internal,
        sum(partition.leader < 0 for partition in topic.partitions),
    )


@router.post("", status_code=201, response_model=TopicSummary, summary="Create a topic")
async def create(request: Request, parts: Parts, wanted: TopicToCreate, dry_run: DryRun = False) -> Response:
    """201 with the new topic; with `dry_run` 200 and the topic that would be created, without an id."""
    new = NewTopic(
        wanted.name, wanted.partitions or BROKER_DEFAULT, wanted.replication_factor or BROKER_DEFAULT, wanted.configs
    )

    def made(admin: Admin) -> TopicSummary:
        _raise_refusals("cannot create", admin.create_topics([new], validate_only=dry_run))
        if dry_run:
            return TopicSummary(new.name, "", max(new.partitions, 0), max(new.replication_factor, 0), False, 0)
        (topic,) = admin.topics([new.name])
        return _summary(topic)

    summary = await parts.cluster.run(made)
    headers = None if dry_run else {"location": f"{request.scope.get('root_path', '')}/v1/topics/{wanted.name}"}
    return respond(request, summary, status=200 if dry_run else 201, headers=headers)


@router.put("", response_model=AppliedPlan, summary="Make the topics match a list")
async def apply(
    request: Request,
    parts: Parts,
    document: Annotated[
        dict[str, Any], Body(examples=[{"topics": [{"name": "orders", "partitions": 4, "configs": {}}]}])
    ],
    dry_run: DryRun = False,
    prune: Annotated[bool, Query(description="Also delete topics and reset configs that are not in the list.")] = False,
) -> Response:
    """Show the steps from the topics of the cluster to those of the list, and make them unless `dry_run` is set.

    The list has the form of the files of `headrace topics apply`.
    """
    try:
        wanted = parse_topics(document)
    except PlanError as wrong:
        place = ".".join(map(str, wrong.place))
        raise ApiProblem(400, f"{wrong}" + (f" (at {place})" if place else "")) from None

    def applied(admin: Admin) -> list[Step]:
        steps = plan(wanted, existing_topics(admin, wanted, prune=prune), prune=prune)
        for step in steps:
            if step.action is Action.REFUSE:
                raise ApiProblem(
                    409, f'topic "{step.topic}" has {step.before}, asked for {step.after}: {step.what}; '
                    "nothing was changed"
                )  # fmt: skip
        for done in carry_out(admin, steps, validate_only=dry_run):
            _raise_refusals(f"cannot {done.action}", done.outcomes)
        return steps

    steps = await parts.cluster.run(applied)
    shown = [PlannedStep(step.action, step.topic, step.what, step.before, step.after) for step in steps]
    return respond(request, AppliedPlan(shown, not dry_run))


@router.get("/{topic}", response_model=DescribedTopic, summary="Describe a topic")
async def describe(request: Request, parts: Parts, topic: str) -> Response:
    def described(admin: Admin) -> TopicDetails:
        (details,) = topic_details(admin, [existing(admin, topic)])
        return details

    return respond(request, _view(await parts.cluster.run(described)))


@router.get("/{topic}/partitions", response_model=list[PartitionView], summary="List the partitions of a topic")
async def partitions(request: Request, parts: Parts, topic: str) -> Response:
    def described(admin: Admin) -> TopicDetails:
        (details,) = topic_details(admin, [existing(admin, topic)])
        return details

    return respond(request, _view(await parts.cluster.run(described)).partitions)


@router.patch("/{topic}", response_model=DescribedTopic, summary="Change the partitions or configs of a topic")
async def alter(request: Request, parts: Parts, topic: str, change: TopicChange, dry_run: DryRun = False) -> Response:
    """Partitions can only grow; a config with the value null is reset to its default."""
    if change.partitions is None and not change.configs:
        raise ApiProblem(400, 'nothing to change: give "partitions" or "configs"')

    def altered(admin: Admin) -> TopicDetails:
        current = existing(admin, topic)
        if change.partitions is not None and change.partitions != len(current.partitions):
            if change.partitions < len(current.partitions):
                count = count_text(len(current.partitions), "partition")
                raise ApiProblem(
                    409, f'topic "{topic}" has {count}, asked for {change.partitions}: partitions can only grow'
                )
            _raise_refusals("cannot alter", admin.create_partitions({topic: change.partitions}, validate_only=dry_run))
        if change.configs:
            resource = ConfigResource(ResourceType.TOPIC, topic)
            outcomes = admin.alter_configs({resource: config_changes(change.configs)}, validate_only=dry_run)
            _raise_refusals("cannot alter", {each.name: outcome for each, outcome in outcomes.items()})
        (details,) = topic_details(admin, [existing(admin, topic)])
        return details

    return respond(request, _view(await parts.cluster.run(altered)))


@router.delete("/{topic}", status_code=204, summary="Delete a topic with all its records")
async def delete(parts: Parts, topic: str) -> Response:
    def deleted(admin: Admin) -> None:
        existing(admin, topic)
        _raise_refusals("cannot delete", admin.delete_topics([topic]))

    await parts.cluster.run(deleted)
    return Response(status_code=204)


def existing(admin: Admin, name: str) -> TopicDescription:
    """Return the topic; raise a problem that suggests the one that was meant if it does not exist."""
    (topic,) = admin.topics([name])
    if topic.error != ErrorCode.NONE:
        known = tuple(each.name for each in admin.topics())
        raise refusal(f'topic "{name}" cannot be used', name, Outcome(topic.error), known)
    return topic


def config_changes(configs: Mapping[str, str | None]) -> Sequence[ConfigChange]:
    return [
        ConfigChange(ConfigOperation.DELETE if value is None else ConfigOperation.SET, name, value)
        for name, value in configs.items()
    ]


def _raise_refusals(doing: str, outcomes: Mapping[str, Outcome]) -> None:
    for name, outcome in outcomes.items():
        if outcome.error != ErrorCode.NONE:
            raise refusal(f'{doing} topic "{name}"', name, outcome)


def _view(details: TopicDetails) -> DescribedTopic:
    return DescribedTopic(
        details.name,
        details.topic_id,
        details.internal,
        [_partition(partition) for partition in details.partitions],
        {entry.name: entry.value for entry in details.configs if not entry.sensitive},
        details.own_configs,
    )


def _partition(partition: PartitionDetails) -> PartitionView:
    return PartitionView(
        **{
            **partition._asdict(),
            "replicas": list(partition.replicas),
            "isr": list(partition.isr),
            "eligible": list(partition.eligible),
        }
    )
