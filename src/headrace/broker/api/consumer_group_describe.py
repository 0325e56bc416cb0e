"""ConsumerGroupDescribe (69): the epochs, members and assignments of KIP-848 groups."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.describe_groups import DESCRIBE_GROUPS_MAX, GROUP_OPERATIONS, OPERATIONS_NOT_ASKED_FOR
from headrace.broker.api.support.authorization import authorized_operations
from headrace.broker.api.support.coordinators import ask_each_group
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import DescribedConsumer, DescribedConsumerGroup
from headrace.core.groups.consumer_records import Partitions, by_topic
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId
from headrace.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseGroup,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The types of members: classic, or KIP-848."""


def handle(request: ConsumerGroupDescribeRequest, ctx: RequestContext) -> object:
    def result(
        name: str, outcome: DescribedConsumerGroup | ProposalFailed | ErrorCode
    ) -> ConsumerGroupDescribeResponseGroup:
        return _group(ctx, request, name, outcome)

    def respond(groups: list[ConsumerGroupDescribeResponseGroup]) -> ConsumerGroupDescribeResponse:
        return ConsumerGroupDescribeResponse(throttle_time_ms=ctx.throttle_time_ms, groups=tuple(groups))

    names = tuple(dict.fromkeys(request.group_ids))  # describe a group once if the request repeats it
    describe = ctx.groups.describe_consumer_group
    return ask_each_group(ctx, Operation.DESCRIBE, names, describe, result, respond, items_max=DESCRIBE_GROUPS_MAX)


def _group(
    ctx: RequestContext,
    request: ConsumerGroupDescribeRequest,
    name: str,
    outcome: DescribedConsumerGroup | ProposalFailed | ErrorCode,
) -> ConsumerGroupDescribeResponseGroup:
    if isinstance(outcome, ErrorCode):
        outcome = ProposalFailed(outcome, f"group {name} not found")
    if isinstance(outcome, ProposalFailed):
        return ConsumerGroupDescribeResponseGroup(
            error_code=outcome.code,
            error_message=outcome.message,
            group_id=name,
            group_state="",
            assignor_name="",
        )
    if not all(ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, topic) for topic in _topics(ctx, outcome)):
        return ConsumerGroupDescribeResponseGroup(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="the group has members that read topics which this client may not describe",
            group_id=name,
            group_state="",
            assignor_name="",
        )
    operations = OPERATIONS_NOT_ASKED_FOR
    if request.include_authorized_operations:
        operations = authorized_operations(ctx, GROUP_OPERATIONS, AclResourceType.GROUP, name)
    return ConsumerGroupDescribeResponseGroup(
        group_id=name,
        group_state=outcome.state,
        group_epoch=outcome.epoch,
        assignment_epoch=outcome.target_epoch,
        assignor_name=outcome.assignor,
        members=tuple(_member(ctx, member) for member in outcome.members),
        authorized_operations=operations,
    )


def _topics(ctx: RequestContext, group: DescribedConsumerGroup) -> set[str]:
    """Return the topics that are assigned, as Kafka checks them."""
    known, found = ctx.image.topics_by_id, set[str]()
    for member in group.members:
        for partitions in (member.assigned, member.target):
            found.update(known[TopicId(each)].name for each in by_topic(partitions) if TopicId(each) in known)
    return found


def _member(ctx: RequestContext, member: DescribedConsumer) -> ConsumerGroupDescribeResponseMember:
    subscription = member.subscription
    return ConsumerGroupDescribeResponseMember(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        member_epoch=member.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=subscription.topics,
        subscribed_topic_regex=subscription.regex,
        assignment=_assignment(ctx, member.assigned),
        target_assignment=_assignment(ctx, member.target),
        member_type=CONSUMER_MEMBER if subscription.classic is None else CLASSIC_MEMBER,
    )


def _assignment(ctx: RequestContext, partitions: Partitions) -> ConsumerGroupDescribeResponseAssignment:
    """Return the assignment without topics that were deleted."""
    known = ctx.image.topics_by_id
    return ConsumerGroupDescribeResponseAssignment(
        topic_partitions=tuple(
            ConsumerGroupDescribeResponseTopicPartitions(
                topic_id=topic_id, topic_name=known[TopicId(topic_id)].name, partitions=tuple(numbers)
            )
            for topic_id, numbers in by_topic(partitions).items()
            if TopicId(topic_id) in known
        )
    )
