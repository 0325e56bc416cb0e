"""Offsets by time: which record is the first at or after a time, and which is the newest.

The answer may need reads of cold segments, so it is a closure for a helper. It opens its own files by name, under
either of the names a segment can have, and touches nothing of the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headrace.ports.disk import FileHandle
from headrace.wire.records.header import BASE_OFFSET, LAST_OFFSET_DELTA, LEADER_EPOCH, MAX_TIMESTAMP
from headrace.wire.records.reader import first_at_or_after as first_record_at_or_after

from . import names
from .index import IndexFile
from .open_files import OpenFile, OpenFiles
from .walk import BatchWalk

if TYPE_CHECKING:
    from .partition_log import PartitionLog


class TimestampedOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


Search = Callable[[], TimestampedOffset | None]


class _Place(NamedTuple):
    """A segment as it was when the search was asked for."""

    path: str
    size: int
    base_offset: int
    offset_index: IndexFile
    time_index: IndexFile


def first_at_or_after(log: "PartitionLog", timestamp_ms: int, below: int) -> Search:
    start_offset = log.start_offset
    due = [s for s in log.segments if s.size and s.max_timestamp >= timestamp_ms and s.next_offset > start_offset]
    files = OpenFiles(log.disk)
    places = [_Place(s.log.path, s.size, s.base_offset, s.index.copy(files), s.time_index.copy(files)) for s in due]

    def search() -> TimestampedOffset | None:
        try:
            for place in places:
                found = _search_segment(files, place, timestamp_ms, start_offset)
                if found is not None:
                    return found if found.offset < below else None
            return None
        finally:
            files.close_all()

    return search


def newest(log: "PartitionLog") -> Search:
    start_offset = log.start_offset
    held = [s for s in log.segments if s.size and s.next_offset > start_offset]
    if not held:
        return lambda: None
    newest_ms = max(segment.max_timestamp for segment in held)
    return first_at_or_after(log, newest_ms, log.end_offset)


def _search_segment(files: OpenFiles, place: _Place, timestamp_ms: int, start_offset: int) -> TimestampedOffset | None:
    file = _open(files, place.path)
    if file is None:
        return None
    begin = _first_position(place, timestamp_ms)
    walk = BatchWalk(files.disk, file, position=begin, end=place.size, next_offset=place.base_offset)
    for position, fields in walk:
        last_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
        if fields[MAX_TIMESTAMP] < timestamp_ms or last_offset < start_offset:
            continue
        found = first_record_at_or_after(walk.batch(position, fields), timestamp_ms)
        if found is not None and found.offset >= start_offset:
            return TimestampedOffset(found.offset, found.timestamp, fields[LEADER_EPOCH])
    return None


def _first_position(place: _Place, timestamp_ms: int) -> int:
    """Every batch before the one of the last older time entry is older than the time."""
    try:
        older = place.time_index.floor(timestamp_ms - 1)
        indexed = place.offset_index.floor(older[1]) if older is not None else None
    except FileNotFoundError:
        return 0  # renamed meanwhile: walk the segment instead
    return indexed[1] if indexed is not None else 0


def _open(files: OpenFiles, path: str) -> FileHandle | None:
    for name in (path, path + names.DELETED):
        try:
            return files.handle(OpenFile(name))
        except FileNotFoundError:
            continue
    return None
