"""ListOffsets (2): the earliest offset, the latest, or that of the first record at or after a timestamp."""

from collections.abc import Callable

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.result_collector import ResultCollector
from headrace.broker.lookups import LookupRefused
from headrace.broker.partitions.reader import READ_COMMITTED
from headrace.broker.partitions.replica import Replica
from headrace.log.times import TimeSearch, TimestampedOffset
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.limits import LOOKUPS_PER_REQUEST_MAX
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
"""The version that introduced each special timestamp; for an older version it has another meaning."""

NOT_AVAILABLE_FROM = 5
"""The version that introduced OFFSET_NOT_AVAILABLE (KIP-207)."""

_NO_LEADER_EPOCH = -1


def handle(request: ListOffsetsRequest, ctx: RequestContext) -> ListOffsetsResponse | Parked:
    """Answer a request. A search by timestamp may read the disk and decompress a batch, so a helper runs it."""
    queries = _OffsetQueries(ctx, request.isolation_level)
    names: list[tuple[str, int]] = []
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        allowed = ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, topic.name)
        local = ctx.partitions.by_name.get(topic.name.encode())
        names.append((topic.name, len(topic.partitions)))
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            if key in seen:
                queries.add(_error(asked, ErrorCode.INVALID_REQUEST))
                continue
            seen.add(key)
            found = ctx.partitions.partition_of(local, asked.partition_index, asked.current_leader_epoch)
            if ctx.version < SPECIAL_TIMESTAMPS_FROM.get(asked.timestamp, 0):
                queries.add(_error(asked, ErrorCode.UNSUPPORTED_VERSION))
            elif not allowed:
                queries.add(_error(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif isinstance(found, ErrorCode):
                queries.add(_error(asked, found))
            else:
                queries.look_up(found, asked)

    def respond(results: list[ListOffsetsResponsePartition]) -> ListOffsetsResponse:
        remaining = iter(results)
        return ListOffsetsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            topics=tuple(
                ListOffsetsResponseTopic(name=name, partitions=tuple(next(remaining) for _ in range(count)))
                for name, count in names
            ),
        )

    return queries.collector.response(respond)


class _OffsetQueries:
    """One request in progress."""

    def __init__(self, ctx: RequestContext, isolation_level: int) -> None:
        self._ctx = ctx
        self._isolation_level = isolation_level
        self._lookups_left = LOOKUPS_PER_REQUEST_MAX
        self.collector: ResultCollector[ListOffsetsResponsePartition] = ResultCollector(ctx)
        self.add = self.collector.add

    def look_up(self, partition: Replica, asked: ListOffsetsRequestPartition) -> None:
        error = partition.check_leader_epoch(asked.current_leader_epoch)
        role, log = partition.role, partition.log
        below = role.last_stable_offset if self._isolation_level == READ_COMMITTED else role.high_watermark
        if error is not ErrorCode.NONE:
            self.add(_error(asked, error))
        elif asked.timestamp == LATEST:
            if role.knows_latest_offset:
                self.add(_found(asked, -1, below, role.leader_epoch))
            else:
                self.add(_error(asked, _refusal(self._ctx.version)))
        elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
            epoch = log.epochs.epoch_at(log.start_offset)
            self.add(_found(asked, -1, log.start_offset, epoch))
        elif asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            self.add(_found(asked, -1, -1, _NO_LEADER_EPOCH))  # tiered storage does not exist
        elif asked.timestamp == MAX_TIMESTAMP:
            self._search(partition, asked, below, log.max_timestamp_offset)
        elif asked.timestamp < 0:
            self.add(_error(asked, ErrorCode.INVALID_REQUEST))
        else:
            self._search(partition, asked, below, lambda: log.offset_at_time(asked.timestamp, below))

    def _search(
        self,
        partition: Replica,
        asked: ListOffsetsRequestPartition,
        below: int,
        make_search: Callable[[], TimeSearch],
    ) -> None:
        version = self._ctx.version
        self._lookups_left -= 1
        if self._lookups_left < 0:
            self._ctx.lookups.refused += 1
            self.add(_error(asked, _refusal(version)))
            return
        fill = self.collector.later()
        knows_committed = partition.role.knows_latest_offset

        def done(found: TimestampedOffset | None, error: BaseException | None) -> None:
            if isinstance(error, LookupRefused):
                fill(_error(asked, _refusal(version)))
            elif not partition.serves:
                fill(_error(asked, partition.refusal))
            elif error is not None:
                fill(_error(asked, ErrorCode.KAFKA_STORAGE_ERROR))
            elif found is not None and found.offset < below:
                fill(_found(asked, found.timestamp, found.offset, partition.log.epochs.epoch_at(found.offset)))
            elif knows_committed:
                fill(_found(asked, -1, -1, _NO_LEADER_EPOCH))
            else:  # a new leader does not know yet whether the records above are committed
                fill(_error(asked, _refusal(version)))

        if not self._ctx.lookups.add(self._ctx.connection, partition.log, make_search, done):
            fill(_error(asked, _refusal(version)))


def _refusal(version: int) -> ErrorCode:
    """Return the error that makes the client retry after a while."""
    return ErrorCode.OFFSET_NOT_AVAILABLE if version >= NOT_AVAILABLE_FROM else ErrorCode.LEADER_NOT_AVAILABLE


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
