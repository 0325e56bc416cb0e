"""The disk of this node's replica of the metadata quorum: executes writes in their order and has them synced.

Entries are written on the loop; votes, received snapshots and syncs are work for a helper. Several writes share a sync.
A write that finds no room waits and is repeated, and so do all later ones; a disk that fails is not used again.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from headrace.broker.cluster.metadata_log import MetadataDamaged, MetadataLog
from headrace.broker.timers import Timers
from headrace.core.raft.effects import Write
from headrace.core.raft.entries import LogEntry, StateSnapshot
from headrace.log.errors import is_full, is_transient
from headrace.log.flush import PartialFlush
from headrace.ports.clock import Clock
from headrace.ports.spawner import Lane, Spawner

HELPER_LOOK_MS = 10
"""Interval at which a truncation checks whether helpers still work on the log."""
DISK_RETRY_MS = 200
"""Wait before the disk is tried again when it or the process is out of space or descriptors."""


def _nothing() -> None:
    """Does nothing; submitted so that a completion comes in a later turn."""


class QuorumDisk:
    def __init__(
        self,
        log: MetadataLog,
        *,
        spawner: Spawner,
        timers: Timers,
        clock: Clock,
        notice: Callable[[str], None],
        on_synced: Callable[[tuple[Write, ...]], None],
        on_installed: Callable[[StateSnapshot, bytes], None],
        on_failed: Callable[[str], None],
    ) -> None:
        """`on_synced` gets the writes that are durable, `on_installed` a snapshot that has replaced the log.

        `on_failed` gets the reason why the disk is not used again until the next start.
        """
        self.log = log
        self._spawner = spawner
        self._timers = timers
        self._clock = clock
        self._notice = notice
        self._on_synced = on_synced
        self._on_installed = on_installed
        self._on_failed = on_failed
        self._writes: deque[Write] = deque()
        """Writes that are not executed yet: the disk is busy with a vote, or had no room."""
        self._unsynced: deque[Write] = deque()
        """Executed writes whose sync has not ended."""
        self._is_saving = False
        self._sync_in_flight = False
        self._is_waiting = False
        """True after a write found no room, so that this is logged once."""
        self._is_stopped = False
        self._looks_again = False
        self.on_no_room: Callable[[], None] = lambda: None
        """Called when the metadata directory is full."""

    @property
    def has_work(self) -> bool:
        """True while a helper works for this object."""
        return self._is_saving or self._sync_in_flight

    @property
    def is_blocked(self) -> bool:
        """True while a write waits for the disk: entries must not be written before it."""
        return bool(self._writes)

    def stop(self) -> None:
        """Execute nothing any more."""
        self._is_stopped = True

    # Writes

    def submit(self, write: Write) -> None:
        """Execute a write after all earlier ones."""
        self._writes.append(write)
        self._execute_writes()

    def _execute_writes(self) -> None:
        """Execute writes in their order, as far as the disk allows."""
        while self._writes and not self._is_saving and not self._is_stopped:
            write = self._writes[0]
            if write.hard_state is not None:
                self._save_hard_state(write)
                return
            if not self._write_chunk(write) or not self._truncate(write):
                return
            if write.install is not None:
                self._install(write, write.install)
                return
            try:
                self.append(tuple(entry for entry in write.append if entry.index > self.log.end_offset))
            except OSError as error:
                self._repeat_later(error)
                return
            self._is_waiting = False
            self._unsynced.append(self._writes.popleft())
        self._sync()

    def _write_chunk(self, write: Write) -> bool:
        """Write a chunk of a snapshot, if the write has one; return False if the disk refused."""
        try:
            if write.snapshot_chunk is not None:
                self.log.write_chunk(write.snapshot_chunk)
        except OSError as error:
            self._work_failed(error)
            return False
        return True

    def _truncate(self, write: Write) -> bool:
        """Truncate the log, if the write says so; return False if the rest of the write has to wait for it."""
        if write.truncate_from is None:
            return True
        if self.log.has_work:
            self._look_again()
            return False
        work = self.log.truncation_work(write.truncate_from - 1)
        if work is None:
            return True

        def truncated(result: object, error: BaseException | None) -> None:
            self._is_saving = False
            work.done(result, error)
            if error is not None:
                self._work_failed(error)
                return
            self._writes[0] = replace(write, snapshot_chunk=None, truncate_from=None)
            self._execute_writes()

        self._is_saving = True
        self._spawner.submit(work.run, truncated, Lane.METADATA)
        return False

    def _look_again(self) -> None:
        """Execute the writes once the sync or another helper that works on the log has ended."""

        def look() -> None:
            self._looks_again = False
            self._execute_writes()

        if not self._looks_again:
            self._looks_again = True
            self._timers.after(HELPER_LOOK_MS, look)

    def _save_hard_state(self, write: Write) -> None:
        """Make the term and the vote durable before the rest of the write, and before all later ones."""
        assert write.hard_state is not None

        def saved(_result: object, error: BaseException | None) -> None:
            self._is_saving = False
            if error is None:
                self._writes[0] = replace(write, hard_state=None)
                self._execute_writes()
            else:
                self._work_failed(error)

        self._is_saving = True
        work = self.log.save_work(write.hard_state, saved)
        self._spawner.submit(work.run, work.done, Lane.METADATA)

    def _install(self, write: Write, snapshot: StateSnapshot) -> None:
        """Put a received snapshot in place of the log, before the rest of the write and all later ones."""
        log = self.log

        def install_metadata() -> bytes:
            return log.install(snapshot)

        def installed(content: bytes | None, error: BaseException | None) -> None:
            self._is_saving = False
            if error is not None:
                self._work_failed(error)
                return
            assert content is not None
            try:
                log.begin_after(snapshot, self._clock.wall_ms())
            except (OSError, MetadataDamaged) as wrong:
                self._fail(f"a snapshot of the metadata could not be installed; restart the broker: {wrong}")
                return
            self._writes[0] = replace(write, snapshot_chunk=None, install=None)
            self._on_installed(snapshot, content)
            self._execute_writes()

        self._is_saving = True
        self._spawner.submit(install_metadata, installed, Lane.METADATA)

    def append(self, entries: tuple[LogEntry, ...]) -> None:
        """Append all entries or none: after an OSError the log is as it was before."""
        before = self.log.end_offset
        try:
            self.log.append(entries, self._clock.wall_ms())
        except OSError as error:
            self._notice(f"metadata cannot be written: {error}")
            if self.log.failed or self.log.end_offset != before:  # otherwise the log has undone the append
                self._reopen(before)
            if is_full(error):
                self.on_no_room()
            raise

    def _reopen(self, end_offset: int) -> None:
        try:
            self.log.reopen(end_offset=end_offset, wall_ms=self._clock.wall_ms())
        except (OSError, MetadataDamaged) as error:
            self._fail(str(error))

    def _work_failed(self, error: BaseException) -> None:
        """Handle an error of work other than an append: stop using a failed disk, repeat what lacked resources."""
        if isinstance(error, OSError) and not is_transient(error):
            self._fail(f"the state of the metadata quorum could not be synced to disk; restart the broker: {error}")
        else:
            if is_full(error):
                self.on_no_room()
            self._repeat_later(error)

    def _repeat_later(self, error: BaseException) -> None:
        """Try again later: the writes wait, and the machine takes no more requests than they allow."""
        if self._is_stopped:
            return
        if not self._is_waiting:
            self._is_waiting = True
            self._notice(f"the metadata quorum waits for the disk: {error}")
        self._timers.after(DISK_RETRY_MS, self._execute_writes)

    # Syncs

    def _sync(self) -> None:
        """Run one sync at a time; writes executed meanwhile share the next one."""
        if self._sync_in_flight or not self._unsynced or self._is_stopped:
            return
        self._sync_in_flight = True
        number = self._unsynced[-1].number
        work = self.log.sync_work()
        if work is None and not self.log.is_synced:
            self._sync_later()
            return

        def completed(result: object, error: BaseException | None) -> None:
            try:
                if work is not None:
                    work.done(result, error)
                if isinstance(result, PartialFlush) and is_full(result.error):
                    self.on_no_room()
            except Exception:
                self._sync_later()  # otherwise nothing would ever be committed
                raise
            if isinstance(error, OSError):
                self._sync_in_flight = False
                self._fail(f"metadata could not be synced to disk; restart the broker: {error}")
            elif isinstance(result, PartialFlush) and not result.durable:
                self._sync_later()
            else:
                self._sync_in_flight = False
                if error is not None:  # the disk is not at fault; opening the log syncs everything in it
                    self._notice(f"a sync of metadata was not done and is repeated: {error}")
                    self._reopen(self.log.end_offset)
                self._synced(number)

        self._spawner.submit(_nothing if work is None else work.run, completed, Lane.METADATA)

    def _sync_later(self) -> None:
        """Wait for resources that a sync needs, unless the log failed because of their lack."""
        if self.log.failed:
            self._sync_in_flight = False
            self._fail("the metadata log failed while a sync was prepared")
            return

        def again() -> None:
            self._sync_in_flight = False
            self._sync()

        self._timers.after(DISK_RETRY_MS, again)

    def _synced(self, number: int) -> None:
        if self._is_stopped:
            return
        durable = []
        while self._unsynced and self._unsynced[0].number <= number:
            durable.append(self._unsynced.popleft())
        try:
            self._on_synced(tuple(durable))
        finally:
            self._sync()

    def _fail(self, reason: str) -> None:
        self._is_stopped = True
        self._on_failed(reason)
