"""Commands to a group coordinator and their results, as plain values."""

from dataclasses import dataclass
from typing import NamedTuple

from headrace.core.coordination.machine import PendingProducer
from headrace.core.groups.consumer_records import MemberSubscription, Partitions
from headrace.core.groups.records import CommittedOffset
from headrace.model.access import LOCAL_REQUESTER, Requester
from headrace.model.errors import ErrorCode

NO_MEMBER = ""
NO_GENERATION = -1

Protocols = tuple[tuple[str, bytes], ...]
"""Protocol names in the member's order of preference, each with the member's metadata for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A JoinGroup request."""

    group: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    new_member_id: str
    """Generated for this request; used if the member has no id yet."""
    member_id_required: bool
    """A new member first receives its id and joins with it in a second request (KIP-394)."""
    skip_assignment_supported: bool
    """The member understands that a leader may have nothing to assign (KIP-814)."""
    requester: Requester = LOCAL_REQUESTER


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = NO_MEMBER
    members: tuple[JoinedMember, ...] = ()
    """Empty for every member but the leader."""
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberClaim:
    """The membership that the sender of a request claims; the coordinator checks it."""

    group: str
    member_id: str
    instance_id: str | None
    generation: int
    """The generation of a classic group, or the member epoch of a KIP-848 member."""


def is_anonymous(member: MemberClaim) -> bool:
    """Return whether the request claims no membership at all.

    Transactional commits from clients before KIP-447 claim none; the producer epoch fences them.
    """
    return member.generation < 0 and member.member_id == NO_MEMBER and member.instance_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """A SyncGroup request."""

    member: MemberClaim
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...]
    """Member ids and their assignments; only the leader sends them."""


class SyncResult(NamedTuple):
    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class LeavingMember(NamedTuple):
    member_id: str
    instance_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A LeaveGroup request."""

    group: str
    members: tuple[LeavingMember, ...]


class LeaveResult(NamedTuple):
    member_id: str
    instance_id: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """A ConsumerGroupHeartbeat request (KIP-848). A field that is None keeps its previous value."""

    group: str
    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    """Negative to keep the previous value."""
    topics: tuple[str, ...] | None
    regex: str | None
    """Empty for no regular expression."""
    assignor: str | None
    owned: Partitions | None
    client_id: str
    client_host: str
    requester: Requester = LOCAL_REQUESTER
    """The regular expression matches the topics that it may describe."""


class ConsumerHeartbeatResult(NamedTuple):
    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    """None if the assignment has not changed."""


class OffsetToCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """An OffsetCommit or TxnOffsetCommit request."""

    member: MemberClaim
    offsets: tuple[OffsetToCommit, ...]
    retention_ms: int
    """Requested by old clients; negative leaves it to the broker."""
    unknown_group_error: ErrorCode
    """The error for a member of a group that does not exist; newer clients know a more precise code."""
    epochs_understood: bool = True
    """False for requests from before KIP-848, which cannot come from a member with a member epoch."""
    producer: PendingProducer | None = None
    """The producer whose transaction the offsets belong to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOffsets:
    """The part of an OffsetFetch request that concerns one group."""

    group: str
    partitions: tuple[tuple[str, int], ...] | None
    """Topics and partitions; None for all that the group has committed."""
    member: MemberClaim | None = None
    """Checked for KIP-848 groups, if the request claims a membership."""
    require_stable: bool = False
    """Report an error for offsets that an open transaction may still change (KIP-447)."""


class FetchedOffset(NamedTuple):
    topic: str
    partition: int
    committed: CommittedOffset | None
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsets:
    """An OffsetDelete request."""

    group: str
    partitions: tuple[tuple[str, int], ...]


class DeleteOffsetsResult(NamedTuple):
    error: ErrorCode
    """The error of the whole request."""
    partition_errors: tuple[ErrorCode, ...] = ()
    """One for each partition of the command, in its order."""


class GroupListing(NamedTuple):
    group: str
    protocol_type: str
    state: str
    type: str


class DescribedClassicMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedClassicGroup(NamedTuple):
    error: ErrorCode
    group: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedClassicMember, ...] = ()


class DescribedConsumer(NamedTuple):
    member_id: str
    epoch: int
    subscription: MemberSubscription
    assigned: Partitions
    target: Partitions


class DescribedConsumerGroup(NamedTuple):
    group: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]
