"""DescribeTopicPartitions (75): topics in the order of their names, a page of partitions at a time (KIP-966)."""

from collections.abc import Iterator

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import TOPIC_OPERATIONS, authorized_operations
from headrace.broker.api.support.linearizable import respond_when_confirmed
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.core.controller.topic_image import TopicImage
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseNextCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

TOPICS_PER_PAGE_MAX = 2_000
"""Topics per page, because topics that the client may not see have no partitions to count."""


def handle(request: DescribeTopicPartitionsRequest, ctx: RequestContext) -> DescribeTopicPartitionsResponse | Parked:
    if request.cursor is not None and request.cursor.partition_index < 0:
        return _refused(request, ctx, ErrorCode.INVALID_REQUEST)
    return respond_when_confirmed(
        ctx, lambda: _respond(request, ctx), lambda: _refused(request, ctx, ErrorCode.NOT_CONTROLLER)
    )


def _refused(
    request: DescribeTopicPartitionsRequest, ctx: RequestContext, error: ErrorCode
) -> DescribeTopicPartitionsResponse:
    """Refuse every topic; a request for all topics gets one error without a name."""
    names: list[str | None] = [topic.name for topic in request.topics]
    return DescribeTopicPartitionsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        topics=tuple(DescribeTopicPartitionsResponseTopic(error_code=error, name=name) for name in names or [None]),
    )


def _respond(request: DescribeTopicPartitionsRequest, ctx: RequestContext) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    left = max(1, min(request.response_partition_limit, ctx.config.described_partitions_max))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor = None
    for name in _names(request, ctx):
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if not left or len(topics) >= TOPICS_PER_PAGE_MAX:
            next_cursor = DescribeTopicPartitionsResponseNextCursor(topic_name=name, partition_index=first)
            break
        described = _topic(ctx, name, first, left)
        topics.append(described)
        left -= len(described.partitions)
        last = first + len(described.partitions)
        topic = ctx.image.topics.get(name)
        if described.partitions and topic is not None and last < len(topic.partitions):
            next_cursor = DescribeTopicPartitionsResponseNextCursor(topic_name=name, partition_index=last)
            break
    return DescribeTopicPartitionsResponse(
        throttle_time_ms=ctx.throttle_time_ms, topics=tuple(topics), next_cursor=next_cursor
    )


def _names(request: DescribeTopicPartitionsRequest, ctx: RequestContext) -> Iterator[str]:
    """Yield the names from the cursor on, in order; if all topics are requested, those that the client may see."""
    begin = request.cursor.topic_name if request.cursor is not None else ""
    if request.topics:
        yield from sorted({topic.name for topic in request.topics if topic.name >= begin})
        return
    for name in sorted(name for name in ctx.image.topics if name >= begin):
        if ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, name):
            yield name


def _topic(ctx: RequestContext, name: str, first: int, count: int) -> DescribeTopicPartitionsResponseTopic:
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, name):
        return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    operations = authorized_operations(ctx, TOPIC_OPERATIONS, AclResourceType.TOPIC, name)
    topic = ctx.image.topics.get(name)
    if topic is None:
        return DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name, topic_authorized_operations=operations
        )
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=_partitions(ctx, topic, first, count),
        topic_authorized_operations=operations,
    )


def _partitions(
    ctx: RequestContext, topic: TopicImage, first: int, count: int
) -> tuple[DescribeTopicPartitionsResponsePartition, ...]:
    return tuple(
        DescribeTopicPartitionsResponsePartition(
            error_code=state.error_code,
            partition_index=state.partition_index,
            leader_id=state.leader_id,
            leader_epoch=state.leader_epoch,
            replica_nodes=tuple(state.replica_nodes),
            isr_nodes=tuple(state.isr_nodes),
            eligible_leader_replicas=topic.partitions[state.partition_index].elr,
            last_known_elr=topic.partitions[state.partition_index].last_known_elr,
            offline_replicas=tuple(state.offline_replicas),
        )
        for state in ctx.topic_metadata.partition_states(topic, ctx.listener_name, first, count)
    )
