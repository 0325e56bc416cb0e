"""Move the recovery point: a helper thread syncs what was appended, in an order that survives a crash at any point.

Contents first, then names, then the recovery point. A flush syncs the segments that grew; at intervals, and after a
segment was rolled, also their indexes and a producer snapshot, so that recovery has little to scan.

A failed sync fails the log, because it is unknown which bytes the device lost. Small files that find no space or file
descriptor are only deferred; the recovery point waits for them.
"""

from collections.abc import Callable, Iterator
from errno import EIO
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headrace.ports.disk import DataSync, Disk, FileHandle

from . import names, producer_snapshot, unsynced
from .errors import is_transient
from .files import replace_file, unlink_if_present
from .open_files import OpenFile
from .producers import FrozenProducers
from .segment import Segment
from .work import Work

if TYPE_CHECKING:
    from .partition_log import PartitionLog

GROWTH_FIRST_BYTES = 4 << 20
"""A flush of more than this syncs a segment alone first: the system may do so without a thread
(`ports.real.kernel_syncs`), and the flush thread then waits less.
"""
RETRY_MS = 500
"""Time before a flush retries small files that it deferred."""


class PartialFlush(NamedTuple):
    """Result of a flush that could not write every file. `durable`: the appended batches are on disk, by name."""

    error: OSError
    durable: bool


class Snapshot(NamedTuple):
    offset: int
    producers: FrozenProducers


class _Plan(NamedTuple):
    """Everything a helper thread needs for one flush."""

    folder: str
    cuts: list[tuple[FileHandle, int]]
    handles: list[FileHandle]
    indexed: list[Segment]
    """Segments whose transaction index is among the files."""
    snapshots: list[Snapshot]
    epochs: bytes | None
    stale: list[int]
    """Offsets of snapshots that the new ones replace."""
    named: bool
    """True if the directory must be synced."""


