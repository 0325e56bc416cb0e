"""Read older batches: closed segments, and the older part of the active one."""

from bisect import bisect_right
from typing import TYPE_CHECKING

from headrace.ports.disk import FileRange

from .errors import DamagedLog
from .segment import Segment

if TYPE_CHECKING:
    from .partition_log import PartitionLog

RESUME_POINTS_MAX = 64
"""Positions at which readers stopped, so that the next read of a catching-up consumer needs no search."""


class OlderReads:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self._resume: dict[int, tuple[Segment, int]] = {}

    def forget(self) -> None:
        self._resume.clear()

    def read(self, offset: int, max_bytes: int, below: int, at_least_one: bool) -> FileRange | None:
        place = self._resume.get(offset) or self._locate(offset, below)
        if place is None:
            return None
        segment, start = place
        stop = segment.size
        if below < segment.next_offset:
            found = segment.find(below)
            stop = found[0] if found is not None else segment.size
        if segment.damaged:
            stop = _before_damage(segment, start, stop)
        if stop - start > max_bytes:
            cut = segment.cut_before(start, start + max_bytes)
            if cut == start:
                cut = segment.whole_batches(start, max_bytes, at_least_one)
            stop = min(cut, stop)
        if stop <= start:
            return None
        self._remember(segment, stop)
        return FileRange(self._log.files.handle(segment.log), start, stop - start)

    def _locate(self, offset: int, below: int) -> tuple[Segment, int] | None:
        """Locate the first batch that ends at or after `offset`; compaction may have removed the batch that contained
        it.
        """
        log = self._log
        for place in range(max(bisect_right(log.bases, offset) - 1, 0), len(log.segments)):
            found = log.segments[place].find(offset)
            if found is not None:
                return (log.segments[place], found[0]) if found[2] < below else None
        return None

    def _remember(self, segment: Segment, position: int) -> None:
        if position < segment.size:
            offset = segment.base_offset_at(position)
        elif segment is not self._log.active:
            place = bisect_right(self._log.bases, segment.base_offset)
            segment, position, offset = self._log.segments[place], 0, self._log.bases[place]
        else:
            return
        self._resume.pop(offset, None)
        self._resume[offset] = (segment, position)
        if len(self._resume) > RESUME_POINTS_MAX:
            del self._resume[next(iter(self._resume))]


def _before_damage(segment: Segment, start: int, stop: int) -> int:
    for begin, end in segment.damaged:
        if begin <= start < end:
            raise DamagedLog(segment.log.path, begin, "found while the closed segment was read again")
        if start < begin:
            return min(stop, begin)
    return stop
