"""The receiving side of replication: entries, heartbeats and snapshots from a leader."""

from headrace.core.raft.effects import SnapshotChunk
from headrace.core.raft.entries import LogEntry, StateSnapshot
from headrace.core.raft.ids import NO_INDEX, NO_TERM, Index, Term
from headrace.core.raft.messages import AppendRequest, AppendResponse, SnapshotRequest, SnapshotResponse
from headrace.core.raft.settings import SNAPSHOT_CHUNK_BYTES_MAX
from headrace.core.raft.state import RaftState


def is_sound(request: AppendRequest) -> bool:
    """Return whether the entries are consecutive; a request that no correct leader sends is dropped."""
    index, term = request.previous_index, request.previous_term
    for entry in request.entries:
        if entry.index != index + 1 or not term <= entry.term <= request.term:
            return False
        index, term = entry.index, entry.term
    return True


class LogCopy:
    """Keeps a replica's log equal to that of its leader."""

    __slots__ = ("_incoming", "_incoming_term", "_received_bytes", "_state")

    def __init__(self, state: RaftState) -> None:
        self._state = state
        self._incoming: StateSnapshot | None = None
        """The snapshot that is arriving in chunks."""
        self._incoming_term = NO_TERM
        """The term of the leader that sends it: another leader's bytes of the same snapshot may differ."""
        self._received_bytes = 0

    # Entries

    def append(self, request: AppendRequest) -> None:
        state = self._state
        if not is_sound(request):
            return
        if request.previous_index < state.commit_index:
            self._accept(request, state.commit_index)  # entries that are committed here are in every leader's log
            return
        if not state.log.matches(term=request.previous_term, index=request.previous_index):
            self._reject(request)
            return
        for entry in request.entries:
            self._take(entry)
        last = Index(request.previous_index + len(request.entries))
        state.commit(min(request.commit_index, last))
        state.follow_voter_set()
        self._accept(request, last)

    def _take(self, entry: LogEntry) -> None:
        state = self._state
        if state.log.matches(term=entry.term, index=entry.index):
            return
        if entry.index <= state.log.last_index:
            state.truncate_from(entry.index)
        state.append(entry)

    def _accept(self, request: AppendRequest, index: Index) -> None:
        self._respond(request, accepted=True, index=index, round=request.round)

    def _reject(self, request: AppendRequest) -> None:
        hint_term, hint_index = self._state.log.guess(term=request.previous_term, index=request.previous_index)
        self._respond(
            request,
            accepted=False,
            index=hint_index,
            round=request.round,
            rejected_index=request.previous_index,
            hint_term=hint_term,
        )

    def refuse_old_leader(self, request: AppendRequest | SnapshotRequest) -> None:
        """Inform a leader of a lower term about the current one."""
        self._respond(request, accepted=False, index=NO_INDEX)

    def _respond(
        self,
        request: AppendRequest | SnapshotRequest,
        *,
        accepted: bool,
        index: Index,
        round: int = 0,
        rejected_index: Index = NO_INDEX,
        hint_term: Term = NO_TERM,
    ) -> None:
        state = self._state
        response = AppendResponse(
            source=state.me,
            to=request.source,
            term=state.term,
            accepted=accepted,
            index=index,
            round=round,
            rejected_index=rejected_index,
            hint_term=hint_term,
        )
        state.out.send_after_sync(response)

    # Snapshots

    def take_chunk(self, request: SnapshotRequest) -> None:
        state = self._state
        snapshot = request.snapshot
        if snapshot.index <= state.commit_index or state.log.matches(term=snapshot.term, index=snapshot.index):
            self._skip(request)
            return
        if request.position == 0:
            self._incoming, self._incoming_term, self._received_bytes = snapshot, request.term, 0
        same = self._incoming == snapshot and self._incoming_term == request.term
        if same and request.position == self._received_bytes and len(request.chunk) <= SNAPSHOT_CHUNK_BYTES_MAX:
            chunk = SnapshotChunk(snapshot=snapshot, position=request.position, chunk=request.chunk)
            state.out.write_chunk(chunk)
            self._received_bytes += len(request.chunk)
            if request.is_last:
                self._install(request)
                return
        position = self._received_bytes if same else 0
        state.out.send_after_sync(
            SnapshotResponse(
                source=state.me, to=request.source, term=state.term, snapshot_index=snapshot.index, position=position
            )
        )

    def _skip(self, request: SnapshotRequest) -> None:
        """The log holds the entry of the snapshot, which is committed."""
        state = self._state
        state.commit(max(state.commit_index, request.snapshot.index))
        self._incoming = None
        self._respond(request, accepted=True, index=state.commit_index)

    def _install(self, request: SnapshotRequest) -> None:
        state = self._state
        self._incoming = None
        state.log.reset(request.snapshot)
        state.out.write_snapshot(request.snapshot)
        state.commit_index = state.applied_index = request.snapshot.index
        state.follow_voter_set()
        self._respond(request, accepted=True, index=request.snapshot.index)
