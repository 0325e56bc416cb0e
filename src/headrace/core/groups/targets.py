"""Target assignments of KIP-848 groups: the topics that members subscribe to, and their distribution."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from headrace.core.groups.assignors import ASSIGNORS, ITEMS_PER_STEP, AssignableMember, AssignedTopic
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.consumer_records import (
    ConsumerRecord,
    EpochRecord,
    MemberSubscription,
    TargetEpochRecord,
    TargetRecord,
)
from headrace.core.groups.settings import ASSIGNED_AT_ONCE_MAX, TARGETS_PER_STEP
from headrace.core.groups.topic_patterns import NamePattern, PatternRefused
from headrace.model.access import Requester
from headrace.model.errors import ErrorCode


class TopicCatalog(Protocol):
    """The topics of the current metadata image."""

    @property
    def version(self) -> int:
        """A number that changes whenever the metadata changes."""

    def find(self, name: str) -> tuple[bytes, int] | None:
        """Return the id and the partition count of a topic."""

    def name_of(self, topic_id: bytes) -> str | None: ...

    def names(self, requester: Requester) -> Iterable[str]:
        """Return the topics that a regular expression may match: all that the client may describe, including internal
        topics, as in Kafka.
        """


class GroupRequestRefused(Exception):
    """The coordinator refuses a request; the response carries the error and the message."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def topics_matching(regex: str, topics: TopicCatalog, requester: Requester) -> tuple[str, ...]:
    try:
        return NamePattern(regex).matching(topics.names(requester))
    except PatternRefused as refusal:
        raise GroupRequestRefused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(refusal)) from None


def find_matches(group: ConsumerGroup, wanted: MemberSubscription, topics: TopicCatalog, requester: Requester) -> bool:
    """Match the regular expressions of the group again if topics have changed; return whether the matches changed.

    Each matches what the client may describe that has sent it last.
    """
    if wanted.regex is not None:
        group.requesters[wanted.regex] = requester
    if group.seen_version == topics.version and (wanted.regex is None or wanted.regex in group.matched):
        return False
    changed = False
    used = [member.subscription.regex for member in group.members.values()]
    for regex in dict.fromkeys((wanted.regex, *used)):
        known = group.matched.get(regex or "")
        if regex is None or (known is not None and known[0] == topics.version):
            continue
        found = topics_matching(regex, topics, group.requesters.setdefault(regex, requester))
        group.matched[regex] = (topics.version, found)
        changed = changed or known is None or known[1] != found
    for regex in [each for each in group.matched if each != wanted.regex and each not in used]:
        del group.matched[regex]
        group.requesters.pop(regex, None)
    return changed


def topics_changed(group: ConsumerGroup, topics: TopicCatalog) -> bool:
    """Return whether the subscribed topics have changed since the last target was computed."""
    wanted = dict.fromkeys(group.subscribed(member) for member in group.members.values())  # usually all the same
    names = dict.fromkeys(name for each in wanted for name in each)
    found = {name: known for name in names if (known := topics.find(name)) is not None}
    changed = found != group.topics
    group.topics, group.seen_version = found, topics.version
    return changed


def is_small(group: ConsumerGroup) -> bool:
    """Return whether the target of the group is computed at once."""
    partitions = sum(count for _, count in (group.topics or {}).values())
    return len(group.members) + partitions <= ASSIGNED_AT_ONCE_MAX


def new_target(group: ConsumerGroup, default_assignor: str) -> Iterator[ConsumerRecord | None]:
    """Yield the records of a new target for the group, and None where the work on a large group may pause.

    Members that have left by the time their record is due are left out; members that join meanwhile are part of the
    next target.
    """
    epoch, known = group.epoch, group.topics or {}
    topics_of: dict[tuple[str, ...], tuple[AssignedTopic, ...]] = {}
    members: dict[str, AssignableMember] = {}
    for index, (member_id, member) in enumerate(tuple(group.members.items())):
        names = group.subscribed(member)
        if names not in topics_of:
            topics_of[names] = tuple(sorted(AssignedTopic(*known[name]) for name in names if name in known))
        before = group.targets.get(member_id, ())
        members[member_id] = AssignableMember(topics_of[names], before, member.subscription.instance_id)
        if index % ITEMS_PER_STEP == 0:
            yield None
    assignment = yield from ASSIGNORS[group.assignor(default_assignor)](members)
    changed = [(member_id, parts) for member_id, parts in assignment.items() if group.targets.get(member_id) != parts]
    for index, (member_id, partitions) in enumerate(changed):
        if member_id in group.members:
            yield TargetRecord(group.group_id, member_id, partitions)
        if index % TARGETS_PER_STEP == 0:
            yield None
    if group.epoch == epoch and group.members.keys() != members.keys():
        yield EpochRecord(group.group_id, epoch + 1)  # a static member returned under another id meanwhile
    yield TargetEpochRecord(group.group_id, epoch)
