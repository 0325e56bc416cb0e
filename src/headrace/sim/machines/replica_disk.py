"""The disk of one virtual replica: synced writes survive a crash, others may survive in part."""

from collections import deque

from headrace.core.raft.effects import Write
from headrace.core.raft.entries import LogEntry, StateSnapshot, Stored
from headrace.core.raft.ids import Index
from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace


class ReplicaDisk:
    __slots__ = ("_incoming", "_pending", "snapshots", "stored")

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self._pending: deque[Write] = deque()
        self._incoming = b""
        self.snapshots: dict[Index, bytes] = {stored.snapshot.index: b""}
        """The bytes of the newest snapshot."""

    def submit(self, write: Write) -> None:
        self._pending.append(write)

    def sync(self, number: int) -> list[Write]:
        """Make every write up to `number` durable."""
        done = []
        while self._pending and self._pending[0].number <= number:
            write = self._pending.popleft()
            self._carry_out(write)
            done.append(write)
        return done

    def incoming_snapshot(self) -> bytes:
        """The bytes of the snapshot that the writes submitted so far contain."""
        content = self._incoming
        for write in self._pending:
            if write.snapshot_chunk is not None:
                content = content[: write.snapshot_chunk.position] + write.snapshot_chunk.chunk
        return content

    def crash(self, entropy: SeededEntropy, trace: Trace) -> None:
        """Keep a drawn number of the unsynced writes, and perhaps a part of the next one."""
        kept = entropy.below(len(self._pending) + 1)
        for _ in range(kept):
            self._carry_out(self._pending.popleft())
        if self._pending:
            trace.count_fault("unsynced write lost")
            self._tear(self._pending[0], entropy, trace)
        self.forget_unsynced()

    def forget_unsynced(self) -> None:
        self._pending.clear()
        self._incoming = b""

    def _tear(self, write: Write, entropy: SeededEntropy, trace: Trace) -> None:
        if write.snapshot_chunk is not None or not entropy.one_in(2):
            return
        trace.count_fault("write torn")
        steps = entropy.below(3 + len(write.append))
        torn = Write(
            number=write.number,
            hard_state=write.hard_state if steps >= 1 else None,
            truncate_from=write.truncate_from if steps >= 2 else None,
            append=write.append[: max(0, steps - 2)],
        )
        self._carry_out(torn)

    def keep_snapshot(self, snapshot: StateSnapshot, content: bytes) -> None:
        """Store a snapshot that the replica took, and drop the entries below it."""
        entries = tuple(entry for entry in self.stored.entries if entry.index > snapshot.index)
        if entries and entries[0].index != snapshot.index + 1:
            entries = ()  # the snapshot is ahead of what is synced
        self.stored = Stored(hard_state=self.stored.hard_state, snapshot=snapshot, entries=entries)
        self.snapshots = {snapshot.index: content}

    def _carry_out(self, write: Write) -> None:
        stored = self.stored
        hard_state = write.hard_state or stored.hard_state
        snapshot, entries = stored.snapshot, stored.entries
        if write.snapshot_chunk is not None:
            self._incoming = self._incoming[: write.snapshot_chunk.position] + write.snapshot_chunk.chunk
        if write.install is not None:
            snapshot, entries = write.install, ()
            self.snapshots = {snapshot.index: self._incoming}
        if write.truncate_from is not None:
            entries = tuple(entry for entry in entries if entry.index < write.truncate_from)
        entries += appended(write.append, snapshot)
        self.stored = Stored(hard_state=hard_state, snapshot=snapshot, entries=entries)


def appended(entries: tuple[LogEntry, ...], snapshot: StateSnapshot) -> tuple[LogEntry, ...]:
    """The entries that the newest snapshot does not contain."""
    return tuple(entry for entry in entries if entry.index > snapshot.index)
