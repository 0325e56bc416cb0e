"""Entries of the replicated log, and the durable state of a replica."""

from dataclasses import dataclass, field
from enum import StrEnum

from headrace.core.raft.ids import NO_INDEX, NO_TERM, Index, ReplicaKey, Term, Voters


class EntryKind(StrEnum):
    COMMAND = "command"
    """A payload of the state machine."""
    VOTERS = "voters"
    """A voter set, valid from the moment a replica appends it. Each leader begins its term with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    term: Term
    index: Index
    kind: EntryKind = EntryKind.COMMAND
    payload: bytes = b""
    voters: Voters = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HardState:
    """Synced before any message that depends on it is sent."""

    term: Term = NO_TERM
    voted_for: ReplicaKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """Position of a snapshot: the state after the entry (term, index), and the voter set at that entry."""

    index: Index = NO_INDEX
    term: Term = NO_TERM
    voters: Voters = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The durable state that the host found on disk.

    The founder of a cluster starts with a snapshot at index 0 whose voter set contains the founder; every other replica
    starts with an empty voter set and follows as an observer.
    """

    hard_state: HardState = field(default_factory=HardState)
    snapshot: StateSnapshot = field(default_factory=StateSnapshot)
    entries: tuple[LogEntry, ...] = ()
    """Entries above the snapshot, in order."""
