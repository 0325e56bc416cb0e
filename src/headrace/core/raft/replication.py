"""The sending side of replication: what each voter and observer has, and what to send next."""

from headrace.core.raft.effects import ReadSnapshot
from headrace.core.raft.events import SnapshotChunkRead
from headrace.core.raft.ids import NO_INDEX, NO_TERM, Index, ReplicaKey
from headrace.core.raft.messages import AppendRequest, AppendResponse, SnapshotRequest, SnapshotResponse
from headrace.core.raft.progress import Flow, Progress
from headrace.core.raft.reads import PendingReads
from headrace.core.raft.settings import APPEND_BYTES_MAX, OBSERVERS_MAX, SNAPSHOT_CHUNK_BYTES
from headrace.core.raft.state import RaftState


class Replication:
    __slots__ = ("_reads", "_state", "progress")

    def __init__(self, state: RaftState, reads: PendingReads) -> None:
        self._state = state
        self._reads = reads
        self.progress: dict[ReplicaKey, Progress] = {}
        """The progress of every voter and observer except this replica."""

    # Targets

    def follow_voters(self) -> None:
        """Replicate to every voter; a removed voter becomes an observer."""
        for voter in self._state.voters:
            if voter != self._state.me:
                self._add(voter)

    def observe(self, replica: ReplicaKey, *, may_vote: bool = False) -> None:
        """Replicate to a replica that asked for it."""
        state = self._state
        if replica not in self.progress and replica != state.me:
            if len(self.progress) >= OBSERVERS_MAX + len(state.voters):
                return
            self._add(replica)
            self._send_entries(replica, self.progress[replica], even_empty=True)
        if may_vote and replica != state.me:
            self.progress[replica].may_vote = True

    def _add(self, replica: ReplicaKey) -> None:
        next_index = Index(self._state.log.last_index + 1)
        self.progress.setdefault(replica, Progress(next_index=next_index, now_ms=self._state.now_ms))

    def _forget_silent_observers(self) -> None:
        state = self._state
        heard_since_ms = state.now_ms - state.settings.observer_silence_ms
        silent = [key for key, each in self.progress.items() if each.heard_ms < heard_since_ms]
        for key in silent:
            if key not in state.voters:
                del self.progress[key]

    # Majorities

    def majority_match(self) -> Index:
        """Return the highest index that a majority of the voters has synced."""
        state = self._state
        matches = [
            state.out.synced_index if voter == state.me else self.progress[voter].match_index for voter in state.voters
        ]
        return sorted(matches, reverse=True)[state.majority_of(state.voters) - 1]

    def majority_round(self) -> int:
        """Return the newest round of heartbeats that a majority of the voters has answered."""
        state = self._state
        rounds = [
            self._reads.round if voter == state.me else self.progress[voter].acked_round for voter in state.voters
        ]
        return sorted(rounds, reverse=True)[state.majority_of(state.voters) - 1]

    def has_live_quorum(self) -> bool:
        """Return whether a majority of the voters responded within the last election timeout (check-quorum)."""
        state = self._state
        since_ms = state.now_ms - state.settings.election_timeout_ms
        live = sum(voter == state.me or self.progress[voter].heard_ms >= since_ms for voter in state.voters)
        return live >= state.majority_of(state.voters)

    # Sending

    def heartbeat(self) -> None:
        """Send every replica a message, so that followers stay and lost requests are noticed."""
        self._forget_silent_observers()
        for key, progress in self.progress.items():
            progress.probe_sent = False
            if progress.flow is Flow.SNAPSHOT:
                self._send_bare_heartbeat(key)
                self._repeat_chunk(key, progress)
            elif self._lacks_entries(progress):
                self._begin_snapshot(key, progress)
            elif progress.is_blocked:
                self._send_append(key, progress, entries_max=0)
            else:
                self._send_entries(key, progress, even_empty=True)

    def replicate(self, *, with_commit: bool = False) -> None:
        """Send new entries to every replica that can take some; with `with_commit` also the commit index alone."""
        for key, progress in self.progress.items():
            self._send_entries(key, progress, even_empty=with_commit)

    def _send_entries(self, key: ReplicaKey, progress: Progress, *, even_empty: bool) -> None:
        state = self._state
        sent = not even_empty
        while not progress.is_blocked and (progress.next_index <= state.log.last_index or not sent):
            if self._lacks_entries(progress):
                self._begin_snapshot(key, progress)
                return
            self._send_append(key, progress, entries_max=self._state.settings.append_entries_max)
            sent = True

    def _lacks_entries(self, progress: Progress) -> bool:
        return self._state.log.term_at(Index(progress.next_index - 1)) is None

    def _send_append(self, key: ReplicaKey, progress: Progress, *, entries_max: int) -> None:
        state = self._state
        previous_index = Index(progress.next_index - 1)
        previous_term = state.log.term_at(previous_index)
        assert previous_term is not None, "a follower whose entries are gone must get a snapshot"
        entries = state.log.slice(progress.next_index, entries_max=entries_max, bytes_max=APPEND_BYTES_MAX)
        if entries:
            progress.sent(entries[-1].index)
        state.out.send(
            AppendRequest(
                source=state.me,
                to=key,
                term=state.term,
                previous_term=previous_term,
                previous_index=previous_index,
                commit_index=state.commit_index,
                round=self._reads.round,
                entries=entries,
            )
        )

    def _send_bare_heartbeat(self, key: ReplicaKey) -> None:
        """Send a heartbeat that claims nothing about the follower's log."""
        state = self._state
        state.out.send(
            AppendRequest(
                source=state.me,
                to=key,
                term=state.term,
                previous_term=NO_TERM,
                previous_index=NO_INDEX,
                commit_index=NO_INDEX,
                round=self._reads.round,
            )
        )

    # Responses

    def receive(self, response: AppendResponse) -> bool:
        """Note a response; return False if the sender is not replicated to."""
        progress = self.progress.get(response.source)
        if progress is None:
            return False
        progress.heard_ms = self._state.now_ms
        progress.acked_round = max(progress.acked_round, response.round)
        if response.accepted:
            progress.accepted(min(response.index, self._state.log.last_index))
        elif progress.is_current(response):
            _, guess = self._state.log.guess(term=response.hint_term, index=response.index)
            progress.probe(min(guess, Index(response.rejected_index - 1)))
        self._send_entries(response.source, progress, even_empty=not response.accepted)
        return True

    # Snapshots

    def _begin_snapshot(self, key: ReplicaKey, progress: Progress) -> None:
        progress.begin_snapshot(self._state.log.snapshot)
        self._send_bare_heartbeat(key)
        self._read_chunk(key, progress)

    def _read_chunk(self, key: ReplicaKey, progress: Progress) -> None:
        assert progress.snapshot is not None
        progress.snapshot_sent_ms = self._state.now_ms
        read = ReadSnapshot(
            follower=key,
            snapshot_index=progress.snapshot.index,
            position=progress.snapshot_position,
            bytes_max=SNAPSHOT_CHUNK_BYTES,
        )
        self._state.out.read_snapshot(read)

    def _repeat_chunk(self, key: ReplicaKey, progress: Progress) -> None:
        """Resend a chunk that was not answered in time."""
        state = self._state
        if state.now_ms >= progress.snapshot_sent_ms + state.settings.election_timeout_ms:
            self._read_chunk(key, progress)

    def chunk_read(self, event: SnapshotChunkRead) -> None:
        progress = self.progress.get(event.follower)
        if progress is None or progress.snapshot is None or progress.snapshot.index != event.snapshot_index:
            return
        if event.chunk is None:
            self._replace_snapshot(event.follower, progress)
            return
        state = self._state
        state.out.send(
            SnapshotRequest(
                source=state.me,
                to=event.follower,
                term=state.term,
                snapshot=progress.snapshot,
                position=event.position,
                chunk=event.chunk,
                is_last=event.is_last,
            )
        )

    def _replace_snapshot(self, key: ReplicaKey, progress: Progress) -> None:
        """Send the newest snapshot instead of one that is gone; a missing newest one is requested again later."""
        if progress.snapshot != self._state.log.snapshot:
            progress.begin_snapshot(self._state.log.snapshot)
            self._read_chunk(key, progress)

    def receive_position(self, response: SnapshotResponse) -> None:
        """Continue a snapshot at the position that the follower reports."""
        progress = self.progress.get(response.source)
        if progress is None:
            return
        progress.heard_ms = self._state.now_ms
        snapshot = progress.snapshot
        if snapshot is None or snapshot.index != response.snapshot_index:
            return
        if response.position != progress.snapshot_position:  # a repeated response requests nothing
            progress.snapshot_position = response.position
            self._read_chunk(response.source, progress)
