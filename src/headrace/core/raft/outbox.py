"""Collects the effects of one step, and tracks what has been written and not yet synced."""

from collections import deque
from typing import NamedTuple

from headrace.core.raft.effects import Effects, Outcome, ReadSnapshot, SnapshotChunk, Write
from headrace.core.raft.entries import HardState, LogEntry, StateSnapshot
from headrace.core.raft.ids import NO_INDEX, Index, Term
from headrace.core.raft.log import RaftLog
from headrace.core.raft.messages import Message
from headrace.core.raft.settings import WRITES_PENDING_MAX


class _PendingWrite(NamedTuple):
    number: int
    last_term: Term
    last_index: Index


class Outbox:
    __slots__ = (
        "_after_sync",
        "_append",
        "_hard_state",
        "_install",
        "_number",
        "_outcomes",
        "_pending",
        "_read_snapshots",
        "_restore",
        "_send",
        "_snapshot_chunk",
        "_truncate_from",
        "synced_index",
    )

    def __init__(self, synced_index: Index) -> None:
        self._number = 0
        self._pending: deque[_PendingWrite] = deque()
        self.synced_index = synced_index
        """Every entry of the log up to here is on disk."""
        self._clear()

    def _clear(self) -> None:
        self._hard_state: HardState | None = None
        self._snapshot_chunk: SnapshotChunk | None = None
        self._install: StateSnapshot | None = None
        self._truncate_from: Index | None = None
        self._append: list[LogEntry] = []
        self._after_sync: list[Message] = []
        self._send: list[Message] = []
        self._read_snapshots: list[ReadSnapshot] = []
        self._restore: StateSnapshot | None = None
        self._outcomes: list[Outcome] = []

    @property
    def next_write_number(self) -> int:
        return self._number + 1

    @property
    def is_full(self) -> bool:
        return len(self._pending) >= WRITES_PENDING_MAX

    # Durable state

    def write_hard_state(self, hard_state: HardState) -> None:
        self._hard_state = hard_state

    def write_truncation(self, first: Index) -> None:
        assert not self._append, "a step truncates before it appends"
        self._truncate_from = first
        self.synced_index = min(self.synced_index, Index(first - 1))

    def write_entry(self, entry: LogEntry) -> None:
        self._append.append(entry)

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        self._snapshot_chunk = chunk

    def write_snapshot(self, snapshot: StateSnapshot) -> None:
        self._install = self._restore = snapshot
        self.synced_index = NO_INDEX  # until this write is synced

    # Everything else

    def send(self, message: Message) -> None:
        """Send a message that promises nothing about durable state."""
        self._send.append(message)

    def send_after_sync(self, message: Message) -> None:
        """Send a message once everything written so far is synced."""
        self._after_sync.append(message)

    def read_snapshot(self, read: ReadSnapshot) -> None:
        self._read_snapshots.append(read)

    def settle(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)

    def synced(self, number: int, log: RaftLog) -> None:
        """Note a sync. An entry that was replaced since its write does not count."""
        while self._pending and self._pending[0].number <= number:
            done = self._pending.popleft()
            if done.last_index > self.synced_index and log.matches(term=done.last_term, index=done.last_index):
                self.synced_index = done.last_index

    def take(self, log: RaftLog, committed: tuple[LogEntry, ...], outcomes: list[Outcome]) -> Effects:
        """Return the effects of the step that ends; `outcomes` depend on `committed`."""
        write = self._take_write(log)
        effects = Effects(
            write=write,
            send=tuple(self._send),
            read_snapshots=tuple(self._read_snapshots),
            restore=self._restore,
            committed=committed,
            outcomes=(*self._outcomes, *outcomes),
        )
        self._clear()
        return effects

    def _take_write(self, log: RaftLog) -> Write | None:
        changes = (
            self._hard_state or self._snapshot_chunk or self._install or self._truncate_from is not None or self._append
        )
        if not changes and not self._pending:
            self._send += self._after_sync
            return None
        if not changes and not self._after_sync:
            return None
        self._number += 1
        self._pending.append(_PendingWrite(self._number, log.last_term, log.last_index))
        return Write(
            number=self._number,
            hard_state=self._hard_state,
            snapshot_chunk=self._snapshot_chunk,
            install=self._install,
            truncate_from=self._truncate_from,
            append=tuple(self._append),
            then_send=tuple(self._after_sync),
        )
