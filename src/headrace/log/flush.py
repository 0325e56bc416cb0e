"""Moving the recovery point: what was appended is synced by a helper, in an order that a crash cannot betray.

Contents before names before the recovery point. A flush syncs the segments that grew; from time to time, and when a
segment was sealed, also their indexes and a producer snapshot, so that recovery has little to walk.

A sync that fails, fails the log: what the device lost then is unknown. Small files that find no room, or no file
descriptor, are only put off; the recovery point waits for them.
"""

from collections.abc import Callable, Iterator
from errno import EIO
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headrace.ports.disk import DataSync, Disk, FileHandle

from . import names, producer_snapshot, unsynced
from .errors import passes
from .files import replace_file, unlink_if_present
from .open_files import OpenFile
from .producers import FrozenProducers
from .segment import Segment
from .work import Work

if TYPE_CHECKING:
    from .partition_log import PartitionLog

GROWTH_FIRST_BYTES = 4 << 20
"""So much of a segment is synced alone before a flush that writes more than that: the system may do it without a thread
(`ports.real.kernel_syncs`), and the thread of the flush finds little to wait for."""
RETRY_MS = 500
"""How long a flush rests whose small files were put off."""


class PutOff(NamedTuple):
    """What a flush gives that could not write everything. `durable`: what was appended is on the device, by name."""

    error: OSError
    durable: bool


class Snapshot(NamedTuple):
    offset: int
    producers: FrozenProducers


class _Plan(NamedTuple):
    """Everything a helper needs for one flush."""

    folder: str
    cuts: list[tuple[FileHandle, int]]
    handles: list[FileHandle]
    indexed: list[Segment]
    """Those whose index of aborted transactions is among the files."""
    snapshots: list[Snapshot]
    epochs: bytes | None
    stale: list[int]
    """Offsets of snapshots that these replace."""
    named: bool
    """Whether the directory must be synced."""