class Flusher:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self._remember_failure = partial(unsynced.remember, log.disk, log.path)
        self._sealed: list[Segment] = []
        self._flushed_bytes = 0
        self._snapshot_bytes = 0
        self._oldest_wall_ms = -1
        self._snapshots: list[Snapshot] = []
        self._written: list[Snapshot] = []
        self._cut: list[Segment] = []
        self._indexed: list[Segment] = []
        """Snapshots, rolled segments and segments with a transaction index in the running flush."""
        self._strays: list[int] = []
        """Offsets of snapshots of a former log end, which the next snapshot replaces."""
        self.deferred = False
        self._retry_ms = -1
        self._growth_first = False
        """A segment-only sync was started and its flush has yet to follow."""
        self.in_flight = False
        self.directory_changed = False
        """True if a file was created or removed since the directory was last synced."""

    def segment_sealed(self, segment: Segment, next_base_offset: int) -> None:
        """Note that the segment was rolled: the next flush trims and syncs it and writes a producer snapshot."""
        self._sealed.append(segment)
        self.directory_changed = True
        self._snapshots.append(Snapshot(next_base_offset, self._log.producers.freeze(next_base_offset)))

    def segments_taken(self, taken: list[Segment]) -> None:
        """Forget segments that leave the log: they are neither trimmed nor synced any more, and their files may be
        closed.
        """
        self._sealed = [segment for segment in self._sealed if segment not in taken]

    def writes_snapshot(self, offset: int) -> bool:
        """Return whether the running flush writes the snapshot of that offset."""
        return self.in_flight and any(snapshot.offset == offset for snapshot in self._written)

    def take_snapshot(self, offset: int) -> Snapshot | None:
        """Take a snapshot that the next flush would write, for a caller that cannot wait for it."""
        found = next((snapshot for snapshot in self._snapshots if snapshot.offset == offset), None)
        if found is not None:
            self._snapshots.remove(found)
        return found

    def return_snapshot(self, snapshot: Snapshot) -> None:
        """Take back a snapshot that could not be written; the next flush retries it."""
        self._snapshots.append(snapshot)

    def is_flushed(self, segment: Segment) -> bool:
        """Return whether a closed segment is fully trimmed and synced."""
        return not self.in_flight and segment not in self._sealed

    def log_reloaded(self, snapshot: int) -> None:
        """Begin again after a truncation, as at a start: what is above the recovery point is to be synced."""
        self._snapshots.clear()
        self._sealed.clear()
        self.deferred = self._growth_first = False
        self._retry_ms = self._oldest_wall_ms = -1
        self._flushed_bytes = self._snapshot_bytes = self._log.appended_bytes
        self.directory_changed = True
        self.note_snapshot(snapshot)

    def is_due(self, wall_ms: int) -> bool:
        log = self._log
        if self.in_flight or log.failed or log.is_truncating or (self.deferred and self._is_paused(wall_ms)):
            return False
        if self.deferred or self._sealed or self._growth_first:
            return True
        if log.end_offset - log.recovery_point >= log.config.flush_messages:
            return True
        unflushed = log.appended_bytes - self._flushed_bytes
        if not unflushed:
            self._oldest_wall_ms = -1
            return False
        if self._oldest_wall_ms < 0 or wall_ms < self._oldest_wall_ms:  # none yet, or the clock was set back
            self._oldest_wall_ms = wall_ms
        return (
            unflushed >= log.config.unclean_tail_bytes_max // 2 or wall_ms - self._oldest_wall_ms >= log.config.flush_ms
        )

    def _is_paused(self, wall_ms: int) -> bool:
        if self._retry_ms < 0 or self._retry_ms - wall_ms > RETRY_MS:  # not set yet, or the clock was set back
            self._retry_ms = wall_ms + RETRY_MS
        return wall_ms < self._retry_ms

    def work(self) -> Work | None:
        log = self._log
        if self.in_flight or log.failed or log.closed or log.is_truncating:
            return None
        asked = self._sealed or self.directory_changed or log.epochs.changed or self._growth_first
        if log.end_offset <= log.recovery_point and not asked:
            return None
        if any(segment is log.preallocation.segment for segment in self._sealed):
            return None  # it must not grow again after it was trimmed; the next turn retries
        deep = log.appended_bytes - self._snapshot_bytes >= log.config.snapshot_interval_bytes
        much = log.appended_bytes - self._flushed_bytes >= GROWTH_FIRST_BYTES
        growth_first = deep and much and not self._growth_first
        try:
            if (growth_first or not deep) and self._only_grew():
                self._growth_first = growth_first
                return self._sync_of_growth()
            self._growth_first = False
            return self._work(deep=deep)
        except OSError as error:
            if is_transient(error):
                self._pause(error)
            else:
                log.work_failed(error)
            return None

    def flush_everything(self) -> None:
        """Flush in place at a clean close: trim the active segment and write a snapshot of the log end.

        A running flush may never complete, so its files are trimmed and synced here too. If an earlier sync failed and
        the failure is not yet reported, this raises, because another sync would prove nothing.
        """
        if unsynced.is_remembered(self._log.disk, self._log.path):
            raise OSError(EIO, "an earlier sync failed", self._log.path)
        self._log.active.index_time()
        if self.in_flight:
            self._sealed[:0] = [segment for segment in self._cut if segment in self._log.segments]
            self.directory_changed = self._log.epochs.changed = True
            for segment in self._indexed:
                segment.transactions.is_unsynced = True
        self._sealed.append(self._log.active)
        deferred: PartialFlush | None = self._work(deep=True).run_inline()
        if deferred is not None:
            raise deferred.error

    def _work(self, *, deep: bool) -> Work:
        """Collect everything to be synced; `done` moves the recovery point."""
        log = self._log
        end_offset, appended = log.end_offset, log.appended_bytes
        sealed = self._sealed
        plan = self._plan(deep=deep)
        rolls, self._snapshots = self._snapshots, []
        self._written, self._cut, self._indexed = rolls, sealed, plan.indexed
        self._sealed = []
        self.in_flight = True
        self.directory_changed = log.epochs.changed = self.deferred = False
        for handle in plan.handles:
            log.files.pin(handle)
        for segment in plan.indexed:
            segment.transactions.synced()

        def done(deferred: PartialFlush | None, error: BaseException | None) -> None:
            self.in_flight = False
            for handle in plan.handles:
                log.files.unpin(handle)
            if error is not None:
                log.work_failed(error)
                return
            for segment in sealed:
                segment.allocated = segment.size
            if deferred is not None:
                self._schedule_retry(plan, rolls, deferred)
            elif deep:
                self._snapshot_bytes = appended
                self.note_snapshot(end_offset)
            self._synced(end_offset, appended, deferred)

        return Work(_sync(log.disk, plan), done)

    def _only_grew(self) -> bool:
        """HOT when acknowledgements wait for a sync. Return whether only the active segment grew and nothing else
        changed.
        """
        log = self._log
        changed = self._sealed or self._snapshots or self.deferred or self.directory_changed or log.epochs.changed
        if changed or log.active.transactions.is_unsynced:
            return False
        before = log.segments[-2:-1]
        return not before or (before[0].next_offset <= log.recovery_point and not before[0].transactions.is_unsynced)

    def _sync_of_growth(self) -> Work:
        """HOT when acknowledgements wait for a sync. Build what `_work` builds, for one file only."""
        log = self._log
        end_offset, appended = log.end_offset, log.appended_bytes
        handle = log.files.handle(log.active.log)
        log.files.pin(handle)
        self.in_flight = True
        self._written, self._cut, self._indexed = [], [], []

        def done(_nothing: None, error: BaseException | None) -> None:
            self.in_flight = False
            log.files.unpin(handle)
            if error is not None:
                log.work_failed(error)
            else:
                self._synced(end_offset, appended, None)

        return Work(DataSync(log.disk, handle, self._remember_failure), done)

    def _synced(self, end_offset: int, appended: int, deferred: PartialFlush | None) -> None:
        """Move the recovery point to the appended offset."""
        if deferred is not None and not deferred.durable:
            return
        log = self._log
        self._flushed_bytes = appended
        self._oldest_wall_ms = -1
        log.synced_offset = max(log.synced_offset, end_offset)
        if deferred is None:
            log.recovery_point = max(log.recovery_point, end_offset)
        if log.on_flushed is not None:
            log.on_flushed(end_offset)

    def _schedule_retry(self, plan: _Plan, rolls: list[Snapshot], deferred: PartialFlush) -> None:
        """Keep the deferred files and names for the next flush, after a pause."""
        self._pause(deferred.error)
        self._snapshots[:0] = rolls
        self._strays = [*plan.stale, *(snapshot.offset for snapshot in plan.snapshots)]
        self.directory_changed = self.directory_changed or (plan.named and not deferred.durable)
        self._log.epochs.changed = self._log.epochs.changed or plan.epochs is not None

    def _pause(self, error: OSError) -> None:
        self.deferred = True
        self._retry_ms = -1
        if self._log.on_flush_deferred is not None:
            self._log.on_flush_deferred(error)

    def _plan(self, *, deep: bool) -> _Plan:
        log = self._log
        snapshots = list(self._snapshots)
        if deep:
            snapshots.append(Snapshot(log.end_offset, log.producers.freeze(log.end_offset)))
        epochs = log.epochs.encode() if log.epochs.changed else None
        kept = (log.end_offset, *log.bases)
        return _Plan(
            folder=log.path,
            cuts=[(log.files.handle(segment.log), segment.size) for segment in self._sealed],
            handles=[log.files.handle(file) for file in self._dirty_files(deep=deep)],
            indexed=[segment for segment in self._dirty_segments() if segment.transactions.is_unsynced],
            snapshots=snapshots,
            epochs=epochs,
            stale=[offset for offset in self._strays if offset not in kept] if deep else [],
            named=self.directory_changed or bool(snapshots) or epochs is not None,
        )

    def _dirty_segments(self, *, deep: bool = False) -> Iterator[Segment]:
        """Yield the segments with unsynced bytes, newest first; the indexes of the active one may be left out."""
        for segment in reversed(self._log.segments):
            is_open = segment in self._sealed or segment.transactions.is_unsynced or not segment.size
            is_open = is_open or (deep and segment is self._log.active)
            if segment.next_offset <= self._log.recovery_point and not is_open:
                return
            yield segment

    def _dirty_files(self, *, deep: bool) -> list[OpenFile]:
        files: list[OpenFile] = []
        for segment in self._dirty_segments(deep=deep):
            files.append(segment.log)
            if deep or segment in self._sealed:
                segment.index.spill()
                segment.time_index.spill()
                files += (segment.index.file, segment.time_index.file)
            # The transaction index is synced every time: a producer snapshot does not contain transactions that have
            # ended.
            if segment.transactions.is_unsynced:
                segment.transactions.spill()
                self.directory_changed = self.directory_changed or segment.transactions.is_new
                files += (segment.transactions.file,) if segment.transactions.exists else ()
        return files

    def note_snapshot(self, offset: int) -> None:
        """Remember the newest snapshot, which the next one replaces unless a segment begins there."""
        self._strays = [] if offset < 0 or offset in self._log.bases else [offset]


