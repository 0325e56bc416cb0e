"""Moving the recovery point: what was appended is synced by a helper, in an order that a crash cannot betray.

Contents before names before the recovery point. A flush syncs the segments that grew; from time to time, and when a
segment was sealed, also their indexes and a producer snapshot, so that recovery has little to walk.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.ports.disk import Disk, FileHandle

from . import names, producer_snapshot
from .files import replace_file, unlink_if_present
from .open_files import OpenFile
from .segment import Segment
from .work import Work

if TYPE_CHECKING:
    from .partition_log import PartitionLog


class Flusher:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self._sealed: list[Segment] = []
        self._flushed_bytes = 0
        self._snapshot_bytes = 0
        self._oldest_wall_ms = -1
        self._generation = 0
        self._snapshots: list[tuple[str, bytes]] = []
        self._stray_snapshot: str | None = None
        self.in_flight = False
        self.directory_changed = False
        """A file was made or removed since the directory was last synced."""

    @property
    def unflushed_bytes(self) -> int:
        return self._log.appended_bytes - self._flushed_bytes

    def segment_sealed(self, segment: Segment, next_base_offset: int) -> None:
        """The segment was rolled: it will be cut, synced and accompanied by a snapshot of the producers so far."""
        self._sealed.append(segment)
        self.directory_changed = True
        path = names.segment_stem(self._log.path, next_base_offset) + names.SNAPSHOT
        self._snapshots.append((path, producer_snapshot.encode(self._log.producers, below=next_base_offset)))

    def log_truncated(self) -> None:
        """What a flush under way syncs is no longer what the log holds."""
        self._generation += 1
        self._snapshots.clear()
        self._sealed = [segment for segment in self._sealed if segment in self._log.segments[:-1]]

    def is_due(self, wall_ms: int) -> bool:
        log = self._log
        if self.in_flight or log.failed:
            return False
        if self._sealed or log.end_offset - log.recovery_point >= log.config.flush_messages:
            return True
        unflushed = log.appended_bytes - self._flushed_bytes
        if not unflushed:
            self._oldest_wall_ms = -1
            return False
        if self._oldest_wall_ms < 0:
            self._oldest_wall_ms = wall_ms
        return (
            unflushed >= log.config.unclean_tail_bytes_max // 2 or wall_ms - self._oldest_wall_ms >= log.config.flush_ms
        )

    def work(self) -> Work | None:
        log = self._log
        if self.in_flight or log.failed or log.closed:
            return None
        if log.end_offset <= log.recovery_point and not (self._sealed or self.directory_changed or log.epochs.changed):
            return None
        if any(log.is_preallocating(segment) for segment in self._sealed):
            return None  # it must not grow again after it was cut; the next turn will do
        deep = log.appended_bytes - self._snapshot_bytes >= log.config.snapshot_interval_bytes
        return self._plan(deep=deep)

    def flush_everything(self) -> None:
        """At a clean close: in place, with the active segment cut and a snapshot of the end."""
        self._log.active.index_time()
        self._sealed.append(self._log.active)
        self._plan(deep=True).here()

    def _plan(self, *, deep: bool) -> Work:
        """Take down all that is to be synced; `done` moves the recovery point if it still means the same log."""
        log = self._log
        end_offset, appended, generation = log.end_offset, log.appended_bytes, self._generation
        sealed, self._sealed = self._sealed, []
        handles = [log.files.handle(file) for file in self._dirty_files(sealed, deep=deep)]
        cuts = [(log.files.handle(segment.log), segment.size) for segment in sealed]
        small_files = self._small_files(end_offset, deep=deep)
        stale = self._stray_snapshot if deep else None
        named = self.directory_changed or bool(small_files)
        self.in_flight = True
        self.directory_changed = False
        for handle in handles:
            log.files.pin(handle)

        def done(_result: object, error: BaseException | None) -> None:
            self.in_flight = False
            for handle in handles:
                log.files.unpin(handle)
            if error is not None:
                log.work_failed(error)
                return
            for segment in sealed:
                segment.allocated = segment.size
            self._flushed_bytes = appended
            self._oldest_wall_ms = -1
            if deep:
                self._snapshot_bytes = appended
            if generation == self._generation:
                log.recovery_point = max(log.recovery_point, end_offset)
                if log.on_flushed is not None:
                    log.on_flushed(end_offset)

        return Work(_sync(log.disk, log.path, cuts, handles, small_files, stale, named=named), done)

    def _dirty_files(self, sealed: list[Segment], *, deep: bool) -> list[OpenFile]:
        files: list[OpenFile] = []
        for segment in reversed(self._log.segments):
            is_sealed = segment in sealed
            if segment.next_offset <= self._log.recovery_point and not is_sealed and segment.size:
                break
            files.append(segment.log)
            if deep or is_sealed:
                segment.index.spill()
                segment.time_index.spill()
                files += (segment.index.file, segment.time_index.file)
        return files

    def _small_files(self, end_offset: int, *, deep: bool) -> list[tuple[str, bytes]]:
        """Snapshots of the rolls since the last flush, one of the end if `deep`, and the leader epochs if changed."""
        log = self._log
        files, self._snapshots = self._snapshots, []
        if deep:
            path = names.segment_stem(log.path, end_offset) + names.SNAPSHOT
            files.append((path, producer_snapshot.encode(log.producers, below=end_offset)))
            self.note_snapshot(end_offset)
        if log.epochs.changed:
            files.append((f"{log.path}/{names.LEADER_EPOCHS}", log.epochs.encode()))
            log.epochs.changed = False
        return files

    def note_snapshot(self, offset: int) -> None:
        """The newest snapshot, which the next one replaces unless a segment begins there."""
        is_roll = offset < 0 or offset in self._log.bases
        self._stray_snapshot = None if is_roll else names.segment_stem(self._log.path, offset) + names.SNAPSHOT


def _sync(
    disk: Disk,
    folder: str,
    cuts: list[tuple[FileHandle, int]],
    handles: list[FileHandle],
    small_files: list[tuple[str, bytes]],
    stale: str | None,
    *,
    named: bool,
) -> Callable[[], None]:
    def run() -> None:
        for handle, size in cuts:
            disk.truncate(handle, size)
        for handle in handles:
            disk.data_sync(handle)
        for path, content in small_files:
            replace_file(disk, path, content)
        if named:
            disk.sync_directory(folder)
        if stale is not None and stale not in (path for path, _ in small_files):
            unlink_if_present(disk, stale)

    return run