class Flusher:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self._remember_failure = partial(unsynced.remember, log.disk, log.path)
        self._sealed: list[Segment] = []
        self._flushed_bytes = 0
        self._snapshot_bytes = 0
        self._oldest_wall_ms = -1
        self._generation = 0
        self._snapshots: list[Snapshot] = []
        self._written: list[Snapshot] = []
        self._cut: list[Segment] = []
        self._indexed: list[Segment] = []
        """Snapshots, sealed segments and those with an index of aborted transactions, of the flush under way."""
        self._strays: list[int] = []
        """Offsets of snapshots of an end the log once had, which the next one replaces."""
        self.put_off = False
        self._retry_ms = -1
        self._growth_first = False
        """A sync of growth was begun, and the flush that it was begun for is to follow."""
        self.in_flight = False
        self.directory_changed = False
        """A file was made or removed since the directory was last synced."""

    def segment_sealed(self, segment: Segment, next_base_offset: int) -> None:
        """The segment was rolled: it will be cut, synced and accompanied by a snapshot of the producers so far."""
        self._sealed.append(segment)
        self.directory_changed = True
        self._snapshots.append(Snapshot(next_base_offset, self._log.producers.freeze(next_base_offset)))

    def segments_taken(self, taken: list[Segment]) -> None:
        """They leave under other names: nothing of them is cut or synced any more, and their files may be closed."""
        self._sealed = [segment for segment in self._sealed if segment not in taken]

    def writes_snapshot(self, offset: int) -> bool:
        """Whether a flush under way writes the snapshot of that offset."""
        return self.in_flight and any(snapshot.offset == offset for snapshot in self._written)

    def take_snapshot(self, offset: int) -> Snapshot | None:
        """One that the next flush would write, for somebody who cannot wait for it."""
        found = next((snapshot for snapshot in self._snapshots if snapshot.offset == offset), None)
        if found is not None:
            self._snapshots.remove(found)
        return found

    def return_snapshot(self, snapshot: Snapshot) -> None:
        """It could not be written: the next flush tries."""
        self._snapshots.append(snapshot)

    def is_settled(self, segment: Segment) -> bool:
        """Whether nothing remains to be cut or synced of a closed segment."""
        return not self.in_flight and segment not in self._sealed

    def log_truncated(self) -> None:
        """What a flush under way syncs is no longer what the log holds."""
        self._generation += 1
        self._snapshots.clear()
        self._sealed = [segment for segment in self._sealed if segment in self._log.segments[:-1]]

    def is_due(self, wall_ms: int) -> bool:
        log = self._log
        if self.in_flight or log.failed or (self.put_off and self._rests(wall_ms)):
            return False
        if self.put_off or self._sealed or self._growth_first:
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

    def _rests(self, wall_ms: int) -> bool:
        if self._retry_ms < 0 or self._retry_ms - wall_ms > RETRY_MS:  # not set yet, or the clock was set back
            self._retry_ms = wall_ms + RETRY_MS
        return wall_ms < self._retry_ms

    def work(self) -> Work | None:
        log = self._log
        if self.in_flight or log.failed or log.closed:
            return None
        asked = self._sealed or self.directory_changed or log.epochs.changed or self._growth_first
        if log.end_offset <= log.recovery_point and not asked:
            return None
        if any(log.is_preallocating(segment) for segment in self._sealed):
            return None  # it must not grow again after it was cut; the next turn will do
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
            if passes(error):
                self._rest(error)
            else:
                log.work_failed(error)
            return None

    def flush_everything(self) -> None:
        """At a clean close: in place, with the active segment cut and a snapshot of the end.

        A flush under way may never come to its end: what it was to cut and to sync is cut and synced here too. If one
        has failed, and nobody was told yet, another sync would prove nothing.
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
        put_off: PutOff | None = self._work(deep=True).here()
        if put_off is not None:
            raise put_off.error

    def _work(self, *, deep: bool) -> Work:
        """Take down all that is to be synced; `done` moves the recovery point if it still means the same log."""
        log = self._log
        end_offset, appended, generation = log.end_offset, log.appended_bytes, self._generation
        sealed = self._sealed
        plan = self._plan(deep=deep)
        rolls, self._snapshots = self._snapshots, []
        self._written, self._cut, self._indexed = rolls, sealed, plan.indexed
        self._sealed = []
        self.in_flight = True
        self.directory_changed = log.epochs.changed = self.put_off = False
        for handle in plan.handles:
            log.files.pin(handle)
        for segment in plan.indexed:
            segment.transactions.synced()

        def done(put_off: PutOff | None, error: BaseException | None) -> None:
            self.in_flight = False
            for handle in plan.handles:
                log.files.unpin(handle)
            if error is not None:
                log.work_failed(error)
                return
            for segment in sealed:
                segment.allocated = segment.size
            if put_off is not None:
                self._take_up_again(plan, rolls if generation == self._generation else [], put_off)
            elif deep:
                self._snapshot_bytes = appended
                self.note_snapshot(end_offset)
            self._synced(end_offset, appended, generation, put_off)

        return Work(_sync(log.disk, plan), done)

    def _only_grew(self) -> bool:
        """HOT where acknowledgements wait for a sync. Whether the active segment got longer, and that is all."""
        log = self._log
        changed = self._sealed or self._snapshots or self.put_off or self.directory_changed or log.epochs.changed
        if changed or log.active.transactions.is_unsynced:
            return False
        before = log.segments[-2:-1]
        return not before or (before[0].next_offset <= log.recovery_point and not before[0].transactions.is_unsynced)

    def _sync_of_growth(self) -> Work:
        """HOT where acknowledgements wait for a sync. The same as `_work` makes for one file and nothing else."""
        log = self._log
        end_offset, appended, generation = log.end_offset, log.appended_bytes, self._generation
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
                self._synced(end_offset, appended, generation, None)

        return Work(DataSync(log.disk, handle, self._remember_failure), done)

    def _synced(self, end_offset: int, appended: int, generation: int, put_off: PutOff | None) -> None:
        """What was appended by then is on the device, if it is still what the log holds."""
        if put_off is not None and not put_off.durable:
            return
        log = self._log
        self._flushed_bytes = appended
        self._oldest_wall_ms = -1
        if generation != self._generation:
            return
        log.synced_offset = max(log.synced_offset, end_offset)
        if put_off is None:
            log.recovery_point = max(log.recovery_point, end_offset)
        if log.on_flushed is not None:
            log.on_flushed(end_offset)

    def _take_up_again(self, plan: _Plan, rolls: list[Snapshot], put_off: PutOff) -> None:
        """Small files, or names, are still to be written: the next flush tries again after a rest."""
        self._rest(put_off.error)
        self._snapshots[:0] = rolls
        self._strays = [*plan.stale, *(snapshot.offset for snapshot in plan.snapshots)]
        self.directory_changed = self.directory_changed or (plan.named and not put_off.durable)
        self._log.epochs.changed = self._log.epochs.changed or plan.epochs is not None

    def _rest(self, error: OSError) -> None:
        self.put_off = True
        self._retry_ms = -1
        if self._log.on_put_off is not None:
            self._log.on_put_off(error)

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
        """Those that something of is not on the device, the newest first; of the active one its indexes may be left."""
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
            # This one every time: a snapshot of the producers tells nothing of transactions that have ended.
            if segment.transactions.is_unsynced:
                segment.transactions.spill()
                self.directory_changed = self.directory_changed or segment.transactions.is_new
                files += (segment.transactions.file,) if segment.transactions.exists else ()
        return files

    def note_snapshot(self, offset: int) -> None:
        """The newest snapshot, which the next one replaces unless a segment begins there."""
        self._strays = [] if offset < 0 or offset in self._log.bases else [offset]


def _sync(disk: Disk, plan: _Plan) -> Callable[[], PutOff | None]:
    def run() -> PutOff | None:
        for handle, size in plan.cuts:
            disk.truncate(handle, size)
        for handle in plan.handles:
            unsynced.sync(disk, plan.folder, handle)
        unwritten = _tried(lambda: _write_small_files(disk, plan))
        if plan.named:
            unnamed = _tried(lambda: disk.sync_directory(plan.folder))
            if unnamed is not None:
                return PutOff(unnamed, durable=False)
        if unwritten is not None:
            return PutOff(unwritten, durable=True)
        for offset in plan.stale:
            unlink_if_present(disk, _snapshot_path(plan.folder, offset))
        return None

    return run


def _write_small_files(disk: Disk, plan: _Plan) -> None:
    for snapshot in plan.snapshots:
        write_snapshot(disk, plan.folder, snapshot)
    if plan.epochs is not None:
        replace_file(disk, f"{plan.folder}/{names.LEADER_EPOCHS}", plan.epochs)


def _tried(call: Callable[[], None]) -> OSError | None:
    """None if it went well; the error if it may go well later."""
    try:
        call()
    except OSError as error:
        if not passes(error):
            raise
        return error
    return None


def write_snapshot(disk: Disk, folder: str, snapshot: Snapshot) -> None:
    content = producer_snapshot.encode(snapshot.producers, below=snapshot.offset)
    replace_file(disk, _snapshot_path(folder, snapshot.offset), content)


def _snapshot_path(folder: str, offset: int) -> str:
    return names.segment_stem(folder, offset) + names.SNAPSHOT
