"""Preallocate blocks for a busy segment, so that appends do not wait for the file system to allocate them.

An idle segment preallocates nothing. A busy one preallocates as much as it appended recently, between two named limits
and never beyond the segment size. Unused space is trimmed when the segment is rolled or the log closed; after a crash,
a header of zeros marks where it begins.
"""

from typing import TYPE_CHECKING

from .errors import is_transient
from .segment import Segment
from .work import Work

if TYPE_CHECKING:
    from .partition_log import PartitionLog

BUSY_WINDOW_MS = 10_000
"""A log is busy when it appended the smallest preallocation within this time."""
REFILL_SHARE = 4
"""The next preallocation is due when less than this share of the last one is left."""


class Preallocation:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self._window_ms = 0
        self._window_bytes = 0
        self._looks_again_at_bytes = 0
        """Count of appended bytes from which a preallocation may be due again."""
        self.segment: Segment | None = None
        """The segment that is being preallocated right now."""

    def work(self) -> Work | None:
        """Return work that preallocates blocks for a busy segment; None, cheaply, for an idle one or while enough is
        left.
        """
        log, config = self._log, self._log.config
        if log.appended_bytes < self._looks_again_at_bytes:
            return None
        self._looks_again_at_bytes = log.appended_bytes + config.preallocation_bytes_min // REFILL_SHARE
        if not config.preallocate or self.segment is not None or log.failed or log.closed or log.is_truncating:
            return None
        taken_lately = self._bytes_taken_lately()
        if taken_lately < config.preallocation_bytes_min:
            return None
        segment, piece = log.active, min(taken_lately, config.preallocation_bytes_max)
        begin = max(segment.size, segment.allocated)
        end = min(segment.size + piece, config.segment_bytes)
        if begin - segment.size > piece // REFILL_SHARE or end - begin < config.preallocation_bytes_min // REFILL_SHARE:
            return None
        if segment.log.handle < 0:
            return None  # a busy segment's file is open; a file that was closed meanwhile belongs to an idle segment
        disk, handle = log.disk, segment.log.handle
        log.files.pin(handle)
        self.segment = segment

        def done(_result: object, error: BaseException | None) -> None:
            self.segment = None
            log.files.unpin(handle)
            if error is None:
                segment.allocated = max(segment.allocated, end)
            elif not is_transient(error):
                log.work_failed(error)
            # A disk too full to preallocate is not broken: the append that needs the space reports the error.

        return Work(lambda: disk.allocate(handle, begin, end - begin), done)

    def _bytes_taken_lately(self) -> int:
        log = self._log
        if not 0 <= log.appended_wall_ms - self._window_ms <= BUSY_WINDOW_MS:
            self._window_ms, self._window_bytes = log.appended_wall_ms, log.appended_bytes
        return log.appended_bytes - self._window_bytes
