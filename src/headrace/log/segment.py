"""One segment: consecutive batches in a `.log` file, with two sparse indexes into it.

A segment with aborted transactions also has a transaction index.
"""

from collections.abc import Sequence

from headrace.ports.disk import Disk
from headrace.wire.records.batch_walk import BatchPlace
from headrace.wire.records.header import (
    BASE_OFFSET,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    HeaderFields,
)

from . import names
from .config import LogConfig
from .errors import DamagedLog
from .files import create_empty, unlink_if_present
from .index import OFFSET_ENTRY, TIME_ENTRY, Entry, IndexFile
from .open_files import OpenFile, OpenFiles
from .transaction_index import TransactionIndex
from .walk import HEADER_CHUNK_BYTES, BatchWalk, has_batch_at

RELATIVE_OFFSET_MAX = (1 << 31) - 1
"""An index entry stores an offset relative to the segment's base offset in four bytes."""
NO_TIMESTAMP = -1


def newest_time(fields: HeaderFields) -> int:
    """Return the newest timestamp of a batch's records; a batch that compaction emptied keeps a timestamp only for its
    producer.
    """
    return fields[MAX_TIMESTAMP] if fields[RECORD_COUNT] else NO_TIMESTAMP


class Segment:
    __slots__ = (
        "_disk",
        "_files",
        "allocated",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "damaged",
        "first_timestamp",
        "index",
        "log",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "size",
        "stem",
        "time_index",
        "transactions",
    )

    def __init__(self, files: OpenFiles, folder: str, base_offset: int, config: LogConfig, created_ms: int) -> None:
        self._disk: Disk = files.disk
        self._files = files
        self.base_offset = base_offset
        self.stem = names.segment_stem(folder, base_offset)
        self.log = OpenFile(self.stem + names.LOG)
        self.index = IndexFile(files, self.stem + names.INDEX, OFFSET_ENTRY, config.segment_index_bytes)
        self.time_index = IndexFile(files, self.stem + names.TIME_INDEX, TIME_ENTRY, config.segment_index_bytes)
        self.transactions = TransactionIndex(files, self.stem + names.TRANSACTION_INDEX)
        self.size = 0
        """Bytes that hold batches; the file may be longer by its preallocated space."""
        self.allocated = 0
        self.next_offset = base_offset
        self.bytes_since_index = 0
        self.created_ms = created_ms
        self.first_timestamp = NO_TIMESTAMP
        """The maximum timestamp of the first batch, from which the segment's age is counted."""
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.damaged: tuple[tuple[int, int], ...] = ()
        """Start and end positions of damaged ranges, ascending."""

    @classmethod
    def create(cls, files: OpenFiles, folder: str, base_offset: int, config: LogConfig, now_ms: int) -> "Segment":
        segment = cls(files, folder, base_offset, config, now_ms)
        for file in segment.all_files():
            create_empty(files.disk, file.path)
        return segment

    def note(self, places: Sequence[BatchPlace], index_interval_bytes: int) -> None:
        """HOT. Account for batches that were added to the file; both live appends and recovery call this."""
        position = self.size
        since_index = self.bytes_since_index
        if self.first_timestamp < 0 and places:
            self.first_timestamp = places[0][2]
        last = self.next_offset - 1
        for _base, last, timestamp, size in places:
            if timestamp > self.max_timestamp:
                self.max_timestamp = timestamp
                self.max_timestamp_offset = last
            if since_index > index_interval_bytes:
                self.index.append(last - self.base_offset, position)
                self.index_time()
                since_index = 0
            position += size
            since_index += size
        self.size = position
        self.bytes_since_index = since_index
        self.next_offset = last + 1

    def index_time(self) -> None:
        """Add the newest timestamp so far to the time index if it is newer than the last entry."""
        last = self.time_index.last
        if self.max_timestamp > (last[0] if last is not None else NO_TIMESTAMP):
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)

    def has_room(self, size: int, last_offset: int, timestamp: int, config: LogConfig, now_ms: int) -> bool:
        """HOT. Return whether batches of that size, last offset and timestamp still fit in this segment."""
        if self.size + size > config.segment_bytes or last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return False
        if self.size == 0:
            return True
        age_ms = timestamp - self.first_timestamp if self.first_timestamp >= 0 else now_ms - self.created_ms
        return age_ms <= config.segment_ms and not (self.index.is_full or self.time_index.is_full)

    def find(self, offset: int) -> tuple[int, int, int] | None:
        """Return position, size and base offset of the first batch that ends at or after `offset`; None if all end
        before it.
        """
        return self._find_from(self._indexed_through(offset), offset)

    def position_before(self, offset: int) -> int:
        """Return the position of a batch that ends below the offset, the last one in the index; 0 without one."""
        return self._indexed_through(offset - 1)

    def _indexed_through(self, offset: int) -> int:
        place = self.index.count_through(offset - self.base_offset) - 1
        step = 1
        while place >= 0:
            entry = self.index.entry(place)
            if self._entry_matches(entry):
                return entry[1]
            place -= step  # the index entry is wrong: use an earlier one, or the beginning of the segment
            step *= 2
        return 0

    def _entry_matches(self, entry: Entry) -> bool:
        """Return whether the index entry matches the file."""
        first_offset, file = self.base_offset, self._files.handle(self.log)
        return entry[1] < self.size and has_batch_at(
            self._disk, file, entry[1], first_offset=first_offset, last_offset=first_offset + entry[0]
        )

    def _find_from(self, position: int, offset: int) -> tuple[int, int, int] | None:
        file = self._files.handle(self.log)
        while position < self.size:
            block = self._disk.read(file, min(HEADER_CHUNK_BYTES, self.size - position), position)
            at = 0
            while at + HEADER_SIZE <= len(block):
                fields = HEADER.unpack_from(block, at)
                size = fields[LENGTH] + LOG_OVERHEAD
                if fields[MAGIC] != CURRENT_MAGIC:
                    raise DamagedLog(self.log.path, position + at, f"unknown batch format {fields[MAGIC]}")
                if fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] >= offset:
                    return position + at, size, fields[BASE_OFFSET]
                if size < HEADER_SIZE:
                    raise DamagedLog(self.log.path, position + at, f"a batch of {size} bytes")
                at += size
            if at == 0:
                raise DamagedLog(self.log.path, position, f"the file ends before position {self.size}")
            position += at
        return None

    def cut_before(self, start: int, limit: int) -> int:
        """Return the last batch boundary above `start` and not above `limit` that the index knows; otherwise
        `start`.
        """
        entry = self.index.floor_by_second(limit)
        return entry[1] if entry is not None and entry[1] > start and self._entry_matches(entry) else start

    def whole_batches(self, start: int, bytes_max: int, at_least_one: bool) -> int:
        """Return the end of the batches from `start` that fit in `bytes_max`, by their headers; `start` if none
        fits.
        """
        file = self._files.handle(self.log)
        end = start
        while end < self.size:
            size = LOG_OVERHEAD + int.from_bytes(self._disk.read(file, 4, end + LENGTH_AT), "big")
            if end + size - start > bytes_max:
                return end + size if end == start and at_least_one else end
            end += size
        return end

    def base_offset_at(self, position: int) -> int:
        """Return the base offset of the batch at a boundary."""
        return int.from_bytes(self._disk.read(self._files.handle(self.log), 8, position), "big")

    def end_before(self, position: int) -> int:
        """Return the end offset of the last sound batch before a position."""
        entry = self.index.floor_by_second(position - 1)
        begin = entry[1] if entry is not None and self._entry_matches(entry) else 0
        file = self._files.handle(self.log)
        walk = BatchWalk(self._disk, file, position=begin, end=position, next_offset=self.base_offset)
        for _batch in walk:
            pass
        return walk.next_offset

    def all_files(self) -> tuple[OpenFile, ...]:
        """Return the existing files: not every segment has a transaction index."""
        always = (self.log, self.index.file, self.time_index.file)
        return (*always, self.transactions.file) if self.transactions.exists else always


def unlink_segments(segments: Sequence[Segment], files: OpenFiles, folder: str) -> None:
    """Unlink segments at once and durably: a segment that came back after a crash would follow batches that it does
    not belong to.
    """
    for segment in segments:
        for file in segment.all_files():
            files.retire(file)
        for suffix in names.SEGMENT_FILES:
            unlink_if_present(files.disk, segment.stem + suffix)
    files.disk.sync_directory(folder)
