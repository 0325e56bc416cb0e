"""Descriptions of groups for administrators: ListGroups, DescribeGroups and ConsumerGroupDescribe."""

from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.commands import (
    DescribedClassicGroup,
    DescribedClassicMember,
    DescribedConsumer,
    DescribedConsumerGroup,
    GroupListing,
)
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.states import GroupState
from headrace.core.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from headrace.model.errors import ErrorCode

CLASSIC = "classic"
CONSUMER = "consumer"


def list_classic_group(group: ClassicGroup) -> GroupListing:
    return GroupListing(group.group_id, group.protocol_type or "", group.state, CLASSIC)


def list_consumer_group(group: ConsumerGroup) -> GroupListing:
    return GroupListing(group.group_id, CONSUMER_PROTOCOL_TYPE, group.state, CONSUMER)


def describe_consumer_group(group: ConsumerGroup, default_assignor: str) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group.group_id,
        group.state,
        group.epoch,
        group.target_epoch,
        group.assignor(default_assignor),
        tuple(
            DescribedConsumer(
                member.member_id,
                member.current.epoch,
                member.subscription,
                member.current.assigned,
                group.targets.get(member.member_id, ()),
            )
            for member in group.members.values()
        ),
    )


def describe_classic_group(group: ClassicGroup) -> DescribedClassicGroup:
    """Describe a group; subscriptions and assignments are included only while the group is stable."""
    stable = group.state is GroupState.STABLE
    return DescribedClassicGroup(
        ErrorCode.NONE,
        group.group_id,
        group.state,
        group.protocol_type or "",
        (group.protocol or "") if stable else "",
        tuple(
            DescribedClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata_for(group.protocol) if stable else b"",
                member.assignment if stable else b"",
            )
            for member in group.members.values()
        ),
    )
