"""OffsetForLeaderEpoch (23): the end offset of a leader epoch, by which a reader detects that its log has diverged."""

from headrace.broker.api.context import RequestContext
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestPartition,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponsePartition,
    OffsetForLeaderEpochResponseTopic,
)


def handle(request: OffsetForLeaderEpochRequest, ctx: RequestContext) -> OffsetForLeaderEpochResponse:
    topics = []
    sees_all = ctx.authorized(Operation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)
    for topic in request.topics:
        allowed = sees_all or ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, topic.topic)
        local = ctx.partitions.by_name.get(topic.topic.encode())
        results = tuple(
            _end_of_epoch(ctx, local, asked)
            if allowed
            else OffsetForLeaderEpochResponsePartition(
                partition=asked.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for asked in topic.partitions
        )
        topics.append(OffsetForLeaderEpochResponseTopic(topic=topic.topic, partitions=results))
    return OffsetForLeaderEpochResponse(throttle_time_ms=ctx.throttle_time_ms, topics=tuple(topics))


def _end_of_epoch(
    ctx: RequestContext, local: LocalTopic | None, asked: OffsetForLeaderEpochRequestPartition
) -> OffsetForLeaderEpochResponsePartition:
    partition = ctx.partitions.partition_of(local, asked.partition, asked.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return OffsetForLeaderEpochResponsePartition(partition=asked.partition, error_code=partition)
    error = partition.check_leader_epoch(asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return OffsetForLeaderEpochResponsePartition(partition=asked.partition, error_code=error)
    leader_epoch, end_offset = partition.log.epoch_end(asked.leader_epoch)
    return OffsetForLeaderEpochResponsePartition(
        partition=asked.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )
