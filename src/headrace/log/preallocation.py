"""Reserving the next blocks of a busy segment, so that appends do not wait for the file system to find them.

An idle segment reserves nothing. The more a segment takes, the larger the next piece, between two named bounds and
never beyond the segment's own size. What is left over is cut when the segment is sealed or the log closed; after a
crash a header of zeros tells where it begins.
"""

from typing import TYPE_CHECKING

from .segment import Segment
from .work import Work

if TYPE_CHECKING:
    from .partition_log import PartitionLog

REFILL_SHARE = 4
"""The next piece is asked for when less than this share of the last one is left."""


class Preallocation:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self._piece_bytes = 0
        self.segment: Segment | None = None
        """The one that is being lengthened right now."""

    def work(self) -> Work | None:
        log, config = self._log, self._log.config
        if not config.preallocate or self.segment is not None or log.failed or log.closed:
            return None
        segment = log.active
        left = segment.allocated - segment.size
        if segment.size < config.preallocation_bytes_min or left > self._piece_bytes // REFILL_SHARE:
            return None
        begin = max(segment.size, segment.allocated)
        end = min(begin + self._next_piece(segment), config.segment_bytes)
        if end - begin < config.preallocation_bytes_min // REFILL_SHARE:
            return None
        disk, handle = log.disk, log.files.handle(segment.log)
        log.files.pin(handle)
        self.segment = segment
        self._piece_bytes = end - begin

        def done(_result: object, error: BaseException | None) -> None:
            self.segment = None
            log.files.unpin(handle)
            if error is None:
                segment.allocated = max(segment.allocated, end)
            # A device too full to reserve blocks is not broken: the append that needs them will say so.

        return Work(lambda: disk.allocate(handle, begin, end - begin), done)

    def _next_piece(self, segment: Segment) -> int:
        """Begin small in every segment and double."""
        config = self._log.config
        if segment.allocated <= segment.size and segment.allocated < config.preallocation_bytes_min:
            return config.preallocation_bytes_min
        return min(max(2 * self._piece_bytes, config.preallocation_bytes_min), config.preallocation_bytes_max)
