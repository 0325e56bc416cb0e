"""This node's replica of the metadata quorum: runs the Raft machine and executes its effects.

The machine decides (`core/raft`). Its writes go to `quorum_disk.py`; messages that promise durable state leave when the
writes are synced.

A leader writes a proposal to its log before the machine sees it: if the disk refuses the write, only that proposal
fails.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from headrace.broker.cluster.metadata_log import MetadataLog, Replay
from headrace.broker.cluster.quorum_disk import QuorumDisk
from headrace.broker.cluster.snapshot_transfer import SnapshotPart
from headrace.broker.cluster.snapshots import SnapshotLoading, SnapshotName
from headrace.broker.timers import Timer, Timers
from headrace.core.controller.image import MetadataImage
from headrace.core.raft.effects import Effects, Outcome, ReadSnapshot, RequestRefusal, Write
from headrace.core.raft.entries import LogEntry, StateSnapshot
from headrace.core.raft.events import (
    AddVoter,
    DeadlinePassed,
    Event,
    Propose,
    Read,
    Received,
    RemoveVoter,
    SnapshotChunkRead,
    SnapshotTaken,
    Synced,
    TransferLeadership,
)
from headrace.core.raft.ids import Index, ReplicaKey, Term, Voters
from headrace.core.raft.leadership import Leadership
from headrace.core.raft.machine import RaftMachine
from headrace.core.raft.messages import Message
from headrace.core.raft.promotion import HostOf, MayPromote
from headrace.core.raft.settings import RaftSettings
from headrace.model.ids import NodeId
from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy
from headrace.ports.spawner import Spawner, raise_failures
from headrace.wire.errors import ProtocolError


class ReplicaState(NamedTuple):
    """A replica as its leader sees it."""

    key: ReplicaKey
    is_voter: bool
    end_offset: int
    """Everything below is synced on that replica."""
    heard_ms: float
    """Monotonic time of its last response."""


class _Restoration(NamedTuple):
    snapshot: StateSnapshot


class AppendRefused(Exception):
    """The quorum does not take a proposal now; nothing was written."""

    def __init__(self, reason: RequestRefusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


class MetadataQuorum:
    def __init__(
        self,
        log: MetadataLog,
        replay: Replay,
        *,
        me: ReplicaKey,
        spawner: Spawner,
        timers: Timers,
        clock: Clock,
        entropy: Entropy,
        settings: RaftSettings | None = None,
        peers: tuple[NodeId, ...] = (),
        may_vote: bool = False,
        send: Callable[[Message], None] = lambda message: None,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`send` transmits a message to the replica that it names, and may drop it.

        `peers` are nodes that may know the leader. With `may_vote` the leader may promote this replica to a voter.
        """
        self.log = log
        self._spawner = spawner
        self._timers = timers
        self._clock = clock
        self._send = send
        self._notice = notice
        self._machine = RaftMachine(
            me=me,
            stored=replay.stored,
            draw=entropy.below,
            now_ms=clock.monotonic_ms(),
            settings=settings,
            peers=peers,
            may_vote=may_vote,
        )
        self.disk = QuorumDisk(
            log,
            spawner=spawner,
            timers=timers,
            clock=clock,
            notice=notice,
            on_synced=self._synced,
            on_installed=self._load,
            on_failed=self.stop,
        )
        self._alarm: tuple[float, Timer] | None = None
        self._committed: deque[tuple[LogEntry, ...] | _Restoration] = deque()
        """Committed entries, and snapshots that replace everything before them, to be handed over in order."""
        self._is_handing_over = False
        self.voter_target = 1
        """The number of voters up to which this replica promotes others while it leads."""
        self.host_of: HostOf = lambda node_id: None
        self.may_promote: MayPromote = lambda node_id: True
        self.leaderless_since_ms: int | None = clock.wall_ms()
        """The wall-clock time since which no leader is known; None while a leader is known."""
        self._leading: Leadership | None = None
        self._active: Leadership | None = None
        self.on_committed: Callable[[tuple[LogEntry, ...]], None] = lambda entries: None
        """Called with the committed entries, in order, each exactly once."""
        self.on_restored: Callable[[MetadataImage], None] = lambda image: None
        """Called with the image of a snapshot that replaces everything handed over before."""
        self.on_activity_changed: Callable[[], None] = lambda: None
        """Called when `is_active` has changed, after the entries that it depends on were handed over, and when a
        leadership has ended that never became active.
        """
        self.on_offline: Callable[[str], None] = lambda reason: None
        self.offline: str | None = None
        """Reason why this replica has stopped until the next start, or None."""

    def start(self) -> None:
        """Take part in the quorum; a single voter elects itself without delay."""
        self._step(DeadlinePassed())

    # State

    @property
    def me(self) -> ReplicaKey:
        return self._machine.state.me

    @property
    def term(self) -> Term:
        return self._machine.state.term

    @property
    def voters(self) -> Voters:
        return self._machine.state.voters

    @property
    def leader(self) -> NodeId | None:
        """The node of the leader that this replica knows, which may have been replaced since."""
        leader = self._machine.state.leader
        return None if leader is None else leader.node_id

    @property
    def is_active(self) -> bool:
        """True while this replica leads and has applied everything that earlier leaders committed."""
        return self._active is not None

    @property
    def is_electing_itself(self) -> bool:
        """True if this replica can become active without any other."""
        return self.offline is None and (self.voters == (self.me,) or self._machine.leadership is not None)

    @property
    def is_full(self) -> bool:
        """True while too many entries wait for their commit: a proposal would be refused."""
        leadership = self._machine.leadership
        return leadership is not None and leadership.proposal_refusal((b"",)) is RequestRefusal.OVERLOADED

    @property
    def end_offset(self) -> int:
        """The offset of the next entry."""
        return self._machine.state.log.last_index

    @property
    def applied_offset(self) -> int:
        """The offset up to which committed entries were passed on."""
        return self._machine.state.applied_index

    @property
    def committed_offset(self) -> int:
        return self._machine.state.commit_index

    def replicas(self) -> list[ReplicaState]:
        """Return the progress of all voters and observers, as far as a leader knows it; empty on other replicas."""
        state, leadership = self._machine.state, self._machine.leadership
        if leadership is None:
            return []
        now_ms = self._clock.monotonic_ms()
        own = ReplicaState(state.me, state.me in state.voters, state.log.last_index, now_ms)
        others = leadership.peers.progress.items()
        return [
            own,
            *(ReplicaState(key, key in state.voters, each.match_index, each.heard_ms) for key, each in others),
        ]

    # Events

    def know_peers(self, nodes: tuple[NodeId, ...]) -> None:
        """Set the nodes that may know the leader."""
        self._machine.peers = nodes

    def read(self, then: Callable[[Outcome], None]) -> None:
        """Call back with ReadAllowed once everything committed before this call is in the image (ReadIndex)."""
        self._step(Read(ticket=then))

    def add_voter(self, voter: ReplicaKey, then: Callable[[Outcome], None]) -> None:
        """Promote an observer; call back with Committed or RequestRefused."""
        self._step(AddVoter(ticket=then, voter=voter))

    def remove_voter(self, voter: ReplicaKey, then: Callable[[Outcome], None]) -> None:
        """Remove a voter, which continues as an observer; call back with Committed or RequestRefused."""
        self._step(RemoveVoter(ticket=then, voter=voter))

    def transfer_leadership(self, then: Callable[[Outcome], None]) -> None:
        """Hand the leadership to the voter that has caught up furthest; call back with the outcome."""
        self._step(TransferLeadership(ticket=then))

    def deliver(self, message: Message) -> None:
        """Take a message of another replica."""
        self._step(Received(message=message))

    def append(self, payload: bytes) -> int:
        """Append a payload as one entry and return the offset after it.

        Raises AppendRefused or an OSError; in both cases nothing has been appended.
        """
        leadership = self._machine.leadership
        if leadership is None or self.offline is not None:
            raise AppendRefused(RequestRefusal.NOT_LEADER)
        refusal = leadership.proposal_refusal((payload,))
        if refusal is None and self.disk.is_blocked:
            refusal = RequestRefusal.OVERLOADED  # an earlier entry waits for room on the disk
        if refusal is not None:
            raise AppendRefused(refusal)
        entry = LogEntry(term=self.term, index=Index(self.end_offset + 1), payload=payload)
        self.disk.append((entry,))
        self._step(Propose(ticket=None, payloads=(payload,)))
        assert self.end_offset >= entry.index, "the machine must take what it did not refuse"
        return entry.index

    def _step(self, event: Event) -> None:
        if self.offline is not None:
            return
        self._execute(self._machine.step(event, self._clock.monotonic_ms()))
        if self._machine.state.leader is not None:
            self.leaderless_since_ms = None
        elif self.leaderless_since_ms is None:
            self.leaderless_since_ms = self._clock.wall_ms()
        self._set_alarm()

    def _set_alarm(self) -> None:
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms == float("inf") or (self._alarm is not None and self._alarm[0] <= deadline_ms):
            return  # an early alarm is set again when it rings
        if self._alarm is not None:
            self._timers.cancel(self._alarm[1])
        self._alarm = deadline_ms, self._timers.at(deadline_ms, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._machine.next_deadline_ms() <= self._clock.monotonic_ms():
            self._step(DeadlinePassed())
            self._promote()
        elif self.offline is None:
            self._set_alarm()

    def _promote(self) -> None:
        """Make the next change of the voter set that is due."""
        leadership = self._machine.leadership
        if leadership is None or self.offline is not None:
            return
        change = leadership.next_voter_change(
            target=self.voter_target, host_of=self.host_of, may_promote=self.may_promote
        )
        if change is None:
            return
        event_type = AddVoter if change.is_addition else RemoveVoter
        self._step(event_type(ticket=None, voter=change.voter))

    # Effects

    def _execute(self, effects: Effects) -> None:
        if effects.write is not None:
            self.disk.submit(effects.write)
        for message in effects.send:
            self._send(message)
        for read in effects.read_snapshots:
            self._read_snapshot(read)
        if effects.restore is not None:
            self._committed.clear()  # the snapshot contains whatever was not handed over yet
            self._committed.append(_Restoration(effects.restore))
        if effects.committed:
            self._committed.append(effects.committed)
        self._hand_over()
        for outcome in effects.outcomes:
            if callable(outcome.ticket):
                outcome.ticket(outcome)

    def _synced(self, writes: tuple[Write, ...]) -> None:
        for write in writes:
            for message in write.then_send:
                self._send(message)
        if writes:
            self._step(Synced(number=writes[-1].number))

    def _hand_over(self) -> None:
        """Pass committed entries on in order, also if a receiver causes the next step."""
        if self._is_handing_over:
            return
        self._is_handing_over = True
        failures: list[Exception] = []
        while self._committed and not isinstance(self._committed[0], _Restoration):
            try:
                self._hand_over_next()
            except Exception as error:  # the entries after these must be handed over too
                failures.append(error)
        self._is_handing_over = False
        self._note_activity()
        raise_failures(failures)

    def _hand_over_next(self) -> None:
        entries = self._committed.popleft()
        assert not isinstance(entries, _Restoration)
        self.on_committed(entries)

    def _note_activity(self) -> None:
        leadership = self._machine.leadership
        is_active = leadership is not None and leadership.is_committed and not self._committed
        active = leadership if is_active else None
        is_deposed = self._leading is not None and self._leading is not leadership
        self._leading = leadership
        if active is not self._active or is_deposed:
            self._active = active
            self.on_activity_changed()

    def stop(self, reason: str) -> None:
        """Stop for good, for example because the disk failed: nothing that was not synced may be acknowledged ("Power
        loss" in docs/guarantees.md). Other replicas notice the silence.
        """
        if self.offline is None:
            self.offline = reason
            self.disk.stop()
            self._active = None
            self._notice(reason)
            self.on_offline(reason)

    # Snapshots

    def _read_snapshot(self, read: ReadSnapshot) -> None:
        """Read a chunk for a follower that lacks entries which this leader has dropped."""
        log = self.log

        def read_metadata_snapshot() -> SnapshotPart | None:
            return log.read_chunk(read.snapshot_index, read.position, read.bytes_max)

        def done(part: SnapshotPart | None, error: BaseException | None) -> None:
            if error is not None:
                self._notice(f"a metadata snapshot could not be read for node {read.follower.node_id}: {error}")
            event = SnapshotChunkRead(
                follower=read.follower,
                snapshot_index=read.snapshot_index,
                position=read.position,
                chunk=None if part is None else part.content,
                is_last=part is not None and part.is_last,
            )
            self._step(event)

        self._spawner.submit(read_metadata_snapshot, done)

    def _load(self, snapshot: StateSnapshot, content: bytes) -> None:
        """Load an installed snapshot in slices, one per turn; entries after it wait."""
        loading = SnapshotLoading(content, SnapshotName(snapshot.index, snapshot.term))
        slices = loading.slices()

        def load_slice() -> None:
            if self.offline is not None or self._committed[0] != _Restoration(snapshot):
                return  # a newer snapshot has replaced it
            try:
                for _ in slices:
                    self._timers.next_turn(load_slice)
                    return
            except ProtocolError as wrong:
                self.stop(f"the snapshot that the leader sent is damaged; restart the broker: {wrong}")
                return
            self._committed.popleft()
            try:
                self.on_restored(loading.loaded().image)
            finally:
                self._hand_over()

        load_slice()

    def term_at(self, offset: int) -> Term:
        """Return the term of the entry before `offset`, which is not below the newest snapshot."""
        term = self._machine.state.log.term_at(Index(offset))
        assert term is not None, "the machine keeps every entry above its snapshot"
        return term

    def voters_at(self, offset: int) -> Voters:
        """Return the voter set of the entries below `offset`."""
        return self._machine.state.log.voters_at(Index(offset))

    def snapshot_taken(self, end_offset: int) -> None:
        """Forget entries that a durable snapshot contains."""
        self._step(SnapshotTaken(index=Index(end_offset)))
