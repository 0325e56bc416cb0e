"""The reading state of one partition: its position, its fetched batches, and which of their records are returned.

With read_committed, batches of aborted transactions are skipped, by the list that came with them (KIP-98).
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count, repeat
from typing import NamedTuple, TypeVar

from headrace.client.core.record_layouts import columns_of
from headrace.client.errors import BadResponse
from headrace.client.types import ConsumerRecord
from headrace.model.ids import TopicPartition
from headrace.wire.errors import ProtocolError
from headrace.wire.records.compression import INFLATED_BYTES_MAX
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.reader import (
    ControlType,
    batches,
    check_batch,
    control_type,
    decode_records,
    open_records,
    records,
)

T = TypeVar("T")

UNKNOWN_OFFSET = -1
_new_tuple = tuple.__new__
"""Creates a named tuple in a third of the time that its class takes."""

_GENERATIONS = count()


class FetchedBatch(NamedTuple):
    """A whole fetched batch, and the range of its records that is wanted."""

    partition: TopicPartition
    data: memoryview
    begin: int
    """Records below this offset were returned before."""
    end: int
    """The offset after the batch."""
    fields: HeaderFields

    @property
    def is_whole(self) -> bool:
        """Return whether none of its records was returned before."""
        return self.begin <= self.fields[BASE_OFFSET]

    def plain(self) -> bytes | memoryview:
        """Return the uncompressed bytes of its records; copied only if they were compressed."""
        if self.fields[ATTRIBUTES] & COMPRESSION_MASK:
            return open_records(self.data, INFLATED_BYTES_MAX)[1]
        return self.data[HEADER_SIZE:]


class AbortedTransactions:
    """Finds the batches of one fetch that belong to aborted transactions; called batch by batch, in order."""

    __slots__ = ("_aborted", "_producers")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted` are producer ids and first offsets."""
        self._aborted = deque(sorted(aborted, key=lambda each: each[1]))
        self._producers: set[int] = set()

    def hides(self, batch: memoryview, fields: HeaderFields) -> bool:
        last_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
        while self._aborted and self._aborted[0][1] <= last_offset:
            self._producers.add(self._aborted.popleft()[0])
        if fields[ATTRIBUTES] & CONTROL_BIT:
            marker = next(iter(records(batch)), None)
            if marker is not None and control_type(marker) == ControlType.ABORT:
                self._producers.discard(fields[PRODUCER_ID])
            return True
        return bool(fields[ATTRIBUTES] & TRANSACTIONAL_BIT) and fields[PRODUCER_ID] in self._producers


