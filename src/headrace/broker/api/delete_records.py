"""DeleteRecords (21): deletes the records below an offset, at this leader and at all replicas in sync.

The response waits for those, because one of them may be the next leader.
"""

from collections.abc import Mapping

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.replica import Replica
from headrace.core.replication.leader import Leader
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
TIMEOUT_MS_MAX = 60_000
"""The longest wait for the replicas in sync, whatever the request allows."""


LOOK_MS = 5
"""The interval of checks whether the replicas in sync have followed."""

Place = tuple[str, int]
"""(topic, partition)."""


def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse | Parked:
    """Advance the starts of the partitions, write the checkpoint once for all of them, and wait for their followers."""
    results: dict[Place, DeleteRecordsResponsePartition] = {}
    waiting: dict[Place, Replica] = {}
    is_moved = False
    for topic in request.topics:
        allowed = ctx.authorized(Operation.DELETE, AclResourceType.TOPIC, topic.name)
        local = ctx.partitions.by_name.get(topic.name.encode())
        for asked in topic.partitions:
            place = topic.name, asked.partition_index
            partition = _partition(ctx, local, asked) if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if isinstance(partition, ErrorCode):
                results[place] = _failed(asked.partition_index, partition)
                continue
            is_moved |= ctx.partition_admin.advance_start(partition, _offset(partition, asked))
            waiting[place] = partition
    if is_moved:
        ctx.partition_admin.checkpoint()
    _look(waiting, results)
    if not waiting:
        return _response(request, ctx, results)
    parked = ctx.park()
    deadline_ms = ctx.timers.now_ms() + min(max(request.timeout_ms, 0), TIMEOUT_MS_MAX)

    def look() -> None:
        _look(waiting, results)
        if waiting and ctx.timers.now_ms() < deadline_ms:
            if not parked.abandoned():
                ctx.timers.after(LOOK_MS, look)
            return
        late = {place: _failed(place[1], ErrorCode.REQUEST_TIMED_OUT) for place in waiting}
        parked.complete(_response(request, ctx, results | late))

    ctx.timers.after(LOOK_MS, look)
    return parked


def _look(waiting: dict[Place, Replica], results: dict[Place, DeleteRecordsResponsePartition]) -> None:
    """Move the partitions that all replicas in sync have followed, or that this node leads no more, to the results."""
    for place, partition in tuple(waiting.items()):
        role, start = partition.role, partition.log.start_offset
        if not isinstance(role, Leader) or partition.offline:
            results[place] = _failed(place[1], partition.refusal or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif role.begins_everywhere(start):
            results[place] = DeleteRecordsResponsePartition(partition_index=place[1], low_watermark=start)
        if place in results:
            del waiting[place]


def _response(
    request: DeleteRecordsRequest, ctx: RequestContext, results: Mapping[Place, DeleteRecordsResponsePartition]
) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        topics=tuple(
            DeleteRecordsResponseTopic(
                name=topic.name,
                partitions=tuple(results[topic.name, asked.partition_index] for asked in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _partition(
    ctx: RequestContext, local: LocalTopic | None, asked: DeleteRecordsRequestPartition
) -> Replica | ErrorCode:
    partition = ctx.partitions.partition_of(local, asked.partition_index)
    if isinstance(partition, ErrorCode):
        return partition
    if not partition.config.cleanup_delete:
        return ErrorCode.POLICY_VIOLATION
    if not 0 <= _offset(partition, asked) <= partition.role.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return partition


def _offset(partition: Replica, asked: DeleteRecordsRequestPartition) -> int:
    return partition.role.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset


def _failed(partition: int, error: ErrorCode) -> DeleteRecordsResponsePartition:
    return DeleteRecordsResponsePartition(partition_index=partition, low_watermark=NO_LOW_WATERMARK, error_code=error)
