"""Events that the host reports to a Raft machine, apart from messages."""

from dataclasses import dataclass

from headrace.core.coordination.machine import Ticket
from headrace.core.raft.ids import Index, ReplicaKey
from headrace.core.raft.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed:
    """A deadline of the machine may have passed; an early event is harmless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The write with this number, and every write before it, is on disk."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose:
    """Append payloads as consecutive entries."""

    ticket: Ticket
    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Request an index that a linearizable read must have applied."""

    ticket: Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class AddVoter:
    """Promote an observer that has caught up."""

    ticket: Ticket
    voter: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVoter:
    ticket: Ticket
    voter: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadership:
    """Hand the leadership to a voter; None lets the leader choose the one that has caught up furthest."""

    ticket: Ticket
    to: ReplicaKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken:
    """The host has synced a snapshot of the state after `index`; entries below it are no longer needed."""

    index: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChunkRead:
    """Bytes that a ReadSnapshot effect requested; None if the host no longer has that snapshot."""

    follower: ReplicaKey
    snapshot_index: Index
    position: int
    chunk: bytes | None
    is_last: bool = False


Event = (
    DeadlinePassed
    | Received
    | Synced
    | Propose
    | Read
    | AddVoter
    | RemoveVoter
    | TransferLeadership
    | SnapshotTaken
    | SnapshotChunkRead
)
