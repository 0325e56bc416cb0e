"""ListOffsets (2): the first, the last, or the first record at or after a time."""

from collections.abc import Callable

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.gather import Gathering
from headrace.broker.partitions.leader import LedPartition
from headrace.broker.partitions.reader import READ_COMMITTED
from headrace.log.partition_log import PartitionLog
from headrace.log.times import TimestampedOffset
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsResponse,
    ListOffsetsResponsePartition,
    ListOffsetsResponseTopic,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

SPECIAL_TIMESTAMPS_FROM = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The version each came with; a client that speaks an older one means something else by it."""

_NO_LEADER_EPOCH = -1


def handle(request: ListOffsetsRequest, ctx: RequestContext) -> ListOffsetsResponse | Parked:
    """Offsets by time may read the disk and open a batch, so those are looked up by a helper."""
    gathering: Gathering[ListOffsetsResponsePartition] = Gathering(ctx)
    names: list[tuple[str, int]] = []
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        allowed = ctx.authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        led = ctx.broker.partitions.by_name.get(topic.name.encode())
        names.append((topic.name, len(topic.partitions)))
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            if key in seen:
                gathering.add(_error(asked, ErrorCode.INVALID_REQUEST))
                continue
            seen.add(key)
            found = ctx.broker.partitions.partition_of(led, asked.partition_index)
            if ctx.version < SPECIAL_TIMESTAMPS_FROM.get(asked.timestamp, 0):
                gathering.add(_error(asked, ErrorCode.UNSUPPORTED_VERSION))
            elif not allowed:
                gathering.add(_error(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif isinstance(found, ErrorCode):
                gathering.add(_error(asked, found))
            else:
                _look_up(gathering, found, asked, request.isolation_level)

    def respond(results: list[ListOffsetsResponsePartition]) -> ListOffsetsResponse:
        remaining = iter(results)
        return ListOffsetsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            topics=tuple(
                ListOffsetsResponseTopic(name=name, partitions=tuple(next(remaining) for _ in range(count)))
                for name, count in names
            ),
        )

    return gathering.response(respond)


def _look_up(
    gathering: Gathering[ListOffsetsResponsePartition],
    partition: LedPartition,
    asked: ListOffsetsRequestPartition,
    isolation_level: int,
) -> None:
    error = partition.check_leader_epoch(asked.current_leader_epoch)
    leader, log = partition.leader, partition.log
    below = leader.last_stable_offset if isolation_level == READ_COMMITTED else leader.high_watermark
    if error is not ErrorCode.NONE:
        gathering.add(_error(asked, error))
    elif asked.timestamp == LATEST:
        if leader.knows_latest_offset:
            gathering.add(_found(asked, -1, below, leader.leader_epoch))
        else:
            gathering.add(_error(asked, ErrorCode.OFFSET_NOT_AVAILABLE))
    elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epochs.epoch_at(log.start_offset)
        gathering.add(_found(asked, -1, log.start_offset, epoch))
    elif asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        gathering.add(_found(asked, -1, -1, _NO_LEADER_EPOCH))  # nothing is tiered
    elif asked.timestamp == MAX_TIMESTAMP:
        _search(gathering, log, log.max_timestamp_offset, _by_time(asked, partition, below))
    elif asked.timestamp < 0:
        gathering.add(_error(asked, ErrorCode.INVALID_REQUEST))
    else:
        _search(gathering, log, lambda: log.offset_at_time(asked.timestamp, below), _by_time(asked, partition, below))


def _search(
    gathering: Gathering[ListOffsetsResponsePartition],
    log: PartitionLog,
    make_search: Callable[[], Callable[[], TimestampedOffset | None]],
    result_of: Callable[[TimestampedOffset | None, BaseException | None], ListOffsetsResponsePartition],
) -> None:
    """A search opens segments by name, so it is made again if compaction exchanged some of them meanwhile."""
    generation = log.names_generation

    def repeated() -> Callable[[], TimestampedOffset | None] | None:
        nonlocal generation
        if generation == log.names_generation and not generation % 2:
            return None
        generation = log.names_generation
        return make_search()

    gathering.add_later(make_search(), result_of, repeated=repeated)


def _by_time(
    asked: ListOffsetsRequestPartition, partition: LedPartition, below: int
) -> Callable[[TimestampedOffset | None, BaseException | None], ListOffsetsResponsePartition]:
    def result(found: TimestampedOffset | None, error: BaseException | None) -> ListOffsetsResponsePartition:
        if error is not None:
            return _error(asked, ErrorCode.KAFKA_STORAGE_ERROR)
        if found is None or found.offset >= below:
            return _found(asked, -1, -1, _NO_LEADER_EPOCH)
        return _found(asked, found.timestamp, found.offset, partition.log.epochs.epoch_at(found.offset))

    return result


def _found(
    asked: ListOffsetsRequestPartition, timestamp: int, offset: int, leader_epoch: int
) -> ListOffsetsResponsePartition:
    return ListOffsetsResponsePartition(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
        old_style_offsets=(offset,) if offset >= 0 else (),
    )


def _error(asked: ListOffsetsRequestPartition, error: ErrorCode) -> ListOffsetsResponsePartition:
    return ListOffsetsResponsePartition(partition_index=asked.partition_index, error_code=error)
