"""CreateTopics (19): creates topics with their partition counts, replica assignments and configs."""

from collections.abc import Sequence

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import may_create_topic, split_by_access
from headrace.broker.api.support.mutation_quota import MutationQuota
from headrace.broker.api.support.proposals import park_until_committed, with_failed_storage
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.partitions.soundness import with_level_in_force
from headrace.core.controller.commands import CreatableTopic, TopicResult
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    CreateTopicsResponseConfig,
    CreateTopicsResponseTopic,
)

_STRICT_QUOTA_FROM = 6


def handle(request: CreateTopicsRequest, ctx: RequestContext) -> Parked:
    allowed, others = split_by_access(request.topics, lambda topic: may_create_topic(ctx, topic.name))
    refused = [TopicResult(topic.name, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in others]
    quota = MutationQuota(ctx, strict_from=_STRICT_QUOTA_FROM, charges=not request.validate_only)
    allowed, beyond = split_by_access(allowed, lambda topic: quota.admits(topic.name, _partition_count(ctx, topic)))
    refused += [quota.refusal(topic.name) for topic in beyond]
    proposal = ctx.controller.create_topics(
        [_new_topic(topic) for topic in allowed], validate_only=request.validate_only
    )

    def respond(outcome: tuple[TopicResult, ...] | ProposalFailed) -> CreateTopicsResponse:
        if isinstance(outcome, ProposalFailed):
            outcome = tuple(TopicResult(topic.name, error=outcome.code, message=outcome.message) for topic in allowed)
        else:
            quota.settle(outcome)
        describe = _ConfigDescriber(ctx, request.topics)
        return CreateTopicsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            topics=tuple(_result(ctx, describe, result) for result in (*with_failed_storage(ctx, outcome), *refused)),
        )

    return park_until_committed(ctx, proposal, respond, timeout_ms=request.timeout_ms)


def _partition_count(ctx: RequestContext, topic: CreateTopicsRequestTopic) -> int:
    return max(topic.num_partitions, 0) or len(topic.assignments) or ctx.config.num_partitions


def _new_topic(topic: CreateTopicsRequestTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            (assignment.partition_index, [NodeId(node) for node in assignment.broker_ids])
            for assignment in topic.assignments
        ],
        configs=[(config.name, config.value) for config in topic.configs],
    )


class _ConfigDescriber:
    """The configs of created topics; most topics of a request have the same, which are described once."""

    def __init__(self, ctx: RequestContext, topics: Sequence[CreateTopicsRequestTopic]) -> None:
        self._ctx = ctx
        self._overrides = {
            topic.name: tuple((config.name, config.value) for config in topic.configs) for topic in topics
        }
        self._described: dict[
            tuple[int, tuple[tuple[str, str | None], ...]], tuple[CreateTopicsResponseConfig, ...]
        ] = {}

    def configs(self, name: str, replicas: int) -> tuple[CreateTopicsResponseConfig, ...]:
        overrides = self._overrides[name]
        found = self._described.get((replicas, overrides))
        if found is None:
            chosen = {config: value for config, value in overrides if value is not None}
            found = self._described[replicas, overrides] = tuple(
                CreateTopicsResponseConfig(
                    name=entry.key.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.key.sensitive,
                )
                for entry in with_level_in_force(self._ctx.config.describe_topic(chosen, replicas=replicas))
            )
        return found


def _result(ctx: RequestContext, describe: _ConfigDescriber, result: TopicResult) -> CreateTopicsResponseTopic:
    name = result.name or ""
    if result.error is not ErrorCode.NONE:
        return CreateTopicsResponseTopic(name=name, error_code=result.error, error_message=result.message, configs=None)
    may_see_configs = ctx.authorized(Operation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, name)
    return CreateTopicsResponseTopic(
        name=name,
        topic_id=result.topic_id,
        error_message=None,
        topic_config_error_code=ErrorCode.NONE if may_see_configs else ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        num_partitions=result.partition_count if may_see_configs else -1,
        replication_factor=result.replication_factor if may_see_configs else -1,
        configs=describe.configs(name, result.replication_factor) if may_see_configs else None,
    )
