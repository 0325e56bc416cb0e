"""DescribeGroups (15): the state, protocol and members of classic groups."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.authorization import authorized_operations
from headrace.broker.api.support.coordinators import ask_each_group
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import DescribedClassicGroup
from headrace.core.groups.states import GroupState
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseGroup,
    DescribeGroupsResponseMember,
)

DESCRIBE_GROUPS_MAX = 10_000
"""Groups of one DescribeGroups or ConsumerGroupDescribe request that are described. The others get INVALID_REQUEST: the
client must request them separately.
"""
GROUP_OPERATIONS = (Operation.READ, Operation.DELETE, Operation.DESCRIBE)
OPERATIONS_NOT_ASKED_FOR = -2_147_483_648
_NOT_FOUND_FROM = 6


def handle(request: DescribeGroupsRequest, ctx: RequestContext) -> object:
    def result(name: str, outcome: DescribedClassicGroup | ProposalFailed) -> DescribeGroupsResponseGroup:
        return _group(ctx, request, name, outcome)

    def respond(groups: list[DescribeGroupsResponseGroup]) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(throttle_time_ms=ctx.throttle_time_ms, groups=tuple(groups))

    names = tuple(dict.fromkeys(request.groups))  # describe a group once if the request repeats it
    describe = ctx.groups.describe_classic_group
    return ask_each_group(ctx, Operation.DESCRIBE, names, describe, result, respond, items_max=DESCRIBE_GROUPS_MAX)


def _group(
    ctx: RequestContext, request: DescribeGroupsRequest, name: str, outcome: DescribedClassicGroup | ProposalFailed
) -> DescribeGroupsResponseGroup:
    if isinstance(outcome, ProposalFailed):
        return DescribeGroupsResponseGroup(
            error_code=outcome.code,
            error_message=outcome.message or None,
            group_id=name,
            group_state="",
            protocol_type="",
            protocol_data="",
        )
    missing = outcome.error is ErrorCode.GROUP_ID_NOT_FOUND
    operations = OPERATIONS_NOT_ASKED_FOR
    if request.include_authorized_operations and not missing:
        operations = authorized_operations(ctx, GROUP_OPERATIONS, AclResourceType.GROUP, name)
    return DescribeGroupsResponseGroup(
        error_code=outcome.error if ctx.version >= _NOT_FOUND_FROM else ErrorCode.NONE,
        error_message=f"group {name} is not a classic group or does not exist" if missing else None,
        group_id=name,
        group_state=GroupState.DEAD if missing else outcome.state,
        protocol_type=outcome.protocol_type,
        protocol_data=outcome.protocol,
        members=tuple(
            DescribeGroupsResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in outcome.members
        ),
        authorized_operations=operations,
    )
