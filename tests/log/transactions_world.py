"""Transactions for the log's tests: batches and markers, a naive model of them, and a reader of what is committed."""

from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.log.partition_log import PartitionLog
from headrace.log.transaction_index import AbortedTransaction
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.markers import Marker, control_batch, is_marker, read_marker
from headrace.wire.records.reader import batches, check_batch, records

from .world import NOW_MS, bytes_of, fields_of


def data_batch(
    *values: bytes, producer_id: int, epoch: int = 0, sequence: int, transactional: bool = True
) -> bytearray:
    return build_batch(
        [NewRecord(NOW_MS, b"key", value) for value in values],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def stage_data(log: PartitionLog, batch: bytearray) -> int:
    return log.stage(memoryview(batch), fields_of(batch), 0, NOW_MS)


def stage_marker(
    log: PartitionLog, producer_id: int, *, epoch: int = 0, commit: bool, coordinator_epoch: int = 0
) -> int:
    batch = control_batch(
        producer_id=producer_id,
        producer_epoch=epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        timestamp=NOW_MS,
    )
    marker = Marker(commit, coordinator_epoch)
    return log.transactions.stage_marker(memoryview(batch), fields_of(batch), marker, 0, NOW_MS)


class Entry(NamedTuple):
    """One batch of the naive log."""

    offset: int
    size: int
    producer_id: int
    transactional: bool
    ends: bool | None
    """None for data; whether a marker commits."""
    values: tuple[bytes, ...]


@dataclass
class NaiveLog:
    """Every batch in a list; every question answered by walking it."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return self.entries[-1].offset + self.entries[-1].size if self.entries else 0

    def cut(self, end_offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry.offset < end_offset]

    def open(self, below: int | None = None) -> dict[int, int]:
        """Producers within a transaction, and where each began."""
        began: dict[int, int] = {}
        for entry in self.entries:
            if below is not None and entry.offset >= below:
                break
            if entry.ends is not None:
                began.pop(entry.producer_id, None)
            elif entry.transactional:
                began.setdefault(entry.producer_id, entry.offset)
        return began

    def aborted(self) -> list[AbortedTransaction]:
        found = []
        for place, entry in enumerate(self.entries):
            began = NaiveLog(self.entries[:place]).open()
            if entry.ends is False and entry.producer_id in began:
                stable = min(NaiveLog(self.entries[: place + 1]).open().values(), default=entry.offset + 1)
                found.append(AbortedTransaction(entry.producer_id, began[entry.producer_id], entry.offset, stable))
        return found

    def last_stable_offset(self, high_watermark: int) -> int:
        """As far as every transaction is decided by a marker that is committed itself."""
        return min((high_watermark, *self.open(below=high_watermark).values()))

    def committed(self, below: int, begin: int = 0) -> list[tuple[int, bytes]]:
        """Return what a reader of committed transactions sees."""
        aborted = self.aborted()
        return [
            (entry.offset + at, value)
            for entry in self.entries
            for at, value in enumerate(entry.values)
            if begin <= entry.offset + at < below
            and not (
                entry.transactional
                and any(
                    each.producer_id == entry.producer_id and each.first_offset <= entry.offset < each.last_offset
                    for each in aborted
                )
            )
        ]


def index_of(log: PartitionLog) -> list[AbortedTransaction]:
    """All entries of the log's indexes, each checked to be of its segment."""
    found = []
    for segment in log.segments:
        entries = list(segment.transactions.since(0))
        assert all(segment.base_offset <= entry.last_offset < segment.next_offset for entry in entries)
        found += entries
    return found


def read_committed(log: PartitionLog, below: int, *, begin: int, max_bytes: int) -> list[tuple[int, bytes]]:
    """A consumer as Kafka's clients are: it drops what the aborted transactions of each answer have written."""
    found: list[tuple[int, bytes]] = []
    offset = begin
    while (part := log.read(offset, max_bytes, below, True)) is not None:
        aborted = sorted(log.transactions.aborted(offset, part, below), key=lambda entry: entry[1])
        dropped: set[int] = set()
        for batch in batches(bytes_of(log.disk, part)):
            fields = check_batch(batch)
            base, last, producer_id = fields[0], fields[0] + fields[6], fields[9]
            while aborted and aborted[0][1] <= last:
                dropped.add(aborted.pop(0)[0])
            if is_marker(fields):
                marker = read_marker(batch)  # None where compaction left only the header of one
                if marker is not None and not marker.commit:
                    dropped.discard(producer_id)
            elif not (fields[5] & 0x10 and producer_id in dropped):
                found += [(record.offset, record.value or b"") for record in records(batch) if record.offset >= begin]
            assert base < below
            offset = last + 1
    return found
