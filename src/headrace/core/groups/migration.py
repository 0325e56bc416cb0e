"""A group moves between the classic protocol and that of KIP-848 with its members: what is written then.

It becomes one of the new protocol when the first member of that kind joins, and a classic one when the last member of
that kind is gone. What members have stays theirs until they have let go of it, in both directions.
"""

from typing import NamedTuple

from headrace.core.groups.classic_group import ClassicGroup, Member
from headrace.core.groups.commands import Protocols
from headrace.core.groups.consumer_group import NO_PARTITIONS, ConsumerGroup, ConsumerMember, MemberState
from headrace.core.groups.consumer_records import (
    ClassicMember,
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    Partitions,
    Subscription,
    TargetEpochRecord,
    TargetRecord,
)
from headrace.core.groups.mixed import named
from headrace.core.groups.records import GroupRecord, Record
from headrace.core.groups.states import GroupState
from headrace.core.groups.subscriptions import (
    CONSUMER_PROTOCOL_TYPE,
    assigned_partitions,
    assignment_of,
    read_subscription,
)
from headrace.core.groups.targets import Refusal, TopicCatalog
from headrace.model.errors import ErrorCode


def upgrade_records(group: ClassicGroup, topics: TopicCatalog) -> list[Record]:
    """The members of a classic group as classic members of one of the new protocol, each with what it has.

    Members that wait for their first generation have nothing and know nothing yet: they are not taken along, and join
    the new group as they are told to. Raises Refusal if what a member says cannot be read.
    """
    taken: set[tuple[bytes, int]] = set()
    members = [
        (member.member_id, _subscription(group, member), _assigned(member, topics, taken))
        for member in group.members.values()
        if not member.is_new
    ]
    group_id, epoch = group.group_id, group.generation
    records: list[Record] = [GroupRecord(group_id, None)]
    records += (MemberRecord(group_id, member_id, subscription) for member_id, subscription, _ in members)
    records.append(EpochRecord(group_id, epoch))
    records += (TargetRecord(group_id, member_id, partitions) for member_id, _, partitions in members)
    records.append(TargetEpochRecord(group_id, epoch))
    for member_id, _, partitions in members:
        current = CurrentAssignment(epoch, epoch, MemberState.STABLE, partitions, NO_PARTITIONS)
        records.append(CurrentRecord(group_id, member_id, current))
    return records


def _subscription(group: ClassicGroup, member: Member) -> Subscription:
    subscription = read_subscription(member.metadata_for(group.protocol))
    if subscription is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, "the subscriptions of the classic group cannot be read")
    return Subscription(
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(dict.fromkeys(subscription.topics)),
        None,
        member.rebalance_timeout_ms,
        None,
        ClassicMember(member.session_timeout_ms, _ordered(member.protocols, group.protocol)),
    )


def _ordered(protocols: Protocols, agreed: str | None) -> Protocols:
    """The one that the group speaks first: the member is told that one."""
    return tuple(sorted(protocols, key=lambda each: each[0] != agreed))


def _assigned(member: Member, topics: TopicCatalog, taken: set[tuple[bytes, int]]) -> Partitions:
    """What it has, of topics that are there; of two that claim the same the first one is believed."""
    assigned = assigned_partitions(member.assignment) if member.assignment else ()
    if assigned is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, "the assignment of the classic group cannot be read")
    found = []
    for topic, partition in assigned:
        known = topics.find(topic)
        if known is not None and (known[0], partition) not in taken:
            taken.add((known[0], partition))
            found.append((known[0], partition))
    return tuple(sorted(found))


class Downgrade(NamedTuple):
    records: list[Record]
    protocols: dict[str, Protocols]
    """All that each member can speak, of which the record of the group says only one."""


def downgrade_records(group: ConsumerGroup, gone: str | None, topics: TopicCatalog, wall_ms: int) -> Downgrade:
    """A group of classic members alone, but for one that is gone, as a classic group.

    Each is written with what it has now, and not, as Kafka does, with what it was to have next: should the group be
    upgraded again before all have joined, that decides what is free.
    """
    classic = ClassicGroup(group.group_id)
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    classic.generation = group.epoch
    for member in group.members.values():
        if member.member_id != gone:
            classic.add(_classic_member(member))
    classic.protocol = classic.elected_protocol()
    assignments = {}
    for member_id, each in classic.members.items():
        subscription = read_subscription(each.metadata_for(classic.protocol))
        version = 0 if subscription is None else subscription.version
        current = group.members[member_id].current
        assignments[member_id] = assignment_of(named((*current.assigned, *current.revoking), topics), version)
    records = delete_records(group)
    records.append(GroupRecord(group.group_id, classic.agreement(assignments, wall_ms)))
    return Downgrade(records, {member_id: each.protocols for member_id, each in classic.members.items()})


def _classic_member(member: ConsumerMember) -> Member:
    subscription = member.subscription
    assert subscription.classic is not None
    return Member(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        session_timeout_ms=subscription.classic.session_timeout_ms,
        protocols=subscription.classic.protocols,
    )


def delete_records(group: ConsumerGroup) -> list[Record]:
    """Everything of a group of the new protocol is forgotten."""
    group_id, members = group.group_id, tuple(group.members)
    records: list[Record] = [CurrentRecord(group_id, member_id, None) for member_id in members]
    records += (TargetRecord(group_id, member_id, None) for member_id in members)
    records.append(TargetEpochRecord(group_id, None))
    records += (MemberRecord(group_id, member_id, None) for member_id in members)
    records.append(EpochRecord(group_id, None))
    return records


def can_upgrade(group: ClassicGroup, *, allowed: bool, members_max: int) -> bool:
    return allowed and group.uses_consumer_protocol and len(group.members) <= members_max


def is_empty(group: ClassicGroup) -> bool:
    return not group.members and group.state is GroupState.EMPTY


def can_downgrade(group: ConsumerGroup, gone: str, *, allowed: bool, members_max: int) -> bool:
    """Whether those that stay all speak the classic protocol, and there are some."""
    others = len(group.members) - 1
    classic = group.members[gone].subscription.classic
    return allowed and classic is None and others == group.classic_count and 0 < others <= members_max
