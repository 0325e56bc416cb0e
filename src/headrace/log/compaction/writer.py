"""Write a cleaned segment: a log file and its indexes, under names that a starting broker does not take for a
segment.
"""

from types import TracebackType
from typing import NamedTuple, Self

from headrace.ports.disk import Buffer, Disk
from headrace.wire.records.header import (
    BASE_OFFSET,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    HeaderFields,
)

from .. import names
from ..config import LogConfig
from ..files import create_empty, unlink_if_present, write_all
from ..open_files import OpenFiles
from ..segment import NO_TIMESTAMP, Segment
from ..transaction_index import AbortedTransaction
from .plan import CleaningPlan

WRITE_BYTES = 1 << 20
"""Batches are collected up to this size before they are written."""


class IndexState(NamedTuple):
    entries: int
    last: tuple[int, int] | None


class CleanedFiles(NamedTuple):
    """Facts about a cleaned segment that let the log use it without reading it again."""

    unique: str
    base_offset: int
    end_offset: int
    size: int
    first_timestamp: int
    max_timestamp: int
    max_timestamp_offset: int
    bytes_since_index: int
    offset_index: IndexState
    time_index: IndexState
    aborted: tuple[int, int]
    """Entries of the transaction index, and the last of them; the file exists even without entries."""


class CleanedSegment:
    """Writes the files; leaving the block without `finish` removes them."""

    def __init__(self, disk: Disk, plan: CleaningPlan, base_offset: int) -> None:
        self._disk = disk
        self._files = OpenFiles(disk)
        self._folder = plan.folder
        self._unique = plan.unique
        self._index_interval_bytes = plan.index_interval_bytes
        config = LogConfig(segment_index_bytes=plan.segment_index_bytes)
        self._segment = Segment(self._files, plan.folder, base_offset, config, created_ms=0)
        self._segment.transactions.exists = True
        for file in self._segment.all_files():
            file.path = names.cleaned(file.path, plan.unique)
        self._waiting: list[Buffer] = []
        self._waiting_bytes = 0
        self._written_bytes = 0
        self._finished = False

    def __enter__(self) -> Self:
        for file in self._segment.all_files():
            create_empty(self._disk, file.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._files.close_all()
        if not self._finished and (error is None or isinstance(error, Exception)):
            for file in self._segment.all_files():
                unlink_if_present(self._disk, file.path)

    def append(self, fields: HeaderFields, batch: Buffer) -> None:
        last_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
        # An emptied batch keeps its newest timestamp only for its producer; it holds no record of that time.
        timestamp = fields[MAX_TIMESTAMP] if fields[RECORD_COUNT] else NO_TIMESTAMP
        size = fields[LENGTH] + LOG_OVERHEAD
        self._segment.note(((fields[BASE_OFFSET], last_offset, timestamp, size),), self._index_interval_bytes)
        self._waiting.append(batch)
        self._waiting_bytes += size
        if self._waiting_bytes >= WRITE_BYTES:
            self._write()

    def note_aborted(self, entry: AbortedTransaction) -> None:
        """Add a transaction index entry after the marker of an aborted transaction was appended."""
        self._segment.transactions.append(entry)

    def finish(self) -> CleanedFiles:
        """Sync everything under the names of cleaned files."""
        segment = self._segment
        self._write()
        segment.index_time()
        for index in (segment.index, segment.time_index, segment.transactions):
            index.spill()
        for file in segment.all_files():
            self._disk.data_sync(self._files.handle(file))
        self._disk.sync_directory(self._folder)
        self._finished = True
        return CleanedFiles(
            unique=self._unique,
            base_offset=segment.base_offset,
            end_offset=segment.next_offset,
            size=segment.size,
            first_timestamp=segment.first_timestamp,
            max_timestamp=segment.max_timestamp,
            max_timestamp_offset=segment.max_timestamp_offset,
            bytes_since_index=segment.bytes_since_index,
            offset_index=IndexState(segment.index.stored, segment.index.last),
            time_index=IndexState(segment.time_index.stored, segment.time_index.last),
            aborted=(segment.transactions.stored, segment.transactions.last_offset),
        )

    def _write(self) -> None:
        file = self._files.handle(self._segment.log)
        self._written_bytes = write_all(self._disk, file, self._waiting, self._written_bytes)
        self._waiting, self._waiting_bytes = [], 0
