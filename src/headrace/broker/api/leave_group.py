"""LeaveGroup (13): removes members from a group; from version 3 on several in one request."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import group_error, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import Leave, LeaveResult, LeavingMember
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeaveGroupResponseMember

_SEVERAL_FROM = 3


def handle(request: LeaveGroupRequest, ctx: RequestContext) -> object:
    def respond(outcome: list[LeaveResult] | ProposalFailed) -> LeaveGroupResponse:
        if isinstance(outcome, ProposalFailed):
            return LeaveGroupResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=outcome.code)
        return _response(ctx, outcome)

    error = group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(ProposalFailed(error, ""))
    return when_known(ctx, ctx.groups.leave(_command(ctx, request)), respond)


def _command(ctx: RequestContext, request: LeaveGroupRequest) -> Leave:
    if ctx.version >= _SEVERAL_FROM:
        members = tuple(LeavingMember(member.member_id, member.group_instance_id) for member in request.members)
    else:
        members = (LeavingMember(request.member_id, None),)
    return Leave(group=request.group_id, members=members)


def _response(ctx: RequestContext, results: list[LeaveResult]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=results[0].error if ctx.version < _SEVERAL_FROM else ErrorCode.NONE,
        members=tuple(
            LeaveGroupResponseMember(
                member_id=result.member_id, group_instance_id=result.instance_id, error_code=result.error
            )
            for result in results
        ),
    )
