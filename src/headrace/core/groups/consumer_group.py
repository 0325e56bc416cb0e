"""One KIP-848 group: its epochs, members, target assignment, and the current assignment of each member.

The state changes only by `apply`. A partition that a member must revoke has no other owner until the member confirms.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import IntEnum, StrEnum

from headrace.core.groups.consumer_records import (
    ConsumerRecord,
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    MemberSubscription,
    Partitions,
    TargetEpochRecord,
    TargetRecord,
    TopicIdPartition,
)
from headrace.model.access import Requester

LEFT_STATIC_EPOCH = -2
"""The member epoch of a static member that left temporarily."""

NO_PARTITIONS: Partitions = ()
UNKNOWN_SUBSCRIPTION = MemberSubscription(None, None, "", "", (), None, -1, None)


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED = 1
    """The member must revoke partitions first."""
    UNRELEASED = 2
    """The member waits for partitions that other members must revoke."""


class ConsumerGroupState(StrEnum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


INITIAL_ASSIGNMENT = CurrentAssignment(0, 0, MemberState.STABLE, NO_PARTITIONS, NO_PARTITIONS)


class ConsumerGroupMember:
    __slots__ = ("current", "member_id", "subscription")

    def __init__(self, member_id: str, subscription: MemberSubscription) -> None:
        self.member_id = member_id
        self.subscription = subscription
        self.current = INITIAL_ASSIGNMENT


class ConsumerGroup:
    __slots__ = (
        "_protocol_support",
        "assigning",
        "classic_bytes",
        "classic_count",
        "empty_since_ms",
        "epoch",
        "group_id",
        "matched",
        "members",
        "owners",
        "requesters",
        "seen_version",
        "static_members",
        "target_epoch",
        "targets",
        "topics",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.target_epoch = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.classic_count = 0
        """The number of members that use the classic protocol."""
        self.classic_bytes = 0
        """The size of the classic members' metadata, for all protocols that they support."""
        self._protocol_support: Counter[str] = Counter()
        """The number of classic members that support each protocol."""
        self.targets: dict[str, Partitions] = {}
        self.owners: dict[TopicIdPartition, str] = {}
        """The member that owns each partition, or has not revoked it yet."""
        self.topics: dict[str, tuple[bytes, int]] | None = None
        """Ids and partition counts of subscribed topics when the target was computed; None before the first target."""
        self.seen_version = -1
        """The metadata version at the last check for changed topics."""
        self.assigning: Iterator[ConsumerRecord | None] | None = None
        """The unfinished computation of a large group's target."""
        self.matched: dict[str, tuple[int, tuple[str, ...]]] = {}
        """For each regular expression, the metadata version at the last match and the matching topics."""
        self.requesters: dict[str, Requester] = {}
        """For each regular expression, the client that has sent it last. Not in the log; after a load the next client
        takes the place."""
        self.empty_since_ms: int | None = None
        """The time when retention first found the group empty. It is not in the log; after a load it starts over."""

    def apply(self, record: ConsumerRecord) -> None:
        if isinstance(record, EpochRecord):
            self.epoch = record.epoch or 0
        elif isinstance(record, TargetEpochRecord):
            self.target_epoch = record.epoch or 0
        elif isinstance(record, TargetRecord):
            if record.partitions is None:
                self.targets.pop(record.member_id, None)
            else:
                self.targets[record.member_id] = record.partitions
        elif isinstance(record, MemberRecord):
            self._apply_member(record)
        else:
            self._apply_current(record)

    def _apply_member(self, record: MemberRecord) -> None:
        member = self.members.get(record.member_id)
        if record.subscription is None:
            if member is not None:
                self._release(member)
                self._count_classic(member.subscription, -1)
                del self.members[record.member_id]
                self._leave_instance(member)
            return
        self.empty_since_ms = None
        if member is None:
            self.members[record.member_id] = ConsumerGroupMember(record.member_id, record.subscription)
        else:
            self._count_classic(member.subscription, -1)
            self._leave_instance(member)  # it may have rejoined with another instance id, or without one
            member.subscription = record.subscription
        self._count_classic(record.subscription, 1)
        if record.subscription.instance_id is not None:
            self.static_members[record.subscription.instance_id] = record.member_id

    def _leave_instance(self, member: ConsumerGroupMember) -> None:
        instance_id = member.subscription.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _count_classic(self, subscription: MemberSubscription, sign: int) -> None:
        if subscription.classic is None:
            return
        self.classic_count += sign
        for name, metadata in subscription.classic.protocols:
            self.classic_bytes += sign * (len(name) + len(metadata))
        for name in dict.fromkeys(name for name, _ in subscription.classic.protocols):
            self._protocol_support[name] += sign
            if not self._protocol_support[name]:
                del self._protocol_support[name]

    def _apply_current(self, record: CurrentRecord) -> None:
        member = self.members.get(record.member_id)
        if member is None:
            if record.current is None:
                return
            # Compaction can leave the current assignment of a member before its subscription.
            member = self.members[record.member_id] = ConsumerGroupMember(record.member_id, UNKNOWN_SUBSCRIPTION)
        self._release(member)
        member.current = record.current or INITIAL_ASSIGNMENT
        for part in (*member.current.assigned, *member.current.revoking):
            self.owners[part] = record.member_id

    def _release(self, member: ConsumerGroupMember) -> None:
        for part in (*member.current.assigned, *member.current.revoking):
            if self.owners.get(part) == member.member_id:
                del self.owners[part]

    # Lookups

    @property
    def is_void(self) -> bool:
        return not self.members and not self.epoch and not self.target_epoch and not self.targets

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        for member in self.members.values():
            if member.current.epoch != self.target_epoch or member.current.state != MemberState.STABLE:
                return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE

    def subscribed(self, member: ConsumerGroupMember) -> tuple[str, ...]:
        """Return the topics that the member names and those that its regular expression matches, each once."""
        regex = member.subscription.regex
        if regex is None:
            return member.subscription.topics
        matched = self.matched[regex][1] if regex in self.matched else ()
        return tuple(dict.fromkeys((*member.subscription.topics, *matched)))

    def supports_classic_protocols(self, names: Iterable[str]) -> bool:
        """Return whether all classic members support one of these protocols."""
        return any(self._protocol_support.get(name, 0) == self.classic_count for name in names)

    def waits_for_others(self, member: ConsumerGroupMember) -> bool:
        """Return whether another member still owns a partition of the member's target."""
        return any(
            self.owners.get(part, member.member_id) != member.member_id
            for part in self.targets.get(member.member_id, NO_PARTITIONS)
        )

    @property
    def knows_its_topics(self) -> bool:
        """Return whether all expressions are matched. Matches are not logged; the first heartbeat computes them."""
        return all(
            member.subscription.regex is None or member.subscription.regex in self.matched
            for member in self.members.values()
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether members may read the topic; True until all regular expressions are matched."""
        return not self.knows_its_topics or any(topic in self.subscribed(member) for member in self.members.values())

    def assignor(self, default: str) -> str:
        """Return the assignor that most members prefer; the first one on a tie."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.subscription.assignor is not None:
                votes[member.subscription.assignor] = votes.get(member.subscription.assignor, 0) + 1
        return max(votes, key=lambda name: votes[name]) if votes else default
