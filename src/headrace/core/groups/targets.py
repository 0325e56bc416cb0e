"""What the members of a group of KIP-848 shall have: the topics they mean, and the assignment over all of them."""

from collections.abc import Iterable
from typing import Protocol

from headrace.core.coordination.machine import Outcome
from headrace.core.groups.assignors import ASSIGNORS, AssignableMember, AssignedTopic
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.consumer_records import Subscription, TargetEpochRecord, TargetRecord
from headrace.core.groups.records import Record
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
        """Those that an expression may match."""


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


def retarget(group: ConsumerGroup, default_assignor: str, out: Outcome[Record]) -> None:
    known = group.topics or {}
    meant: dict[tuple[str, ...], tuple[AssignedTopic, ...]] = {}
    for member in group.members.values():
        names = group.subscribed(member)
        if names not in meant:
            meant[names] = tuple(sorted(AssignedTopic(*known[name]) for name in names if name in known))
    members = {
        member_id: AssignableMember(
            meant[group.subscribed(member)],
            group.targets.get(member_id, ()),
            member.subscription.instance_id,
        )
        for member_id, member in group.members.items()
    }
    assign = ASSIGNORS[group.assignor(default_assignor)]
    for member_id, partitions in assign(members).items():
        if group.targets.get(member_id) != partitions:
            out.write(TargetRecord(group.group_id, member_id, partitions))
    out.write(TargetEpochRecord(group.group_id, group.epoch))
