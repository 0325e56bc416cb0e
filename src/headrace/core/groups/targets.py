"""What the members of a group of KIP-848 shall have: the topics they mean, and the assignment over all of them."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from headrace.core.groups.assignors import ASSIGNORS, ITEMS_PER_STEP, AssignableMember, AssignedTopic
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.consumer_records import (
    ConsumerRecord,
    EpochRecord,
    Subscription,
    TargetEpochRecord,
    TargetRecord,
)
from headrace.core.groups.settings import ASSIGNED_AT_ONCE_MAX, TARGETS_PER_STEP
from headrace.core.groups.topic_patterns import PatternRefused, TopicPattern
from headrace.model.errors import ErrorCode


class TopicCatalog(Protocol):
    """The topics of the cluster, as they are now."""

    @property
    def version(self) -> int:
        """Another one when anything has changed."""

    def find(self, name: str) -> tuple[bytes, int] | None:
        """The id of a topic and how many partitions it has."""

    def name_of(self, topic_id: bytes) -> str | None: ...

    def names(self) -> Iterable[str]:
        """Those that an expression may match: all, the internal topics among them, as in Kafka."""


class Refusal(Exception):
    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def topics_matching(regex: str, topics: TopicCatalog) -> tuple[str, ...]:
    try:
        return TopicPattern(regex).matching(topics.names())
    except PatternRefused as refusal:
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, str(refusal)) from None


def find_matches(group: ConsumerGroup, wanted: Subscription, topics: TopicCatalog) -> bool:
    """Match the expressions of the group again if topics have changed; whether the matches have."""
    if group.seen_version == topics.version and (wanted.regex is None or wanted.regex in group.matched):
        return False
    changed = False
    used = [member.subscription.regex for member in group.members.values()]
    for regex in dict.fromkeys((wanted.regex, *used)):
        known = group.matched.get(regex or "")
        if regex is None or (known is not None and known[0] == topics.version):
            continue
        found = topics_matching(regex, topics)
        group.matched[regex] = (topics.version, found)
        changed = changed or known is None or known[1] != found
    for regex in [each for each in group.matched if each != wanted.regex and each not in used]:
        del group.matched[regex]
    return changed


def topics_changed(group: ConsumerGroup, topics: TopicCatalog) -> bool:
    """Whether what is subscribed to is other than when the target was last decided."""
    wanted = dict.fromkeys(group.subscribed(member) for member in group.members.values())  # mostly all want the same
    names = dict.fromkeys(name for each in wanted for name in each)
    found = {name: known for name in names if (known := topics.find(name)) is not None}
    changed = found != group.topics
    group.topics, group.seen_version = found, topics.version
    return changed


def is_small(group: ConsumerGroup) -> bool:
    """Whether it is assigned in no time."""
    partitions = sum(count for _, count in (group.topics or {}).values())
    return len(group.members) + partitions <= ASSIGNED_AT_ONCE_MAX


def new_target(group: ConsumerGroup, default_assignor: str) -> Iterator[ConsumerRecord | None]:
    """The records of a target for the group as it is now; None where a large group is better gone on with later.

    Members that are gone when their turn comes are left out; for those who came meanwhile there is another target.
    """
    epoch, known = group.epoch, group.topics or {}
    meant: dict[tuple[str, ...], tuple[AssignedTopic, ...]] = {}
    members: dict[str, AssignableMember] = {}
    for place, (member_id, member) in enumerate(tuple(group.members.items())):
        names = group.subscribed(member)
        if names not in meant:
            meant[names] = tuple(sorted(AssignedTopic(*known[name]) for name in names if name in known))
        before = group.targets.get(member_id, ())
        members[member_id] = AssignableMember(meant[names], before, member.subscription.instance_id)
        if place % ITEMS_PER_STEP == 0:
            yield None
    assignment = yield from ASSIGNORS[group.assignor(default_assignor)](members)
    changed = [(member_id, parts) for member_id, parts in assignment.items() if group.targets.get(member_id) != parts]
    for place, (member_id, partitions) in enumerate(changed):
        if member_id in group.members:
            yield TargetRecord(group.group_id, member_id, partitions)
        if place % TARGETS_PER_STEP == 0:
            yield None
    if group.epoch == epoch and group.members.keys() != members.keys():
        yield EpochRecord(group.group_id, epoch + 1)  # a static member came back under another id meanwhile
    yield TargetEpochRecord(group.group_id, epoch)
