"""Messages between the replicas of the metadata quorum. Each names its sender and its receiver."""

from dataclasses import dataclass

from headrace.core.raft.entries import LogEntry, StateSnapshot
from headrace.core.raft.ids import Index, ReplicaKey, Term
from headrace.model.ids import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    """A candidate requests a vote. With `pre_vote` it asks whether it would get one; `term` is then the next term."""

    source: ReplicaKey
    to: ReplicaKey
    term: Term
    last_term: Term
    last_index: Index
    pre_vote: bool = False
    forced: bool = False
    """The leader requested this election, so voters do not protect that leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    source: ReplicaKey
    to: ReplicaKey
    term: Term
    """The term of the request if the vote is granted, the voter's own term if not."""
    granted: bool
    pre_vote: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRequest:
    """Entries that follow (previous_term, previous_index); without entries it is a heartbeat."""

    source: ReplicaKey
    to: ReplicaKey
    term: Term
    previous_term: Term
    previous_index: Index
    commit_index: Index
    round: int
    """Number of the leader's heartbeat round, which the response repeats: reads wait for a round of a majority."""
    entries: tuple[LogEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResponse:
    """`accepted`: everything up to `index` is synced. Otherwise (`hint_term`, `index`) is the best guess of a match."""

    source: ReplicaKey
    to: ReplicaKey
    term: Term
    accepted: bool
    index: Index
    round: int
    rejected_index: Index
    """The previous index of a rejected request, which distinguishes a late rejection from a current one."""
    hint_term: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRequest:
    """One chunk of a snapshot, at `position` bytes from its start."""

    source: ReplicaKey
    to: ReplicaKey
    term: Term
    snapshot: StateSnapshot
    position: int
    chunk: bytes
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResponse:
    """The follower has the bytes of the snapshot below `position` and waits for the next ones."""

    source: ReplicaKey
    to: ReplicaKey
    term: Term
    snapshot_index: Index
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRequest:
    """The leader asks a voter that has caught up to start an election at once (leadership transfer)."""

    source: ReplicaKey
    to: ReplicaKey
    term: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """An observer asks the leader to replicate to it. Its address may carry ANY_DIRECTORY."""

    source: ReplicaKey
    to: ReplicaKey
    may_vote: bool = False
    """The leader may promote the sender to a voter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResponse:
    """A replica that does not lead names the leader it knows, if any."""

    source: ReplicaKey
    to: ReplicaKey
    leader: NodeId | None


Message = (
    VoteRequest
    | VoteResponse
    | AppendRequest
    | AppendResponse
    | SnapshotRequest
    | SnapshotResponse
    | ElectionRequest
    | JoinRequest
    | JoinResponse
)
