"""Clean segments: write the records worth keeping into new files beside the old ones, in one pass over the log.

The cleaner first reads the dirty part and maps every key to its last offset; then it reads every segment and writes the
records that are still needed. It decodes records, so it runs in a process of its own, outside the loop: its input is a
plan of paths and numbers, and it yields each group of segments that it has written. It verifies every checksum before
it stores bytes again ("Damage on disk" in docs/guarantees.md).
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from headrace.ports.disk import Disk
from headrace.ports.spawner import BytesProcessed
from headrace.wire.errors import ProtocolError
from headrace.wire.records.header import (
    BASE_OFFSET,
    HEADER,
    LAST_OFFSET_DELTA,
    PRODUCER_ID,
    RECORD_COUNT,
    HeaderFields,
)
from headrace.wire.records.markers import is_marker

from .. import names, transaction_index
from ..errors import CorruptFile, DamagedLog
from ..files import read_whole
from ..segment import RELATIVE_OFFSET_MAX
from ..transaction_index import AbortedTransaction
from ..walk import BatchWalk
from .key_map import KeyMap
from .plan import CleaningPlan, SourceSegment
from .producer_ends import ProducerEnds
from .records import delete_horizon, emptied, open_entries, rebuilt
from .transactions import AbortedTransactionMap, EmptyTransactions, is_transactional
from .writer import CleanedFiles, CleanedSegment

GROUP_SEGMENTS_MAX = 50
"""Most segments merged into one: a swap keeps the files of all of them open."""
REPORT_BYTES = 256 << 10
"""Interval at which a cleaning reports the bytes it has read, so that the broker can throttle it."""
PROGRESS_BYTES = 8 << 20
"""Interval at which a cleaning reports progress to the broker when no group ends earlier."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counters of one cleaning: bytes and records read and kept."""

    bytes_read: int = 0
    records_read: int = 0
    records_kept: int = 0
    unreadable_batches: int = 0
    """Batches copied unchanged because their records cannot be decoded."""