def _sync(disk: Disk, plan: _Plan) -> Callable[[], PartialFlush | None]:
    def run() -> PartialFlush | None:
        for handle, size in plan.cuts:
            disk.truncate(handle, size)
        for handle in plan.handles:
            unsynced.sync(disk, plan.folder, handle)
        unwritten = _transient_error(lambda: _write_small_files(disk, plan))
        if plan.named:
            unnamed = _transient_error(lambda: disk.sync_directory(plan.folder))
            if unnamed is not None:
                return PartialFlush(unnamed, durable=False)
        if unwritten is not None:
            return PartialFlush(unwritten, durable=True)
        for offset in plan.stale:
            unlink_if_present(disk, _snapshot_path(plan.folder, offset))
        return None

    return run


def _write_small_files(disk: Disk, plan: _Plan) -> None:
    for snapshot in plan.snapshots:
        write_snapshot(disk, plan.folder, snapshot)
    if plan.epochs is not None:
        replace_file(disk, f"{plan.folder}/{names.LEADER_EPOCHS}", plan.epochs)


def _transient_error(call: Callable[[], None]) -> OSError | None:
    """Run a write; return None on success, or the error if it is transient."""
    try:
        call()
    except OSError as error:
        if not is_transient(error):
            raise
        return error
    return None


def write_snapshot(disk: Disk, folder: str, snapshot: Snapshot) -> None:
    content = producer_snapshot.encode(snapshot.producers, below=snapshot.offset)
    replace_file(disk, _snapshot_path(folder, snapshot.offset), content)


def _snapshot_path(folder: str, offset: int) -> str:
    return names.segment_stem(folder, offset) + names.SNAPSHOT
