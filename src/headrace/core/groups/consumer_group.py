"""One group whose broker assigns partitions (KIP-848): epochs, members, the target and what each member has.

All of it changes only by `apply`; what a member still has to let go of belongs to nobody else until it has.
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
    Partitions,
    Subscription,
    TargetEpochRecord,
    TargetRecord,
    TopicIdPartition,
)

LEFT_STATIC_EPOCH = -2
"""Of a static member that is away and may come back."""

NO_PARTITIONS: Partitions = ()
NOT_TOLD_YET = Subscription(None, None, "", "", (), None, -1, None)


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED = 1
    """It has to let go of partitions first."""
    UNRELEASED = 2
    """It waits for partitions that others have to let go of."""


class ConsumerGroupState(StrEnum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


NOTHING_YET = CurrentAssignment(0, 0, MemberState.STABLE, NO_PARTITIONS, NO_PARTITIONS)


class ConsumerMember:
    __slots__ = ("current", "member_id", "subscription")

    def __init__(self, member_id: str, subscription: Subscription) -> None:
        self.member_id = member_id
        self.subscription = subscription
        self.current = NOTHING_YET


class ConsumerGroup:
    __slots__ = (
        "_speakers",
        "assigning",
        "classic_bytes",
        "classic_count",
        "empty_since_ms",
        "epoch",
        "group_id",
        "matched",
        "members",
        "owners",
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
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.classic_count = 0
        """Members that speak the classic protocol."""
        self.classic_bytes = 0
        """What they said for all protocols that they can speak."""
        self._speakers: Counter[str] = Counter()
        """How many of them can speak each protocol."""
        self.targets: dict[str, Partitions] = {}
        self.owners: dict[TopicIdPartition, str] = {}
        """Members that have a partition, or have not let go of it yet."""
        self.topics: dict[str, tuple[bytes, int]] | None = None
        """Ids and partition counts of the topics subscribed to, as the target saw them; None before the first look."""
        self.seen_version = -1
        """Of the metadata, when it was last looked at."""
        self.assigning: Iterator[ConsumerRecord | None] | None = None
        """The target in the making, of a large group."""
        self.matched: dict[str, tuple[int, tuple[str, ...]]] = {}
        """Topics that an expression matched, and the version of the metadata in which it did."""
        self.empty_since_ms: int | None = None
        """When retention first found it without members; the log has no time of that, so a loaded one begins anew."""

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
                self._let_go(member)
                self._count_classic(member.subscription, -1)
                del self.members[record.member_id]
                self._leave_instance(member)
            return
        self.empty_since_ms = None
        if member is None:
            self.members[record.member_id] = ConsumerMember(record.member_id, record.subscription)
        else:
            self._count_classic(member.subscription, -1)
            self._leave_instance(member)  # it may have come again as another instance, or as none
            member.subscription = record.subscription
        self._count_classic(record.subscription, 1)
        if record.subscription.instance_id is not None:
            self.static_members[record.subscription.instance_id] = record.member_id

    def _leave_instance(self, member: ConsumerMember) -> None:
        instance_id = member.subscription.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _count_classic(self, subscription: Subscription, sign: int) -> None:
        if subscription.classic is None:
            return
        self.classic_count += sign
        for name, metadata in subscription.classic.protocols:
            self.classic_bytes += sign * (len(name) + len(metadata))
        for name in dict.fromkeys(name for name, _ in subscription.classic.protocols):
            self._speakers[name] += sign
            if not self._speakers[name]:
                del self._speakers[name]

    def _apply_current(self, record: CurrentRecord) -> None:
        member = self.members.get(record.member_id)
        if member is None:
            if record.current is None:
                return
            # After a compaction what a member has may be told before who it is.
            member = self.members[record.member_id] = ConsumerMember(record.member_id, NOT_TOLD_YET)
        self._let_go(member)
        member.current = record.current or NOTHING_YET
        for part in (*member.current.assigned, *member.current.revoking):
            self.owners[part] = record.member_id

    def _let_go(self, member: ConsumerMember) -> None:
        for part in (*member.current.assigned, *member.current.revoking):
            if self.owners.get(part) == member.member_id:
                del self.owners[part]

    # Questions

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

    def subscribed(self, member: ConsumerMember) -> tuple[str, ...]:
        """Names and what its expression matches, each once."""
        regex = member.subscription.regex
        if regex is None:
            return member.subscription.topics
        matched = self.matched[regex][1] if regex in self.matched else ()
        return tuple(dict.fromkeys((*member.subscription.topics, *matched)))

    def speaks_classic(self, names: Iterable[str]) -> bool:
        """Whether all members of the classic protocol can speak one of these."""
        return any(self._speakers.get(name, 0) == self.classic_count for name in names)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether something that the member shall have is still another's."""
        return any(
            self.owners.get(part, member.member_id) != member.member_id
            for part in self.targets.get(member.member_id, NO_PARTITIONS)
        )

    @property
    def knows_its_topics(self) -> bool:
        """Not before its expressions are matched: that is not in the log, and waits for the first heartbeat."""
        return all(
            member.subscription.regex is None or member.subscription.regex in self.matched
            for member in self.members.values()
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read the topic; they may as long as it is not known what they read."""
        return not self.knows_its_topics or any(topic in self.subscribed(member) for member in self.members.values())

    def assignor(self, default: str) -> str:
        """The one that most members prefer; the first of equals."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.subscription.assignor is not None:
                votes[member.subscription.assignor] = votes.get(member.subscription.assignor, 0) + 1
        return max(votes, key=lambda name: votes[name]) if votes else default
