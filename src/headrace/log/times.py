"""Find offsets by timestamp: the first record at or after a time, and the newest record.

A search may read old segments, so it is a closure for a helper thread. It opens its own files, under either of the
names that a segment can have, and touches nothing of the log.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from headrace.ports.disk import FileHandle
from headrace.wire.records.header import BASE_OFFSET, LAST_OFFSET_DELTA, LEADER_EPOCH, MAX_TIMESTAMP, HeaderFields
from headrace.wire.records.reader import first_at_or_after as first_record_at_or_after
from headrace.wire.records.reader import records

from . import names
from .index import Entry, IndexFile
from .open_files import OpenFile, OpenFiles
from .segment import Segment, newest_time
from .walk import BatchWalk, has_batch_at

if TYPE_CHECKING:
    from .partition_log import PartitionLog


SEGMENTS_SEARCHED_MAX = 16
"""Segments searched. The first segment that reaches a time has the record, unless it is below the log start or a header
is wrong.
"""


class TimestampedOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class SearchCancelled(Exception):
    """The result of the search is no longer needed."""


class _Place(NamedTuple):
    """A segment as it was when the search was created."""

    path: str
    size: int
    base_offset: int
    max_timestamp: int
    offset_index: IndexFile
    time_index: IndexFile


class _Search:
    """Everything a search needs, copied from the log when it was created."""

    def __init__(self, log: "PartitionLog", segments: Iterable[Segment]) -> None:
        self.start_offset = log.start_offset
        self.files = OpenFiles(log.disk)
        self.cancelled = False
        self.places = [
            _Place(
                segment.log.path,
                segment.size,
                segment.base_offset,
                segment.max_timestamp,
                segment.index.copy(self.files),
                segment.time_index.copy(self.files),
            )
            for segment in segments
        ]

    def first_at_or_after(self, timestamp_ms: int) -> TimestampedOffset | None:
        for place in self.places:
            if place.max_timestamp >= timestamp_ms:
                found = self._first_in_segment(place, timestamp_ms)
                if found is not None:
                    return found
        return None

    def newest_timestamp(self) -> int | None:
        """Return the newest timestamp. In the first segment only records from the log start on count, so its headers
        are walked if needed.
        """
        rest = [place.max_timestamp for place in self.places if place.base_offset >= self.start_offset]
        known = max(rest, default=None)
        if not self.places or (known is not None and known >= self.places[0].max_timestamp):
            return known
        return max((*self._timestamps(self.places[0]), *rest), default=None)

    def _timestamps(self, place: _Place) -> Iterator[int]:
        for position, fields, walk in self._batches(place, None):
            if fields[BASE_OFFSET] >= self.start_offset:
                yield newest_time(fields)
            elif fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] >= self.start_offset:
                batch = walk.batch(position, fields)
                yield from (record.timestamp for record in records(batch) if record.offset >= self.start_offset)

    def _first_in_segment(self, place: _Place, timestamp_ms: int) -> TimestampedOffset | None:
        for position, fields, walk in self._batches(place, _first_entry(place, timestamp_ms)):
            last_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
            if fields[MAX_TIMESTAMP] >= timestamp_ms and last_offset >= self.start_offset:
                found = self._first_in_batch(walk.batch(position, fields), fields[BASE_OFFSET], timestamp_ms)
                if found is not None:
                    return TimestampedOffset(*found, fields[LEADER_EPOCH])
        return None

    def _first_in_batch(self, batch: bytes, base_offset: int, timestamp_ms: int) -> tuple[int, int] | None:
        if base_offset >= self.start_offset:
            return first_record_at_or_after(batch, timestamp_ms, between=self._check)
        for record in records(batch):
            if record.offset >= self.start_offset and record.timestamp >= timestamp_ms:
                return record.offset, record.timestamp
        return None

    def _batches(self, place: _Place, begin: Entry | None) -> Iterator[tuple[int, HeaderFields, BatchWalk]]:
        """Yield batches from the one that the offset index entry names, or from the first if there is no valid
        entry.
        """
        disk, file = self.files.disk, _open(self.files, place.path)
        if file is None:
            return
        position, first_offset = 0, place.base_offset
        if begin is not None and begin[1] < place.size:
            last_offset = first_offset + begin[0]
            if has_batch_at(disk, file, begin[1], first_offset=first_offset, last_offset=last_offset):
                position = begin[1]
        walk = BatchWalk(disk, file, position=position, end=place.size, next_offset=first_offset)
        for at, fields in walk:
            self._check()
            yield at, fields, walk

    def _check(self) -> None:
        if self.cancelled:
            raise SearchCancelled


class TimeSearch:
    """A search that a helper thread runs once. Any thread may cancel it."""

    def __init__(self, search: _Search, find: Callable[[], TimestampedOffset | None]) -> None:
        self._search = search
        self._find = find

    def __call__(self) -> TimestampedOffset | None:
        try:
            return self._find()
        finally:
            self._search.files.close_all()

    def cancel(self) -> None:
        """End the search with `SearchCancelled` at the next batch, or after a few records within a batch."""
        self._search.cancelled = True


def first_at_or_after(log: "PartitionLog", timestamp_ms: int, below: int) -> TimeSearch:
    due = (segment for segment in _held(log) if segment.max_timestamp >= timestamp_ms)
    search = _Search(log, islice(due, SEGMENTS_SEARCHED_MAX))

    def find() -> TimestampedOffset | None:
        found = search.first_at_or_after(timestamp_ms)
        return found if found is not None and found.offset < below else None

    return TimeSearch(search, find)


def newest(log: "PartitionLog") -> TimeSearch:
    """Find the newest record: in the first segment, or in the first of the others that reaches their newest
    timestamp.
    """
    held = list(_held(log))
    search = _Search(log, (*held[:1], *sorted(held[1:], key=lambda segment: -segment.max_timestamp)[:1]))

    def find() -> TimestampedOffset | None:
        timestamp_ms = search.newest_timestamp()
        return search.first_at_or_after(timestamp_ms) if timestamp_ms is not None else None

    return TimeSearch(search, find)


def _held(log: "PartitionLog") -> Iterator[Segment]:
    """Return the segments that hold readable records."""
    return (segment for segment in log.segments if segment.size and segment.next_offset > log.start_offset)


def _first_entry(place: _Place, timestamp_ms: int) -> Entry | None:
    """Return the start of the search: every batch before the last older time index entry is older than the
    timestamp.
    """
    try:
        older = place.time_index.floor(timestamp_ms - 1)
        return place.offset_index.floor(older[1]) if older is not None else None
    except FileNotFoundError:
        return None  # renamed meanwhile: walk the segment instead


def _open(files: OpenFiles, path: str) -> FileHandle | None:
    for name in (path, path + names.DELETED):
        try:
            return files.handle(OpenFile(name))
        except FileNotFoundError:
            continue
    return None
