"""DeleteRecords (21): deletes the records below an offset."""

from headrace.broker.api.context import RequestContext
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.replica import Replica
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsResponse,
    DeleteRecordsResponsePartition,
    DeleteRecordsResponseTopic,
)

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse:
    """Advance the starts of the partitions, then write the checkpoint once for all of them."""
    topics = []
    advanced: list[Replica] = []
    for topic in request.topics:
        allowed = ctx.authorized(Operation.DELETE, AclResourceType.TOPIC, topic.name)
        local = ctx.partitions.by_name.get(topic.name.encode())
        results = tuple(
            _advance(ctx, local, asked, advanced)
            if allowed
            else _failed(asked.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for asked in topic.partitions
        )
        topics.append(DeleteRecordsResponseTopic(name=topic.name, partitions=results))
    if advanced:
        ctx.partition_admin.checkpoint()
    return DeleteRecordsResponse(throttle_time_ms=ctx.throttle_time_ms, topics=tuple(topics))


def _advance(
    ctx: RequestContext,
    local: LocalTopic | None,
    asked: DeleteRecordsRequestPartition,
    advanced: list[Replica],
) -> DeleteRecordsResponsePartition:
    partition = ctx.partitions.partition_of(local, asked.partition_index)
    if isinstance(partition, ErrorCode):
        return _failed(asked.partition_index, partition)
    if not partition.config.cleanup_delete:
        return _failed(asked.partition_index, ErrorCode.POLICY_VIOLATION)
    high_watermark = partition.role.high_watermark
    offset = high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
    if not 0 <= offset <= high_watermark:
        return _failed(asked.partition_index, ErrorCode.OFFSET_OUT_OF_RANGE)
    if ctx.partition_admin.advance_start(partition, offset):
        advanced.append(partition)
    return DeleteRecordsResponsePartition(
        partition_index=asked.partition_index, low_watermark=partition.log.start_offset
    )


def _failed(partition: int, error: ErrorCode) -> DeleteRecordsResponsePartition:
    return DeleteRecordsResponsePartition(partition_index=partition, low_watermark=NO_LOW_WATERMARK, error_code=error)
