"""Transactions in one log: staging markers, and listing the aborted transactions that a reader must know."""

from bisect import bisect_right
from typing import TYPE_CHECKING

from headrace.ports.disk import FileRange
from headrace.wire.records.header import HeaderFields
from headrace.wire.records.markers import Marker

from .segment import Segment
from .transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from .partition_log import PartitionLog

_NONE: tuple[tuple[int, int], ...] = ()


class LogTransactions:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self.staged: list[AbortedTransaction] = []
        """Transactions aborted by markers that are not written yet."""

    def stage_marker(
        self, batch: memoryview, fields: HeaderFields, marker: Marker, leader_epoch: int, wall_ms: int
    ) -> int:
        """Stage a batch that ends a transaction; otherwise like the log's `stage`."""
        log = self._log
        aborted = log.producers.end_transaction(fields, marker, log.staged_end_offset)
        if aborted is not None:
            self.staged.append(aborted)
        return log.stage(batch, fields, leader_epoch, wall_ms)

    def written_to(self, segment: Segment) -> None:
        """Note that staged markers were written to the segment, up to its end."""
        staged = self.staged
        while staged and staged[0].last_offset < segment.next_offset:
            segment.transactions.append(staged.pop(0))

    def aborted(self, offset: int, part: FileRange, below: int) -> tuple[tuple[int, int], ...]:
        """Return (producer id, first offset) of the aborted transactions in records read from `offset`, below
        `below`.
        """
        log = self._log
        first = max(bisect_right(log.bases, offset) - 1, 0)
        indexed = [segment for segment in log.segments[first:] if len(segment.transactions)]
        if not indexed:
            return _NONE
        above = min(below, self._end_of(log.segments[first], part))
        found: list[tuple[int, int]] = []
        for segment in indexed:
            for entry in segment.transactions.since(offset):
                if entry.first_offset < above:
                    found.append((entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= above:
                    return tuple(found)
        return tuple(found)

    def _end_of(self, segment: Segment, part: FileRange) -> int:
        """Return an offset above those in the range, as near as the index knows; the log end if it is in another
        segment.
        """
        if part.file != segment.log.handle:
            return self._log.end_offset
        end = part.position + part.length
        place = segment.index.count_through_second(end - 1)
        if place < len(segment.index):
            return segment.base_offset + segment.index.entry(place)[0]
        return segment.next_offset
