"""What groups can be asked, and what they answer: plain values."""

from dataclasses import dataclass
from typing import NamedTuple

from headrace.core.coordination.machine import Producer
from headrace.core.groups.consumer_records import Partitions, Subscription
from headrace.core.groups.records import CommittedOffset
from headrace.model.errors import ErrorCode

NO_MEMBER = ""
NO_GENERATION = -1

Protocols = tuple[tuple[str, bytes], ...]
"""Names in the order of preference, each with the member's metadata for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
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
    """Drawn for this request, used if its sender has no id yet."""
    member_id_required: bool
    """A new member is only told its id, and joins with that (KIP-394)."""
    skip_assignment_supported: bool
    """Its sender knows what to do with a leadership that needs no new assignment (KIP-814)."""


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
    """For the leader alone."""
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Who says something, as what it believes to be."""

    group: str
    member_id: str
    instance_id: str | None
    generation: int


def is_nobody(member: Membership) -> bool:
    """Nothing is said about membership: transactions of before KIP-447 do not, the producer's epoch fences them."""
    return member.generation < 0 and member.member_id == NO_MEMBER and member.instance_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    member: Membership
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...]
    """From the leader: member ids and what each shall do."""


class SyncResult(NamedTuple):
    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class LeavingMember(NamedTuple):
    member_id: str
    instance_id: str | None


class LeaveResult(NamedTuple):
    member_id: str
    instance_id: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """What is None is as it was before."""

    group: str
    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    """Negative if it is as it was."""
    topics: tuple[str, ...] | None
    regex: str | None
    """Empty for none."""
    assignor: str | None
    owned: Partitions | None
    client_id: str
    client_host: str


class ConsumerHeartbeatResult(NamedTuple):
    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    """None if it is as it was."""


class OffsetToCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    member: Membership
    offsets: tuple[OffsetToCommit, ...]
    retention_ms: int
    """Asked for by old clients; negative leaves it to the broker."""
    unknown_group_error: ErrorCode
    """What a member of a group that is not there is told; newer clients know a better code."""
    epochs_understood: bool = True
    """Requests of before KIP-848 cannot be a member's that has an epoch."""
    producer: Producer | None = None
    """The offsets are a part of its transaction."""


class FetchedOffset(NamedTuple):
    topic: str
    partition: int
    committed: CommittedOffset | None
    error: ErrorCode = ErrorCode.NONE


class ListedGroup(NamedTuple):
    group: str
    protocol_type: str
    state: str
    type: str


class DescribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    error: ErrorCode
    group: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


class DescribedConsumer(NamedTuple):
    member_id: str
    epoch: int
    subscription: Subscription
    assigned: Partitions
    target: Partitions


class DescribedConsumerGroup(NamedTuple):
    group: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]