class PartitionReading:
    __slots__ = (
        "_batch",
        "_damage",
        "_given_count",
        "_opened",
        "_partition",
        "_waiting",
        "checked_epoch",
        "end",
        "fetched_bytes",
        "fetched_epoch",
        "generation",
        "high_watermark",
        "is_asking",
        "is_paused",
        "last_epoch",
        "last_stable_offset",
        "log_start",
        "needs_committed",
        "position",
        "preferred_node",
        "preferred_until_ms",
        "redirected_ms",
        "resume_ms",
        "since",
        "start",
    )

    def __init__(self, partition: TopicPartition, start: int | None, *, needs_committed: bool = False) -> None:
        self.position: int | None = None
        """The next offset to return; None while it is looked up."""
        self.start = start
        """The lookup in progress: a time, EARLIEST or LATEST."""
        self.since: int | None = None
        """The time for which no record was found, while the end of the partition is looked up."""
        self.end: int | None = None
        """The end at that time: the new position if there is still no such record."""
        self.needs_committed = needs_committed
        """The position is the group's committed offset, or `start` if there is none."""
        self.generation = next(_GENERATIONS)
        """Changes with every seek and every new reader, so that responses to older requests are recognised."""
        self.is_asking = False
        self.is_paused = False
        self.resume_ms = 0.0
        self.fetched_bytes = 0
        """Bytes of the batches that wait to be decoded."""
        self.high_watermark = self.last_stable_offset = self.log_start = UNKNOWN_OFFSET
        self.last_epoch = -1
        """The leader epoch of the last returned batch."""
        self.fetched_epoch = -1
        """The leader epoch of the last fetched batch, or of the committed offset."""
        self.checked_epoch = -1
        """The newest leader epoch whose leader is known to have all records read so far (KIP-320)."""
        self.preferred_node: int | None = None
        """A nearer replica that the leader named (KIP-392)."""
        self.preferred_until_ms = 0.0
        self.redirected_ms = -math.inf
        """When a node last redirected us to another one."""
        self._partition = partition
        self._waiting: deque[tuple[memoryview, AbortedTransactions | None]] = deque()
        self._opened: list[ConsumerRecord] = []
        self._given_count = 0
        self._batch: FetchedBatch | None = None
        """Decoded records."""
        self._damage: ProtocolError | None = None

    def move(self, position: int | None, start: int | None, *, epoch: int = -1) -> None:
        """Move to an offset; `epoch` is that of the record before it, if known."""
        self.position, self.start, self.needs_committed = position, start, False
        self.since = self.end = None
        self.last_epoch = self.fetched_epoch = epoch
        self.generation = next(_GENERATIONS)
        self.is_asking = False
        self.resume_ms = 0.0
        self._waiting.clear()
        self.fetched_bytes = 0
        self._opened, self._given_count, self._damage = [], 0, None

    def is_drained(self) -> bool:
        return not self._waiting and self._given_count >= len(self._opened) and self._damage is None

    def fetch_position(self) -> int | None:
        """Return the offset to fetch next: after everything fetched."""
        if not self._waiting:
            return self.position if self._given_count >= len(self._opened) else self._opened[-1].offset + 1
        fields = HEADER.unpack_from(self._waiting[-1][0])
        end: int = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
        return end if self.position is None else max(end, self.position)

    def keep(self, fetched: bytes | bytearray | memoryview, aborted: Iterable[tuple[int, int]] | None) -> None:
        """Keep the whole batches of a response; `aborted` is None if all records are wanted."""
        whole = list(batches(fetched, allow_truncated_end=True))
        filter_ = AbortedTransactions(aborted) if aborted is not None else None
        self._waiting.extend((batch, filter_) for batch in whole)
        self.fetched_bytes += sum(map(len, whole))
        if whole:
            self.fetched_epoch = HEADER.unpack_from(whole[-1])[LEADER_EPOCH]

    def take(self, count_max: int, *, check_crcs: bool) -> list[ConsumerRecord]:
        """Return the next records, at most `count_max`; raise CorruptBatch with the position before the damage."""
        if self._damage is not None:
            raise self._damage
        taken: list[ConsumerRecord] = []
        while len(taken) < count_max:
            opened, first = self._opened, self._given_count
            if first >= len(opened):
                try:
                    if not self._open_next(check_crcs=check_crcs):
                        break
                except ProtocolError as damage:
                    if not taken:
                        raise
                    self._damage = damage  # The records before the damage are returned first.
                    break
                continue
            wanted = count_max - len(taken)
            some = opened[first : first + wanted] if first or len(opened) > wanted else opened
            self._given_count = first + len(some)
            taken = taken + some if taken else some
            assert self._batch is not None
            self.position = some[-1].offset + 1 if self._given_count < len(opened) else self._batch.end
        return taken

    def take_batches(self, bytes_max: int, *, check_crcs: bool) -> list[FetchedBatch]:
        """Return the next batches, up to this many bytes; or the rest of one that was begun."""
        if self._damage is not None:
            raise self._damage
        if self._given_count < len(self._opened):
            assert self._batch is not None
            assert self.position is not None
            rest = self._batch._replace(begin=self.position)
            self.position, self._given_count = rest.end, len(self._opened)
            return [rest]
        taken: list[FetchedBatch] = []
        try:
            while bytes_max > 0 and (batch := self._next_visible(check_crcs=check_crcs)) is not None:
                self.position = batch.end
                bytes_max -= len(batch.data)
                taken.append(batch)
        except ProtocolError as damage:
            if not taken:
                raise
            self._damage = damage  # The batches before the damage are returned first.
        return taken

    def _open_next(self, *, check_crcs: bool) -> bool:
        """Decode the next batch that has records to return."""
        batch = self._next_visible(check_crcs=check_crcs)
        if batch is None:
            self._opened, self._given_count, self._batch = [], 0, None
            return False
        opened = open_batch(batch)
        self._opened, self._given_count, self._batch = opened, 0, batch
        if not opened:
            self.position = batch.end
        return True

    def _next_visible(self, *, check_crcs: bool) -> FetchedBatch | None:
        """Skip control batches, aborted ones and those returned before; the position moves past them."""
        while self._waiting:
            data, aborted = self._waiting.popleft()
            self.fetched_bytes -= len(data)
            fields: HeaderFields = check_batch(data) if check_crcs else HEADER.unpack_from(data)
            position, end = self.position, fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
            assert position is not None
            is_hidden = aborted.hides(data, fields) if aborted is not None else fields[ATTRIBUTES] & CONTROL_BIT
            if end > position:
                self.last_epoch = fields[LEADER_EPOCH]
                if not is_hidden:
                    return _new_tuple(FetchedBatch, (self._partition, data, position, end, fields))
                self.position = end
        return None


def open_batch(batch: FetchedBatch) -> list[ConsumerRecord]:
    """Return the records of a batch that were not returned before."""
    (topic, index), begin, new = batch.partition, batch.begin, _new_tuple
    fields, plain = open_records(batch.data, INFLATED_BYTES_MAX)
    columns = columns_of(fields, plain)
    if columns is None:
        opened = [new(ConsumerRecord, (topic, index, *record)) for record in decode_records(fields, plain)]
    else:
        opened = list(map(new, repeat(ConsumerRecord), zip(repeat(topic), repeat(index), *columns, strict=False)))
    return opened if batch.is_whole else [record for record in opened if record.offset >= begin]


def readable(batch: FetchedBatch, read: Callable[[FetchedBatch], T]) -> T:
    """Return `read` of a batch that the application already has; records that were produced damaged have a valid
    checksum.
    """
    try:
        return read(batch)
    except ProtocolError as error:
        raise BadResponse(
            f"{batch.partition} is damaged at offset {batch.begin}: {error}; use seek and poll to read the "
            f"records before and behind it, up to offset {batch.end}"
        ) from error
