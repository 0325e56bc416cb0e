"""Positions of the newest batches of the active segment, kept in memory so that most reads need no index."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from headrace.wire.records.batch_walk import BatchPlace

RECENT_BATCHES_MAX = 2048
"""Batches whose positions are kept; up to twice as many before the older half is dropped."""


class RecentBatches:
    """Base offsets and positions of consecutive batches, the last of which ends the active segment."""

    def __init__(self) -> None:
        self._offsets = array("q")
        self._positions = array("q")

    def note(self, places: Sequence[BatchPlace], position: int) -> None:
        """HOT. Add batches that were written one after the other from `position` on."""
        offsets, positions = self._offsets, self._positions
        for place in places:
            offsets.append(place[0])
            positions.append(position)
            position += place[3]
        if len(offsets) >= 2 * RECENT_BATCHES_MAX:
            del offsets[:RECENT_BATCHES_MAX], positions[:RECENT_BATCHES_MAX]

    def forget(self) -> None:
        del self._offsets[:], self._positions[:]

    def covers(self, offset: int) -> bool:
        """HOT. Return whether the batch that contains `offset`, which is below the log end, is one of these."""
        offsets = self._offsets
        return bool(offsets) and offset >= offsets[0]

    def span(
        self, offset: int, max_bytes: int, below: int | None, at_least_one: bool, end_position: int
    ) -> tuple[int, int] | None:
        """HOT. Return where whole batches begin and end, from the one that contains `offset` on.

        All of them are below `below` (None: up to `end_position`, the end of the segment). Returns None if the first
        batch is larger than `max_bytes` and the caller does not want it anyway.
        """
        offsets, positions = self._offsets, self._positions
        first = bisect_right(offsets, offset) - 1
        start = positions[first]
        stop = end_position
        if below is not None:
            after = bisect_left(offsets, below, first)
            stop = positions[after] if after < len(positions) else end_position
        if stop - start > max_bytes:
            cut = bisect_right(positions, start + max_bytes, first) - 1
            if cut > first:
                stop = positions[cut]
            elif not at_least_one:
                return None
            elif first + 1 < len(positions):
                stop = positions[first + 1]
        return start, stop
