"""The effects of one step, in the order in which the host executes them.

The types define the order. A message that promises durable state is only inside the `Write` it depends on, so a host
cannot send it before the sync. Committed entries come before the responses that depend on them.
"""

from dataclasses import dataclass
from enum import StrEnum

from headrace.core.coordination.machine import Ticket
from headrace.core.raft.entries import HardState, LogEntry, StateSnapshot
from headrace.core.raft.ids import Index, ReplicaKey
from headrace.core.raft.messages import Message
from headrace.model.ids import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChunk:
    """Bytes of a snapshot that arrives in chunks; position 0 discards those before it."""

    snapshot: StateSnapshot
    position: int
    chunk: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Changes of the durable state, executed in the order of the fields.

    Writes are executed in the order of their numbers, several at a time if the host chooses. After the sync the host
    sends `then_send` and reports `Synced(number)`. A write without changes waits for the writes before it.
    """

    number: int
    hard_state: HardState | None = None
    snapshot_chunk: SnapshotChunk | None = None
    install: StateSnapshot | None = None
    """The chunks are complete: they replace the snapshot and the whole log in one atomic step."""
    truncate_from: Index | None = None
    """Entries from this index on are removed."""
    append: tuple[LogEntry, ...] = ()
    then_send: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSnapshot:
    """Read a chunk of the newest snapshot for a follower and report it as SnapshotChunkRead."""

    follower: ReplicaKey
    snapshot_index: Index
    position: int
    bytes_max: int


class RequestRefusal(StrEnum):
    NOT_LEADER = "this replica is not the leader"
    LEADERSHIP_LOST = "the leader lost its leadership; the outcome is unknown"
    OVERLOADED = "too many proposals are waiting to be committed; try again later"
    TOO_LARGE = "the proposal exceeds its size limit"
    TRANSFER_IN_PROGRESS = "the leadership is being transferred; try again at the next leader"
    TRANSFER_TIMED_OUT = "the other voter did not take over the leadership in time"
    TERM_NOT_COMMITTED = "the leader has not committed an entry of its term yet; try again"
    CHANGE_IN_PROGRESS = "another change of the voter set is not committed yet; try again"
    NOT_CAUGHT_UP = "the observer has not caught up with the leader; try again"
    ALREADY_VOTER = "the replica is already a voter"
    NOT_VOTER = "the replica is not a voter"
    NODE_ID_IN_USE = "a voter with this node id and another directory id exists; remove that voter first"
    LAST_VOTER = "the last voter cannot be removed"
    TOO_MANY_VOTERS = "the voter set already has its maximum size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The proposal or change of voters is committed; its last entry has this index."""

    ticket: Ticket
    index: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAllowed:
    """The read may be served from the state after `index`, which this replica has applied."""

    ticket: Ticket
    index: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    ticket: Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused:
    ticket: Ticket
    reason: RequestRefusal
    leader: NodeId | None = None


Outcome = Committed | ReadAllowed | Transferred | RequestRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Executed in the order of the fields."""

    write: Write | None = None
    """Submitted first; its completion is a later event."""
    send: tuple[Message, ...] = ()
    """Messages that promise nothing about `write` or an earlier write."""
    read_snapshots: tuple[ReadSnapshot, ...] = ()
    restore: StateSnapshot | None = None
    """Replace the state by the snapshot that this write completes, before any entry below is applied."""
    committed: tuple[LogEntry, ...] = ()
    """Entries to apply, in order, each exactly once."""
    outcomes: tuple[Outcome, ...] = ()
    """Responses to requests, after `committed` is applied."""


NO_EFFECTS = Effects()