@dataclass(frozen=True, slots=True)
class CleaningProgress:
    """A sign that the cleaning is still running; sent at intervals and after each group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedGroup(CleaningProgress):
    """The result for some adjacent segments: `files` hold the records that were kept, synced but not yet in use."""

    sources: tuple[SourceSegment, ...]
    files: CleanedFiles | None
    """None if no record of the single segment has to be removed."""
    cleaned_to: int
    """The offset below which every key has one record once all groups are in use."""
    counts: Counts = field(default_factory=Counts)


def clean(disk: Disk, plan: CleaningPlan) -> Iterator[BytesProcessed | CleaningProgress]:
    """Yield each group as soon as its files are synced, and in between the bytes processed and progress reports."""
    spent = 0
    for result in _clean(disk, plan):
        yield result
        if isinstance(result, BytesProcessed):
            spent += max(result.bytes, REPORT_BYTES)
            if spent >= PROGRESS_BYTES:
                spent = 0
                yield CleaningProgress()


def _clean(disk: Disk, plan: CleaningPlan) -> Iterator[BytesProcessed | CleanedGroup]:
    aborted = AbortedTransactionMap()
    producers = ProducerEnds(now_ms=plan.now_ms, expiration_ms=plan.producer_expiration_ms)
    yield from _read_headers(disk, plan, aborted, producers)
    keys = KeyMap(plan.key_map_bytes_max)
    cleaned_to = yield from _map_keys(disk, plan, aborted, keys)
    cleaner = _Cleaner(plan, keys, aborted, producers, cleaned_to)
    for group in grouped(plan, cleaned_to):
        yield from cleaner.clean_group(disk, group)


def grouped(plan: CleaningPlan, below: int) -> Iterator[tuple[SourceSegment, ...]]:
    """Group the segments that begin below an offset: small adjacent segments are merged if one segment can hold
    them.
    """
    group: list[SourceSegment] = []
    size = index_bytes = 0
    for segment in plan.segments:
        if segment.base_offset >= below:
            break
        size += segment.size
        index_bytes += segment.index_bytes
        fits = (
            len(group) < GROUP_SEGMENTS_MAX
            and size <= plan.segment_bytes
            and index_bytes <= plan.segment_index_bytes
            and group
            and segment.end_offset - group[0].base_offset <= RELATIVE_OFFSET_MAX
        )
        if group and not fits:
            yield tuple(group)
            group, size, index_bytes = [], segment.size, segment.index_bytes
        group.append(segment)
    if group:
        yield tuple(group)


_Batches = Iterator[tuple[HeaderFields, bytes, bool]]


def _batches(disk: Disk, folder: str, segment: SourceSegment, *, headers_below: int = 0) -> _Batches:
    """Yield the header and bytes of every batch and whether it is the segment's last; bytes only from `headers_below`
    on.
    """
    path = names.segment_stem(folder, segment.base_offset) + names.LOG
    file = disk.open(path, writable=False)
    try:
        walk = BatchWalk(
            disk, file, position=0, end=segment.size, next_offset=segment.base_offset, check_from_offset=headers_below
        )
        for position, fields in walk:
            wanted = fields[BASE_OFFSET] >= headers_below
            yield fields, walk.batch(position, fields) if wanted else b"", walk.position >= segment.size
        if walk.position < segment.size:
            raise DamagedLog(path, walk.position, walk.damage or "zeros where a batch should be")
    finally:
        disk.close(file)


def _aborted_by_marker(disk: Disk, folder: str, group: Sequence[SourceSegment]) -> dict[int, AbortedTransaction]:
    """Return the aborted transactions whose markers are in these segments."""
    found: dict[int, AbortedTransaction] = {}
    for segment in group:
        path = names.segment_stem(folder, segment.base_offset) + names.TRANSACTION_INDEX
        if not disk.exists(path):
            continue
        try:
            entries = transaction_index.decode(read_whole(disk, path, transaction_index.INDEX_BYTES_MAX))
        except CorruptFile as error:
            raise DamagedLog(path, 0, str(error)) from None
        found.update((entry.last_offset, entry) for entry in entries)
    return found


def _read_headers(
    disk: Disk, plan: CleaningPlan, aborted: AbortedTransactionMap, producers: ProducerEnds
) -> Iterator[BytesProcessed]:
    """Read the headers of the whole log: each producer's last batch, and the outcome of transactions in the dirty
    part.
    """
    for segment in (*plan.segments, *plan.later_segments):
        path = names.segment_stem(plan.folder, segment.base_offset) + names.LOG
        file = disk.open(path, writable=False)
        try:
            walk = BatchWalk(disk, file, position=0, end=segment.size, next_offset=segment.base_offset)
            for position, fields in walk:
                if fields[PRODUCER_ID] < 0:
                    continue
                producers.note(fields)
                if fields[BASE_OFFSET] < plan.dirty_from or not is_transactional(fields):
                    continue
                if is_marker(fields):
                    aborted.marker(fields, walk.batch(position, fields))
                else:
                    aborted.data(fields)
        finally:
            disk.close(file)
        yield BytesProcessed(0)


def _map_keys(
    disk: Disk, plan: CleaningPlan, aborted: AbortedTransactionMap, keys: KeyMap
) -> Generator[BytesProcessed, None, int]:
    """Fill the key map from the dirty part. Return the offset where it stopped, which is below the plan's end if the
    map is full.
    """
    reached, spent = plan.dirty_from, 0
    for segment in plan.segments:
        if segment.end_offset <= plan.dirty_from:
            continue
        for fields, batch, _is_last in _batches(disk, plan.folder, segment, headers_below=plan.dirty_from):
            base_offset = fields[BASE_OFFSET]
            if base_offset < plan.dirty_from:
                continue
            if keys.is_full:
                return reached
            if not is_marker(fields) and not aborted.covers(fields):
                try:
                    keys.put(base_offset, open_entries(batch, plan.inflated_bytes_max)[1])
                except ProtocolError:
                    pass  # kept unchanged; no older record is removed because of it
            reached = base_offset + fields[LAST_OFFSET_DELTA] + 1
            spent += len(batch)
            if spent >= REPORT_BYTES:
                yield BytesProcessed(spent)
                spent = 0
        reached = max(reached, segment.end_offset)
    yield BytesProcessed(spent)
    return reached


class _Cleaner:
    """Decides, batch by batch in log order, which records to keep."""

    def __init__(
        self,
        plan: CleaningPlan,
        keys: KeyMap,
        aborted: AbortedTransactionMap,
        producers: ProducerEnds,
        cleaned_to: int,
    ) -> None:
        self._plan = plan
        self._keys = keys
        self._aborted = aborted
        self._producers = producers
        self._cleaned_to = cleaned_to
        self._transactions = EmptyTransactions()
        self._met_unreadable = False
        """From an unreadable batch on, tombstones are kept: they may hide one of its records."""
        self._counts = Counts()

    def clean_group(self, disk: Disk, group: Sequence[SourceSegment]) -> Iterator[BytesProcessed | CleanedGroup]:
        plan = self._plan
        self._counts = counts = Counts()
        changed = len(group) > 1
        aborted = _aborted_by_marker(disk, plan.folder, group)
        with CleanedSegment(disk, plan, group[0].base_offset) as written:
            spent = 0
            for fields, batch, is_last in self._group_batches(disk, group):
                kept = self._kept(fields, batch)
                if not kept and (is_last or self._producers.is_last(fields)):
                    kept = emptied(fields)
                changed = changed or (kept is not batch and kept != batch)
                counts.bytes_read += len(batch)
                spent += len(batch)
                if kept:
                    kept_fields: HeaderFields = HEADER.unpack_from(kept)
                    written.append(kept_fields, kept)
                    spent += len(kept)
                    if is_marker(kept_fields) and kept_fields[RECORD_COUNT] and kept_fields[BASE_OFFSET] in aborted:
                        written.note_aborted(aborted[kept_fields[BASE_OFFSET]])
                if spent >= REPORT_BYTES:
                    yield BytesProcessed(spent)
                    spent = 0
            files = written.finish() if changed else None
        yield BytesProcessed(spent)
        yield CleanedGroup(sources=tuple(group), files=files, cleaned_to=self._cleaned_to, counts=counts)

    def _group_batches(self, disk: Disk, group: Iterable[SourceSegment]) -> _Batches:
        """Yield batches as `_batches` does, marking the last of the whole group: every segment still ends where the
        next begins.
        """
        group = tuple(group)
        for segment in group:
            for fields, batch, is_last in _batches(disk, self._plan.folder, segment):
                yield fields, batch, is_last and segment is group[-1]

    def _kept(self, fields: HeaderFields, batch: bytes) -> bytes | bytearray:
        """Return the batch itself, a smaller one, or nothing."""
        counts = self._counts
        counts.records_read += fields[RECORD_COUNT]
        if is_marker(fields):
            kept = self._kept_marker(fields, batch)
            counts.records_kept += fields[RECORD_COUNT] if kept else 0
            return kept
        self._transactions.data(fields)
        if fields[BASE_OFFSET] >= self._cleaned_to:
            counts.records_kept += fields[RECORD_COUNT]
            return batch
        if not fields[RECORD_COUNT]:
            return batch if self._producers.is_last(fields) else b""
        if self._aborted.covers(fields):
            return b""
        return self._kept_records(fields, batch)

    def _kept_marker(self, fields: HeaderFields, batch: bytes) -> bytes | bytearray:
        """Keep a transaction marker until nothing of its transaction is left and readers had time to see it."""
        is_useless = self._transactions.marker_is_last(fields)
        horizon_ms = delete_horizon(fields)
        if not is_useless or fields[BASE_OFFSET] >= self._cleaned_to or not fields[RECORD_COUNT]:
            return batch
        if horizon_ms is not None:
            return b"" if horizon_ms <= self._plan.now_ms else batch
        try:
            plain, entries = open_entries(batch, self._plan.inflated_bytes_max)
        except ProtocolError:
            return batch
        return rebuilt(fields, plain, entries, horizon_ms=self._plan.now_ms + self._plan.delete_retention_ms)

    def _kept_records(self, fields: HeaderFields, batch: bytes) -> bytes | bytearray:
        counts, plan = self._counts, self._plan
        try:
            plain, entries = open_entries(batch, plan.inflated_bytes_max)
        except ProtocolError:
            counts.unreadable_batches += 1
            self._met_unreadable = True
            counts.records_kept += fields[RECORD_COUNT]
            return batch
        horizon_ms = delete_horizon(fields)
        tombstones_stay = self._met_unreadable or horizon_ms is None or plan.now_ms < horizon_ms
        kept = self._keys.kept(fields[BASE_OFFSET], entries, tombstones=tombstones_stay)
        counts.records_kept += len(kept)
        if not kept:
            return b""
        begins_horizon = horizon_ms is None and not all(entry.has_value for entry in kept)
        if begins_horizon:
            return rebuilt(fields, plain, kept, horizon_ms=plan.now_ms + plan.delete_retention_ms)
        return batch if len(kept) == len(entries) else rebuilt(fields, plain, kept, horizon_ms=None)
