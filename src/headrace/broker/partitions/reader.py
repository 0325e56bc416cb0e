"""One Fetch as it is carried out: read every partition it names, and wait where there is too little.

A fetch that finds less than it asked for is parked on its partitions. An append tells each waiter how many bytes
became readable, which is one subtraction; only the fetch that has enough by then reads again, and of its
partitions only those that changed.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.net.connection import Connection
from headrace.broker.partitions.leader import LedPartition, LedTopic
from headrace.broker.timers import Timer
from headrace.log.errors import DamagedLog, OffsetOutOfRange
from headrace.model.errors import ErrorCode
from headrace.model.limits import FETCH_PARTITIONS_PER_SLICE, FETCH_WAIT_MS_MAX
from headrace.ports.disk import FileHandle, Slice
from headrace.wire.fetch import PartitionData

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

READ_COMMITTED = 1
_NONE = ErrorCode.NONE
_NO_ABORTED: tuple[tuple[int, int], ...] = ()


class WantedRead(NamedTuple):
    topic_key: bytes
    topic: LedTopic | None
    partition: int
    offset: int
    leader_epoch: int
    bytes_max: int
    by_id: bool


def failed(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(index, error, -1, -1, -1, None, None)


def locate(wanted: WantedRead) -> LedPartition | ErrorCode:
    """The partition asked for, or why it cannot be read here."""
    if wanted.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if wanted.by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return wanted.topic.partition(wanted.partition)


def read_partition(wanted: WantedRead, bytes_left: int, isolation_level: int, at_least_one: bool) -> PartitionData:
    """What one partition gives: records that stay in their file, or an error."""
    partition = locate(wanted)
    index = wanted.partition
    if isinstance(partition, ErrorCode):
        return failed(index, partition)
    error = partition.check_leader_epoch(wanted.leader_epoch)
    if error is not _NONE:
        return failed(index, error)
    leader, log = partition.leader, partition.log
    high_watermark, last_stable = leader.high_watermark, leader.last_stable_offset
    committed_only = isolation_level == READ_COMMITTED
    below = last_stable if committed_only else high_watermark
    records: Slice | None = None
    aborted = _NO_ABORTED if committed_only else None
    try:
        # An offset between the high watermark and the log's end is one that is not yet visible, not an error.
        if wanted.offset < below or wanted.offset > log.end_offset:
            records = log.read(wanted.offset, min(wanted.bytes_max, bytes_left), below, at_least_one)
            if committed_only and records is not None:
                aborted = log.transactions.aborted(wanted.offset, records, below)
        elif wanted.offset < log.start_offset:
            raise OffsetOutOfRange(wanted.offset, log.start_offset, log.end_offset)
    except OffsetOutOfRange:
        error = ErrorCode.OFFSET_OUT_OF_RANGE
        return PartitionData(index, error, high_watermark, last_stable, log.start_offset, None, None)
    except OSError:
        return failed(index, ErrorCode.KAFKA_STORAGE_ERROR)  # a segment or its index cannot be read
    except DamagedLog as damage:
        partition.damage_found(damage)
        return failed(index, ErrorCode.CORRUPT_MESSAGE)
    return PartitionData(index, 0, high_watermark, last_stable, log.start_offset, aborted, records)


class RunningFetch:
    """Reads in slices of a named size, one slice a turn; then answers, or parks until there is enough."""

    __slots__ = (
        "_broker",
        "_bytes_left",
        "_bytes_min",
        "_changed",
        "_connection",
        "_count",
        "_deadline_ms",
        "_isolation_level",
        "_missing_bytes",
        "_places",
        "_respond",
        "_timer",
        "_to_read",
        "_wants",
        "finished",
        "has_error",
        "results",
        "total_bytes",
    )

    def __init__(
        self,
        broker: "Broker",
        connection: Connection,
        wants: Iterator[WantedRead],
        count: int,
        *,
        wait_ms_max: int,
        bytes_min: int,
        bytes_max: int,
        isolation_level: int,
        respond: "Callable[[list[WantedRead], list[PartitionData]], None]",
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._to_read = wants
        self._count = count
        self._wants: list[WantedRead] = []
        """Those of `count` that were read."""
        self._bytes_min = bytes_min
        self._bytes_left = bytes_max
        self._isolation_level = isolation_level
        self._respond = respond
        wait_ms = min(wait_ms_max, FETCH_WAIT_MS_MAX)
        self._deadline_ms = broker.clock.monotonic_ms() + wait_ms if wait_ms > 0 else 0.0
        self._places: dict[LedPartition, int] = {}
        self._changed: dict[int, None] = {}
        self._missing_bytes = 0
        self.results: list[PartitionData] = []
        self.total_bytes = 0
        self.has_error = False
        self.finished = False
        self._timer: Timer | None = None
        """Set while it is parked."""

    def start(self) -> None:
        """Read a slice of the partitions; the next one follows in the next turn, if the client is still there."""
        if self.finished:
            return
        for wanted in islice(self._to_read, FETCH_PARTITIONS_PER_SLICE):
            self._wants.append(wanted)
            self.results.append(self._read(wanted))
        if len(self._wants) < self._count:
            self._connection.parked[self] = None
            self._broker.timers.next_turn(self.start)
        elif self.total_bytes >= self._bytes_min or self.has_error or not self._deadline_ms or not self._wants:
            self._finish()
        else:
            self._park()

    def _read(self, wanted: WantedRead) -> PartitionData:
        data = read_partition(wanted, max(self._bytes_left, 0), self._isolation_level, self.total_bytes == 0)
        if data.error:
            self.has_error = True
        elif data.records is not None:
            length = len(data.records) if isinstance(data.records, bytes) else data.records.length
            self.total_bytes += length
            self._bytes_left -= length
        return data

    def _park(self) -> None:
        self._missing_bytes = self._bytes_min - self.total_bytes
        for place, wanted in enumerate(self._wants):
            partition = locate(wanted)
            if isinstance(partition, LedPartition):
                self._places[partition] = place
                partition.add_waiter(self, stable=self._isolation_level == READ_COMMITTED)
            else:
                self._changed[place] = None  # it went away since it was read, a slice ago
        self._connection.parked[self] = None
        self._broker.metrics.parked_fetches += 1
        self._timer = self._broker.timers.at(self._deadline_ms, self._wake)
        if self._changed:
            self._wake()

    def readable(self, partition: LedPartition, new_bytes: int) -> None:
        """Called by the partition: so many bytes became readable there."""
        self._changed[self._places[partition]] = None
        self._missing_bytes -= new_bytes
        if self._missing_bytes <= 0:
            self._wake()

    def answer_now(self) -> None:
        if self._timer is not None:
            self._wake()

    def abandon(self) -> None:
        """The client is gone."""
        self.finished = True
        self._leave()

    def files(self) -> Iterator[FileHandle]:
        """Of what was read so far: they must stay open until it is sent."""
        return (data.records.file for data in self.results if isinstance(data.records, Slice))

    def _leave(self) -> None:
        self._connection.parked.pop(self, None)
        if self._timer is not None:
            for partition in self._places:
                partition.remove_waiter(self)
            self._places.clear()
            self._broker.timers.cancel(self._timer)
            self._timer = None
            self._broker.metrics.parked_fetches -= 1

    def _wake(self) -> None:
        self._leave()
        for place in self._changed:
            earlier = self.results[place].records
            if earlier is not None and not isinstance(earlier, bytes):
                self.total_bytes -= earlier.length
                self._bytes_left += earlier.length
            self.results[place] = self._read(self._wants[place])
        self._changed.clear()
        self._finish()

    def _finish(self) -> None:
        self.finished = True
        self._leave()
        slices = [data.records for data in self.results if isinstance(data.records, Slice)]
        self._broker.when_hot(slices, lambda: self._respond(self._wants, self.results))
