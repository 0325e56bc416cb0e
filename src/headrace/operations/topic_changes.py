"""Changes of `topics apply`: the topics of a cluster to compare with a file, and the requests that carry out a plan."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from headrace.client import Admin
from headrace.client.types import ConfigChange, ConfigOperation, ConfigResource, NewTopic, Outcome, ResourceType
from headrace.model.errors import ErrorCode
from headrace.operations.topic_details import own_configs, topic_configs
from headrace.operations.topic_plan import Action, ExistingTopic, Step, WantedTopic

BROKER_DEFAULT = -1
STEPS_PER_REQUEST_MAX = 200
"""Changes in one request: small enough to show progress and to keep each response small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcomes:
    """Outcomes of the steps that one request carried out, by topic."""

    action: Action
    steps: Sequence[Step]
    outcomes: Mapping[str, Outcome]

    @property
    def stored_configs(self) -> dict[str, str]:
        """The configs that these steps set, by name."""
        if self.action is Action.SET_CONFIG:
            return {step.what: step.after for step in self.steps}
        wanted = (step.wanted for step in self.steps if step.wanted is not None)
        return {name: text for topic in wanted for name, text in topic.configs.items()}


def existing_topics(admin: Admin, wanted: Sequence[WantedTopic], *, prune: bool) -> list[ExistingTopic]:
    """Return the topics of the cluster that a plan compares: the wanted ones, or all of them if others are deleted."""
    topics = [topic for topic in admin.topics() if topic.error == ErrorCode.NONE]
    names = {topic.name for topic in wanted}
    configs = topic_configs(admin, [topic.name for topic in topics if topic.name in names])
    return [
        ExistingTopic(
            name=topic.name,
            partitions=len(topic.partitions),
            replication_factor=max((len(partition.replicas) for partition in topic.partitions), default=0),
            configs=own_configs(configs.get(topic.name, ())),
            internal=topic.internal or topic.name.startswith("__"),
        )
        for topic in topics
        if prune or topic.name in names
    ]


def carry_out(admin: Admin, steps: Sequence[Step], *, validate_only: bool) -> Iterator[StepOutcomes]:
    """Make the changes in the order of the actions, and yield the outcomes of each request.

    The request in which the broker refused a change is the last one. With `validate_only` nothing is changed, and
    deletions, which a broker cannot validate, count as made.
    """
    order = list(Action)
    for action, group in groupby(sorted(steps, key=lambda step: order.index(step.action)), lambda step: step.action):
        same = list(group)
        for start in range(0, len(same), STEPS_PER_REQUEST_MAX):
            chunk = same[start : start + STEPS_PER_REQUEST_MAX]
            outcomes = _REQUESTS[action](admin, chunk, validate_only)
            yield StepOutcomes(action=action, steps=chunk, outcomes=outcomes)
            if any(outcome.error != ErrorCode.NONE for outcome in outcomes.values()):
                return


def _create(admin: Admin, steps: Sequence[Step], validate_only: bool) -> Mapping[str, Outcome]:
    new = [
        NewTopic(
            step.wanted.name,
            step.wanted.partitions or BROKER_DEFAULT,
            step.wanted.replication_factor or BROKER_DEFAULT,
            dict(step.wanted.configs),
        )
        for step in steps
        if step.wanted is not None
    ]
    return admin.create_topics(new, validate_only=validate_only)


def _add_partitions(admin: Admin, steps: Sequence[Step], validate_only: bool) -> Mapping[str, Outcome]:
    totals = {step.topic: int(step.after) for step in steps}
    return admin.create_partitions(totals, validate_only=validate_only)


def _alter_configs(admin: Admin, steps: Sequence[Step], validate_only: bool) -> Mapping[str, Outcome]:
    changes: dict[tuple[int, str], list[ConfigChange]] = {}
    for step in steps:
        change = (
            ConfigChange(ConfigOperation.SET, step.what, step.after)
            if step.action is Action.SET_CONFIG
            else ConfigChange(ConfigOperation.DELETE, step.what)
        )
        changes.setdefault(ConfigResource(ResourceType.TOPIC, step.topic), []).append(change)
    outcomes = admin.alter_configs(changes, validate_only=validate_only)
    return {resource.name: outcome for resource, outcome in outcomes.items()}


def _delete(admin: Admin, steps: Sequence[Step], validate_only: bool) -> Mapping[str, Outcome]:
    return {} if validate_only else admin.delete_topics([step.topic for step in steps])


_REQUESTS: dict[Action, Callable[[Admin, Sequence[Step], bool], Mapping[str, Outcome]]] = {
    Action.CREATE: _create,
    Action.ADD_PARTITIONS: _add_partitions,
    Action.SET_CONFIG: _alter_configs,
    Action.RESET_CONFIG: _alter_configs,
    Action.DELETE: _delete,
}
