"""The execution of one Fetch: read every partition of the request, and wait if there are too few bytes.

A fetch that finds fewer bytes than it asked for is parked on its partitions. An append tells each waiter how many bytes
became readable, which is one addition. Only a fetch that has enough then reads again, and only the partitions that
changed.

A fetch of many partitions takes several turns. It becomes a waiter of each partition in the turn that reads it, so that
appends to that partition count while the others are read.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.partitions.fetch_waiters import ENOUGH_BYTES, ReadBound
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.replica import Replica
from headrace.broker.timers import Timer, Timers
from headrace.log.errors import DamagedLog, OffsetOutsideLog
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from headrace.model.limits import FETCH_PARTITIONS_PER_SLICE, FETCH_WAIT_MS_MAX
from headrace.ports.clock import Clock
from headrace.ports.disk import FileHandle, FileRange
from headrace.wire.fetch import PartitionData

READ_COMMITTED = 1
_NONE = ErrorCode.NONE
_NO_ABORTED: tuple[tuple[int, int], ...] = ()


class ReaderServices(Protocol):
    """Serves a fetch while it reads and waits."""

    @property
    def clock(self) -> Clock: ...

    @property
    def timers(self) -> Timers: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def client_quotas(self) -> ClientQuotas: ...

    def when_hot(self, ranges: Sequence[FileRange], then: Callable[[], None]) -> None:
        """Call back when the ranges can be sent without waiting for the disk."""


class WantedRead(NamedTuple):
    topic_key: bytes
    topic: LocalTopic | None
    partition: int
    offset: int
    leader_epoch: int
    bytes_max: int
    by_id: bool
    any_replica: bool = False
    """True if the client may read from a follower too (KIP-392)."""
    is_allowed: bool = True
    """False if the client may not read the topic, or must not find out whether it exists."""


def failed(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(index, error, -1, -1, -1, None, None)


def locate(wanted: WantedRead) -> Replica | ErrorCode:
    """Return the partition, or the error if it cannot be read here."""
    if not wanted.is_allowed:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if wanted.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if wanted.by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = wanted.topic.partition(wanted.partition, wanted.leader_epoch)
    if wanted.any_replica and isinstance(partition, ErrorCode):
        return wanted.topic.copy_of(wanted.partition) or partition
    return partition


def redirected(wanted: WantedRead, node: NodeId) -> PartitionData:
    """Return the result that has the client read from another replica."""
    partition = locate(wanted)
    assert isinstance(partition, Replica), "only what is read here has another replica"
    role = partition.role
    offsets = (role.high_watermark, role.last_stable_offset, partition.log.start_offset)
    return PartitionData(wanted.partition, 0, *offsets, None, None, preferred_read_replica=node)


def read_partition(wanted: WantedRead, bytes_left: int, isolation_level: int, at_least_one: bool) -> PartitionData:
    """Read one partition: a range of a file with the records, which are not copied, or an error."""
    partition = locate(wanted)
    index = wanted.partition
    if isinstance(partition, ErrorCode):
        return failed(index, partition)
    error = partition.check_leader_epoch(wanted.leader_epoch)
    if error is not _NONE:
        return failed(index, error)
    role, log = partition.role, partition.log
    high_watermark, last_stable = role.high_watermark, role.last_stable_offset
    committed_only = isolation_level == READ_COMMITTED
    below = last_stable if committed_only else high_watermark
    records: FileRange | None = None
    aborted = _NO_ABORTED if committed_only else None
    try:
        # An offset between the high watermark and the log end is not visible yet, which is no error.
        if wanted.offset < below or wanted.offset > log.end_offset:
            records = log.read(wanted.offset, min(wanted.bytes_max, bytes_left), below, at_least_one)
            if committed_only and records is not None:
                aborted = log.transactions.aborted(wanted.offset, records, below)
        elif wanted.offset < log.start_offset:
            raise OffsetOutsideLog(wanted.offset, log.start_offset, log.end_offset)
    except OffsetOutsideLog:
        error = ErrorCode.OFFSET_OUT_OF_RANGE
        return PartitionData(index, error, high_watermark, last_stable, log.start_offset, None, None)
    except OSError:
        return failed(index, ErrorCode.KAFKA_STORAGE_ERROR)  # a segment or its index cannot be read
    except DamagedLog as damage:
        partition.damage_found(damage)
        return failed(index, ErrorCode.CORRUPT_MESSAGE)
    return PartitionData(index, 0, high_watermark, last_stable, log.start_offset, aborted, records)


def bytes_readable(partition: Replica, wanted: WantedRead, data: PartitionData, isolation_level: int) -> int:
    """Count the bytes that a partition, which was just read, has for this fetch, up to the limit of the partition.

    The count includes batches that did not fit into the response. A position in an older segment counts as enough for
    any fetch, as in Kafka: the response ends with the segment, and no append makes it longer.
    """
    below = data.last_stable_offset if isolation_level == READ_COMMITTED else data.high_watermark
    if wanted.offset >= below:
        return 0
    log = partition.log
    try:
        rest = log.read(wanted.offset, ENOUGH_BYTES, below, True)
    except (OSError, DamagedLog):
        return ENOUGH_BYTES  # answer with what was read; the next fetch reports the error
    if rest is None:
        return 0
    if not log.is_in_segment_of(rest, below):
        return ENOUGH_BYTES
    given = data.records.length if isinstance(data.records, FileRange) else 0
    return max(given, min(rest.length, wanted.bytes_max))


class RunningFetch:
    """Reads a slice of the partitions per turn, then responds, or parks until there are enough bytes."""

    __slots__ = (
        "_bytes_left",
        "_bytes_min",
        "_changed",
        "_connection",
        "_count",
        "_deadline_ms",
        "_isolation_level",
        "_limits_bytes",
        "_may_read",
        "_nearest",
        "_places",
        "_readable_bytes",
        "_respond",
        "_services",
        "_timer",
        "_to_read",
        "_wants",
        "_watched",
        "finished",
        "has_news",
        "results",
        "total_bytes",
    )

    def __init__(
        self,
        services: ReaderServices,
        connection: Connection,
        wants: Iterator[WantedRead],
        count: int,
        *,
        wait_ms_max: int,
        bytes_min: int,
        bytes_max: int,
        isolation_level: int,
        nearest: "Callable[[WantedRead], NodeId] | None" = None,
        may_read: "Callable[[WantedRead], bool] | None" = None,
        respond: "Callable[[list[WantedRead], list[PartitionData]], None]",
    ) -> None:
        """`nearest` returns another node from which the client should read a partition; NO_NODE for none.

        `may_read` decides about the access to a partition that was read before; None if everything is allowed.
        """
        self._services = services
        self._connection = connection
        self._nearest = nearest
        self._may_read = may_read
        self._to_read = wants
        self._count = count
        self._wants: list[WantedRead] = []
        """The partitions that were read so far, of `count`."""
        self._bytes_min = bytes_min if bytes_min <= bytes_max or bytes_min <= 1 else max(bytes_max, 1)
        self._bytes_left = bytes_max
        self._isolation_level = isolation_level
        self._respond = respond
        wait_ms = min(wait_ms_max, FETCH_WAIT_MS_MAX)
        self._deadline_ms = services.clock.monotonic_ms() + wait_ms if wait_ms > 0 else 0.0
        self._places: dict[Replica, int] = {}
        """Partitions on which this fetch waits, with their index in `_wants`."""
        self._changed: dict[int, None] = {}
        self._watched = 0
        """Index of the first partition in `_wants` on which the fetch does not wait yet."""
        self._readable_bytes = 0
        """Readable bytes of the partitions in `_places`, whether they fit into the response or not."""
        self._limits_bytes = 0
        """The sum of the limits of those partitions. No wait makes the response longer."""
        self.results: list[PartitionData] = []
        self.total_bytes = 0
        self.has_news = False
        """True if a partition has an error or a nearer replica, which the client should learn at once."""
        self.finished = False
        self._timer: Timer | None = None
        """Set while the fetch is parked."""

    def start(self) -> None:
        """Read a slice of the partitions; the next slice follows in the next turn, if the client is still connected."""
        if self.finished:
            return
        for wanted in islice(self._to_read, FETCH_PARTITIONS_PER_SLICE):
            self._wants.append(wanted)
            self.results.append(self._read(wanted))
        is_answerable = self.total_bytes >= self._bytes_min or self.has_news or not self._deadline_ms
        if len(self._wants) < self._count:
            if not is_answerable:
                self._watch()
            self._connection.parked[self] = None
            self._next_turn(self.start)
        elif is_answerable or not self._wants:
            self._finish()
        else:
            self._watch()
            self._park()

    def _read(self, wanted: WantedRead) -> PartitionData:
        node = NO_NODE if self._nearest is None else self._nearest(wanted)
        if node != NO_NODE:
            data = redirected(wanted, node)
        else:
            data = read_partition(wanted, max(self._bytes_left, 0), self._isolation_level, self.total_bytes == 0)
        if data.error or node != NO_NODE:
            self.has_news = True
        elif data.records is not None:
            length = len(data.records) if isinstance(data.records, bytes) else data.records.length
            self.total_bytes += length
            self._bytes_left -= length
        return data

    def _watch(self) -> None:
        """Wait on the partitions that were read in this turn, and count their readable bytes."""
        is_committed = self._isolation_level == READ_COMMITTED
        bound = ReadBound.LAST_STABLE_OFFSET if is_committed else ReadBound.HIGH_WATERMARK
        for place in range(self._watched, len(self._wants)):
            wanted = self._wants[place]
            partition = locate(wanted)
            assert isinstance(partition, Replica), "it was read in this turn, without an error"
            self._places[partition] = place
            partition.add_waiter(self, bound)
            if wanted.bytes_max > 0:
                self._limits_bytes += wanted.bytes_max
            data = self.results[place]
            if wanted.offset < data.high_watermark:
                self._readable_bytes += bytes_readable(partition, wanted, data, self._isolation_level)
        self._watched = len(self._wants)

    def _park(self) -> None:
        if self._limits_bytes > 0:
            self._bytes_min = min(self._bytes_min, self._limits_bytes)
        if self._readable_bytes >= self._bytes_min:
            self._finish()
            return
        self._connection.parked[self] = None
        self._services.metrics.parked_fetches += 1
        self._timer = self._services.timers.at(self._deadline_ms, self._finish)

    def readable(self, partition: Replica, new_bytes: int) -> None:
        """Count bytes that became readable; the partition calls this."""
        place = self._places[partition]
        self._changed[place] = None
        self._readable_bytes += ENOUGH_BYTES if self._is_overtaken(place, partition) else new_bytes
        if self._timer is not None and self._readable_bytes >= self._bytes_min:
            self._finish()

    def _is_overtaken(self, place: int, partition: Replica) -> bool:
        """Return whether a newer segment is readable than that of this fetch; the response cannot grow then."""
        role = partition.role
        below = role.last_stable_offset if self._isolation_level == READ_COMMITTED else role.high_watermark
        return self._wants[place].offset < partition.log.active.base_offset <= below

    def answer_now(self) -> None:
        self._deadline_ms = 0.0
        if self._timer is not None:
            self._finish()

    def check_access(self) -> None:
        """Refuse the partitions that the client may no longer read, and tell it at once if there are any."""
        if self._may_read is None:
            return
        for place, wanted in enumerate(self._wants):
            if wanted.is_allowed and not self._may_read(wanted):
                self._forget(place)
                self._wants[place] = wanted._replace(is_allowed=False)
                self.results[place] = failed(wanted.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                self.has_news = True
        if self.has_news and self._timer is not None:
            self._finish()

    def abandon(self) -> None:
        """Stop, because the client is gone."""
        self.finished = True
        self._leave()

    def files(self) -> Iterator[FileHandle]:
        """Return the files of the results so far, which must stay open until the response is sent."""
        return (data.records.file for data in self.results if isinstance(data.records, FileRange))

    def _leave(self) -> None:
        self._connection.parked.pop(self, None)
        if self._places:
            for partition in self._places:
                partition.remove_waiter(self)
            self._places.clear()
        if self._timer is not None:
            self._services.timers.cancel(self._timer)
            self._timer = None
            self._services.metrics.parked_fetches -= 1

    def _finish(self) -> None:
        """Stop waiting: read the changed partitions again, and respond."""
        self._leave()
        if self._changed:
            self._read_changed(iter(self._changed))
        else:
            self._answer()

    def _read_changed(self, places: Iterator[int]) -> None:
        """Read changed partitions again, in slices too: a fetch that waits for many bytes may have many of them."""
        if self.finished:
            return
        count = 0
        for place in islice(places, FETCH_PARTITIONS_PER_SLICE):
            count += 1
            self._forget(place)
            self.results[place] = self._read(self._wants[place])
        if count < FETCH_PARTITIONS_PER_SLICE:
            self._connection.parked.pop(self, None)
            self._answer()
            return
        self._connection.parked[self] = None
        self._next_turn(lambda: self._read_changed(places))

    def _next_turn(self, call: Callable[[], None]) -> None:
        """Continue in the next turn, at the expense of the client."""
        self._services.timers.next_turn(self._services.client_quotas.charged(self._connection, call))

    def _forget(self, place: int) -> None:
        """Give back the bytes of the response that the partition has taken."""
        earlier = self.results[place].records
        if earlier is not None and not isinstance(earlier, bytes):
            self.total_bytes -= earlier.length
            self._bytes_left += earlier.length

    def _answer(self) -> None:
        self.finished = True
        ranges = [data.records for data in self.results if isinstance(data.records, FileRange)]
        self._services.when_hot(ranges, lambda: self._respond(self._wants, self.results))
