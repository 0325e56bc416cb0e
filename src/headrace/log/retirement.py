"""Remove segments in steps: take them out of the log, rename them, and unlink them when no reader can be left.

Retention removes whole segments from the old end: those below the log start offset, those whose newest record is too
old, and those beyond the retention size. Only segments below the high watermark are removed, and none that compaction
is replacing. Producer state survives: the snapshot at the new first segment is written before older ones are removed.
"""

from typing import TYPE_CHECKING

from headrace.ports.disk import Disk

from . import names
from .errors import is_transient
from .files import unlink_if_present
from .flush import Flusher, Snapshot, write_snapshot
from .segment import Segment
from .work import Work

if TYPE_CHECKING:
    from .partition_log import PartitionLog


class Retirement:
    def __init__(self, log: "PartitionLog", flusher: Flusher) -> None:
        self._log = log
        self._flusher = flusher
        self._taken: list[Segment] = []
        """Segments that are out of the log but not known to be renamed yet."""
        self._waiting: list[tuple[int, Segment]] = []
        """When each renamed segment may be unlinked, oldest first."""
        self.in_flight = False

    def work(self, wall_ms: int, high_watermark: int, *, hurry: bool = False) -> Work | None:
        """Return work that removes segments by age, size or start offset, and unlinks those removed earlier.

        With `hurry` (space is needed) segments are unlinked without delay; readers have them open.
        """
        log = self._log
        if self.in_flight or log.failed or log.closed or log.is_truncating:
            return None
        self._taken += self._take_due(wall_ms, high_watermark)
        delay_ms = 0 if hurry else log.config.file_delete_delay_ms
        # A segment that would wait longer than the delay was removed before the clock was set back.
        expired = [segment for due_ms, segment in self._waiting if not 0 < due_ms - wall_ms <= delay_ms]
        taken, due_ms = tuple(self._taken), wall_ms + delay_ms
        if not taken and not expired:
            return None
        self.in_flight = True
        snapshot = self._flusher.take_snapshot(log.bases[0]) if taken else None
        disk, folder = log.disk, log.path
        taken_stems = [segment.stem for segment in taken]
        expired_stems = [segment.stem for segment in expired]

        def run() -> bool:
            written = _try_to_write(disk, folder, snapshot)
            _rename_and_unlink(disk, folder, taken_stems, expired_stems)
            return written

        def done(written: bool | None, error: BaseException | None) -> None:
            self.in_flight = False
            if snapshot is not None and not written:
                self._flusher.return_snapshot(snapshot)
            if error is not None:
                if not is_transient(error):
                    log.work_failed(error)
                return  # otherwise all steps are retried; repeating completed steps is harmless
            for segment in expired:
                self._release(segment)
            self._waiting = [entry for entry in self._waiting if entry[1] not in expired]
            self._waiting += [(due_ms, segment) for segment in taken]
            del self._taken[: len(taken)]

        return Work(run, done)

    def add(self, segments: list[Segment], due_ms: int) -> None:
        """Unlink segments that compaction has replaced and renamed, once no reader can use them."""
        self._waiting += [(due_ms, segment) for segment in segments]

    def close(self) -> None:
        """Stop. The next start unlinks renamed segments and finds those that are not renamed yet."""
        for segment in (*self._taken, *(segment for _due_ms, segment in self._waiting)):
            self._release(segment)
        self._taken.clear()
        self._waiting.clear()

    def _release(self, segment: Segment) -> None:
        for file in segment.all_files():
            self._log.files.retire(file)

    def _take_due(self, wall_ms: int, high_watermark: int) -> list[Segment]:
        log = self._log
        count = self._count_due(wall_ms, high_watermark)
        if not count:
            return []
        if count == len(log.segments):
            try:
                log.roll()
            except OSError as error:
                if not is_transient(error):
                    log.work_failed(error)
                    return []
                count -= 1  # there is no space for the next segment, so this one stays for now
        # A segment that is not on disk waits for its flush: until its new name is durable, a power cut would leave a
        # gap there.
        while count and log.segments[count - 1].next_offset > log.synced_offset:
            count -= 1
        if not count or self._flusher.writes_snapshot(log.segments[count].base_offset):
            return []  # until it is written
        taken, log.segments = log.segments[:count], log.segments[count:]
        log.segments_taken(taken)
        return taken

    def _count_due(self, wall_ms: int, high_watermark: int) -> int:
        """Count the oldest segments to remove; the active one only when it is too old and not empty."""
        log, config = self._log, self._log.config
        by_config = config.delete and not log.staged
        excess = log.size_bytes - config.retention_bytes if by_config and config.retention_bytes >= 0 else -1
        for count, segment in enumerate(log.segments):
            is_active = segment is log.active
            if segment.next_offset > high_watermark or (is_active and not segment.size):
                return count
            if segment in log.being_replaced:
                return count
            newest_ms = segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms
            too_old = by_config and 0 <= config.retention_ms < wall_ms - newest_ms
            too_much = not is_active and excess >= segment.size
            below_start = not is_active and segment.next_offset <= log.start_offset
            if not (too_old or too_much or below_start):
                return count
            excess -= segment.size
        return len(log.segments)


def _try_to_write(disk: Disk, folder: str, snapshot: Snapshot | None) -> bool:
    """Write the snapshot if possible. A full disk does not stop the removal, which frees space."""
    if snapshot is None:
        return True
    try:
        write_snapshot(disk, folder, snapshot)
    except OSError as error:
        if not is_transient(error):
            raise
        return False
    return True


def _rename_and_unlink(disk: Disk, folder: str, taken: list[str], expired: list[str]) -> None:
    """Rename and unlink, oldest first, syncing each before the next, so that no crash restores one without its
    successors.

    The segment that takes over must have a durable name first: a log without any segment would begin at its old start
    again.
    """
    if taken:
        disk.sync_directory(folder)
    for stem in taken:
        for suffix in names.SEGMENT_FILES:
            try:
                disk.rename(stem + suffix, stem + suffix + names.DELETED)
            except FileNotFoundError:
                continue
        disk.sync_directory(folder)
    for stem in expired:
        for suffix in names.SEGMENT_FILES:
            unlink_if_present(disk, stem + suffix + names.DELETED)
    if expired:
        disk.sync_directory(folder)
