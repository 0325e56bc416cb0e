"""LeaveGroup (13): members say goodbye; from version 3 on several in one request."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_group, group_error
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import LeaveResult, LeavingMember
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeaveGroupResponseMember

_SEVERAL_FROM = 3


def handle(request: LeaveGroupRequest, ctx: RequestContext) -> object:
    if ctx.version >= _SEVERAL_FROM:
        leaving = [LeavingMember(member.member_id, member.group_instance_id) for member in request.members]
    else:
        leaving = [LeavingMember(request.member_id, None)]

    def respond(outcome: list[LeaveResult] | ProposalFailed) -> LeaveGroupResponse:
        if isinstance(outcome, ProposalFailed):
            return LeaveGroupResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=outcome.code)
        return LeaveGroupResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=outcome[0].error if ctx.version < _SEVERAL_FROM else ErrorCode.NONE,
            members=tuple(
                LeaveGroupResponseMember(
                    member_id=result.member_id, group_instance_id=result.instance_id, error_code=result.error
                )
                for result in outcome
            ),
        )

    error = group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(ProposalFailed(error, ""))
    return ask_group(
        ctx,
        request.group_id,
        lambda groups, ticket, now: groups.leave(request.group_id, leaving, ticket, now),
        respond,
    )
