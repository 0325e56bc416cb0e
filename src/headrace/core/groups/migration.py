"""Records that move a group, with its members, between the classic and the KIP-848 protocol.

A classic group becomes a KIP-848 group when the first KIP-848 member joins, and a classic one again when the last one
has left. In both directions members keep their partitions until they have revoked them.
"""

from typing import NamedTuple

from headrace.core.groups.classic_group import ClassicGroup, ClassicGroupMember
from headrace.core.groups.classic_members import with_topic_names
from headrace.core.groups.commands import Protocols
from headrace.core.groups.consumer_group import NO_PARTITIONS, ConsumerGroup, ConsumerGroupMember, MemberState
from headrace.core.groups.consumer_records import (
    ClassicMemberMetadata,
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    MemberSubscription,
    Partitions,
    TargetEpochRecord,
    TargetRecord,
)
from headrace.core.groups.records import GroupRecord, Record
from headrace.core.groups.states import GroupState
from headrace.core.groups.subscriptions import (
    CONSUMER_PROTOCOL_TYPE,
    assigned_partitions,
    assignment_of,
    read_subscription,
)
from headrace.core.groups.targets import GroupRequestRefused, TopicCatalog
from headrace.model.errors import ErrorCode


def upgrade_records(group: ClassicGroup, topics: TopicCatalog) -> list[Record]:
    """Return records that turn the members of a classic group into classic members of a KIP-848 group.

    Each member keeps its assignment. Members that wait for their first generation have none and are left out; the
    response to their join makes them join the new group. Raises GroupRequestRefused if a subscription or an assignment
    cannot be parsed.
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


def _subscription(group: ClassicGroup, member: ClassicGroupMember) -> MemberSubscription:
    subscription = read_subscription(member.metadata_for(group.protocol))
    if subscription is None:
        raise GroupRequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, "a subscription of the classic group cannot be parsed")
    return MemberSubscription(
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(dict.fromkeys(subscription.topics)),
        None,
        member.rebalance_timeout_ms,
        None,
        ClassicMemberMetadata(member.session_timeout_ms, _ordered(member.protocols, group.protocol)),
    )


def _ordered(protocols: Protocols, elected: str | None) -> Protocols:
    """Put the protocol of the group first: it is the one that the member's join response names."""
    return tuple(sorted(protocols, key=lambda each: each[0] != elected))


def _assigned(member: ClassicGroupMember, topics: TopicCatalog, taken: set[tuple[bytes, int]]) -> Partitions:
    """Return the assignment of a member without deleted topics, and without partitions that another member has."""
    assigned = assigned_partitions(member.assignment) if member.assignment else ()
    if assigned is None:
        raise GroupRequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, "an assignment of the classic group cannot be parsed")
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
    """All protocols that each member supports; the group record contains only the elected one."""


def downgrade_records(group: ConsumerGroup, removed: str | None, topics: TopicCatalog, wall_ms: int) -> Downgrade:
    """Return records that turn a KIP-848 group into a classic one. All members but the removed one must be classic.

    Each member is recorded with its current assignment, not with its target as in Kafka: if the group is upgraded again
    before all members have joined, the recorded assignments show which partitions are free.
    """
    classic = ClassicGroup(group.group_id)
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    classic.generation = group.epoch
    for member in group.members.values():
        if member.member_id != removed:
            classic.add(_classic_member(member))
    classic.protocol = classic.elected_protocol()
    assignments = {}
    for member_id, each in classic.members.items():
        subscription = read_subscription(each.metadata_for(classic.protocol))
        version = 0 if subscription is None else subscription.version
        current = group.members[member_id].current
        assignments[member_id] = assignment_of(
            with_topic_names((*current.assigned, *current.revoking), topics), version
        )
    records = delete_records(group)
    records.append(GroupRecord(group.group_id, classic.to_metadata(assignments, wall_ms)))
    return Downgrade(records, {member_id: each.protocols for member_id, each in classic.members.items()})


def _classic_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    subscription = member.subscription
    assert subscription.classic is not None
    return ClassicGroupMember(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        session_timeout_ms=subscription.classic.session_timeout_ms,
        protocols=subscription.classic.protocols,
    )


def delete_records(group: ConsumerGroup) -> list[Record]:
    """Return tombstones for all records of a KIP-848 group."""
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


def can_downgrade(group: ConsumerGroup, removed: str, *, allowed: bool, members_max: int) -> bool:
    """Return whether the remaining members are all classic, and there is at least one."""
    others = len(group.members) - 1
    classic = group.members[removed].subscription.classic
    return allowed and classic is None and others == group.classic_count and 0 < others <= members_max
