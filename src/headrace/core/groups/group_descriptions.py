"""What tools are told about a group."""

from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.commands import (
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
    ListedGroup,
)
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.states import GroupState
from headrace.core.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from headrace.model.errors import ErrorCode

CLASSIC = "classic"
CONSUMER = "consumer"


def listed(group: ClassicGroup) -> ListedGroup:
    return ListedGroup(group.group_id, group.protocol_type or "", group.state, CLASSIC)


def listed_consumers(group: ConsumerGroup) -> ListedGroup:
    return ListedGroup(group.group_id, CONSUMER_PROTOCOL_TYPE, group.state, CONSUMER)


def described_consumers(group: ConsumerGroup, default_assignor: str) -> DescribedConsumerGroup:
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


def described(group: ClassicGroup) -> DescribedGroup:
    """Subscriptions and assignments are told only while they are agreed on."""
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        ErrorCode.NONE,
        group.group_id,
        group.state,
        group.protocol_type or "",
        (group.protocol or "") if stable else "",
        tuple(
            DescribedMember(
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
