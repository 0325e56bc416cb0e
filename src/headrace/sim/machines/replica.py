"""A virtual host of one Raft machine: executes its effects on a virtual disk and network."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from headrace.core.raft.effects import Effects, Outcome, ReadSnapshot
from headrace.core.raft.entries import EntryKind, LogEntry, StateSnapshot, Stored
from headrace.core.raft.events import DeadlinePassed, Event, Received, SnapshotChunkRead, SnapshotTaken, Synced
from headrace.core.raft.ids import DirectoryId, Index, ReplicaKey
from headrace.core.raft.machine import RaftMachine
from headrace.core.raft.messages import Message
from headrace.core.raft.settings import APPEND_ENTRIES_MAX, ENTRIES_KEPT_MAX, RaftSettings
from headrace.model.ids import NodeId
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.agenda import Agenda
from headrace.sim.machines.replica_disk import ReplicaDisk
from headrace.sim.machines.text import message_text
from headrace.sim.trace import Trace

SNAPSHOT_CHUNK_BYTES = 64
"""Small chunks, so that snapshots of a run take several."""
ELECTION_TIMEOUT_MS = 200
HEARTBEAT_MS = 80
DRIFT_PERCENT_MAX = 1


class ReplicaObserver(Protocol):
    """Checks that observe everything a replica does."""

    def stepped(self, replica: "SimulatedReplica", effects: Effects) -> None: ...

    def sent(self, replica: "SimulatedReplica", message: Message) -> None: ...

    def restored(self, replica: "SimulatedReplica", snapshot: StateSnapshot) -> None: ...

    def applied(self, replica: "SimulatedReplica", entry: LogEntry) -> None: ...


class Resident(Protocol):
    """A machine that runs in the process of a replica, on the state that the replica applies."""

    def started(self) -> None: ...

    def ended(self) -> None: ...

    def applied(self, entry: LogEntry) -> None: ...

    def restored(self, snapshot: StateSnapshot) -> None: ...

    def settled(self) -> None:
        """Called when all effects of a step are carried out."""


class SimulatedReplica:
    def __init__(
        self,
        *,
        node_id: int,
        stored: Stored,
        peers: tuple[int, ...],
        agenda: Agenda,
        entropy: SeededEntropy,
        trace: Trace,
        transmit: Callable[[Message], None],
        observer: ReplicaObserver,
    ) -> None:
        self._agenda = agenda
        self._entropy = entropy
        self._trace = trace
        self._transmit = transmit
        self._observer = observer
        self._peers = tuple(NodeId(peer) for peer in peers)
        self._wipes = 0
        self._settings = RaftSettings(
            election_timeout_ms=ELECTION_TIMEOUT_MS,
            heartbeat_ms=HEARTBEAT_MS,
            append_entries_max=(1, APPEND_ENTRIES_MAX)[entropy.below(2)],
            entries_kept_max=(0, ENTRIES_KEPT_MAX)[entropy.branch("kept").below(2)],
        )
        self.key = ReplicaKey(NodeId(node_id), DirectoryId("a"))
        self.disk = ReplicaDisk(stored)
        self.machine: RaftMachine | None = None
        self.boots = 0
        self.applied: list[bytes] = []
        """The state: the payloads of all commands."""
        self.sync_ms_max = 10
        self._rate = 1.0
        self._paused_until_ms = 0.0
        self._alarm_ms = 0.0
        self.resident: Resident | None = None
        self.on_outcome: Callable[[Outcome], None] = lambda outcome: None

    @property
    def node_id(self) -> int:
        return self.key.node_id

    # Process

    def drift(self, percent: float) -> None:
        self._rate = 1.0 + percent / 100

    def local_ms(self) -> float:
        return self._agenda.now_ms * self._rate

    def start(self) -> None:
        self.boots += 1
        self._trace.record(f"{self._agenda.now_ms:.1f} start {self.key}")
        self.applied = _decoded(self.disk.snapshots[self.disk.stored.snapshot.index])
        self.machine = RaftMachine(
            me=self.key,
            stored=self.disk.stored,
            draw=self._entropy.below,
            now_ms=self.local_ms(),
            settings=self._settings,
            peers=self._peers,
        )
        self._alarm_ms = float("inf")
        self._set_alarm()
        if self.resident is not None:
            self.resident.started()

    def crash(self) -> None:
        self._trace.record(f"{self._agenda.now_ms:.1f} crash {self.key}")
        self._trace.count_fault("crash")
        self._end()
        self.disk.crash(self._entropy, self._trace)

    def _end(self) -> None:
        self.machine = None
        if self.resident is not None:
            self.resident.ended()

    def wipe(self) -> None:
        """Lose the data folder; the node returns under its id with a new directory id."""
        self._trace.count_fault("folder lost")
        self._wipes += 1
        self._end()
        self.key = ReplicaKey(self.key.node_id, DirectoryId("abcdefghij"[self._wipes % 10] * (1 + self._wipes // 10)))
        self.disk = ReplicaDisk(Stored())

    def pause(self, duration_ms: float) -> None:
        """Stop the process; everything that arrives waits."""
        self._trace.count_fault("pause")
        self._paused_until_ms = max(self._paused_until_ms, self._agenda.now_ms + duration_ms)

    # Events

    def receive(self, message: Message) -> None:
        self.when_running(partial(self._step_if, self.boots, Received(message=message)))

    def submit(self, event: Event) -> None:
        self.when_running(partial(self._step_if, self.boots, event))

    def when_running(self, action: Callable[[], None]) -> None:
        """Run an action of the process, after its pause if it is paused."""
        wait_ms = self._paused_until_ms - self._agenda.now_ms
        if wait_ms > 0:
            self._agenda.add(wait_ms, action)
        else:
            action()

    def _step_if(self, boot: int, event: Event) -> None:
        """Step unless the process that the event is for has ended."""
        if self.machine is None or boot != self.boots:
            return
        if isinstance(event, Received):
            self._trace.record(f"{self._agenda.now_ms:.1f} {message_text(event.message)}")
        else:
            self._trace.record(f"{self._agenda.now_ms:.1f} {self.key} {type(event).__name__}")
        effects = self.machine.step(event, self.local_ms())
        self._carry_out(effects)
        self._set_alarm()

    def _set_alarm(self) -> None:
        assert self.machine is not None
        deadline_ms = max(self.machine.next_deadline_ms() / self._rate, self._agenda.now_ms) + 0.01
        if deadline_ms < self._alarm_ms:
            self._alarm_ms = deadline_ms
            self._agenda.add(deadline_ms - self._agenda.now_ms, partial(self._ring, self.boots, deadline_ms))

    def _ring(self, boot: int, alarm_ms: float) -> None:
        if boot != self.boots or self.machine is None or alarm_ms != self._alarm_ms:
            return
        if self._paused_until_ms > self._agenda.now_ms:
            self._agenda.add(self._paused_until_ms - self._agenda.now_ms, partial(self._ring, boot, alarm_ms))
            return
        self._alarm_ms = float("inf")
        if self.machine.next_deadline_ms() <= self.local_ms():
            self._step_if(boot, DeadlinePassed())
        else:
            self._set_alarm()

    # Effects

    def _carry_out(self, effects: Effects) -> None:
        if effects.write is not None:
            self.disk.submit(effects.write)
            delay_ms = 0.1 + self._entropy.below(self.sync_ms_max * 10) / 10
            self._agenda.add(delay_ms, partial(self._sync, self.boots, effects.write.number))
        self._observer.stepped(self, effects)
        for message in effects.send:
            self._send(message)
        for read in effects.read_snapshots:
            self._agenda.add(1, partial(self._read_snapshot, self.boots, read))
        if effects.restore is not None:
            self._restore(effects)
        for entry in effects.committed:
            self._apply(entry)
        for outcome in effects.outcomes:
            self.on_outcome(outcome)
        if self.resident is not None:
            self.resident.settled()

    def _send(self, message: Message) -> None:
        self._observer.sent(self, message)
        self._transmit(message)

    def _sync(self, boot: int, number: int) -> None:
        self.when_running(partial(self._synced, boot, number))

    def _synced(self, boot: int, number: int) -> None:
        if self.machine is None or boot != self.boots:
            return
        done = self.disk.sync(number)
        for write in done:
            for message in write.then_send:
                self._send(message)
        if done:
            self._step_if(boot, Synced(number=number))

    def _restore(self, effects: Effects) -> None:
        """Load the snapshot that has arrived, which may be read before it is synced."""
        assert effects.restore is not None
        self._trace.count_fault("snapshot installed")
        self.applied = _decoded(self.disk.incoming_snapshot())
        self._observer.restored(self, effects.restore)
        if self.resident is not None:
            self.resident.restored(effects.restore)

    def _apply(self, entry: LogEntry) -> None:
        if entry.kind is EntryKind.COMMAND:
            self.applied.append(entry.payload)
        self._observer.applied(self, entry)
        if self.resident is not None:
            self.resident.applied(entry)

    # Snapshots

    def take_snapshot(self) -> None:
        """Snapshot the applied state."""
        if self.machine is None or self._paused_until_ms > self._agenda.now_ms:
            return
        state = self.machine.state
        index = state.applied_index
        if index > state.log.snapshot.index:
            self._trace.count_fault("snapshot taken")
            content = b"\n".join(self.applied)
            self._step_if(self.boots, SnapshotTaken(index=index))
            self.disk.keep_snapshot(state.log.snapshot, content)

    def _read_snapshot(self, boot: int, read: ReadSnapshot) -> None:
        content = self.disk.snapshots.get(Index(read.snapshot_index))
        end = read.position + SNAPSHOT_CHUNK_BYTES
        event = SnapshotChunkRead(
            follower=read.follower,
            snapshot_index=read.snapshot_index,
            position=read.position,
            chunk=None if content is None else content[read.position : end],
            is_last=content is not None and end >= len(content),
        )
        self._step_if(boot, event)


def _decoded(content: bytes) -> list[bytes]:
    return content.split(b"\n") if content else []
