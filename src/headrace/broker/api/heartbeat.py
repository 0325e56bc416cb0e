"""Heartbeat (12): a classic member extends its session and learns whether it must join again."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import group_error, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import MemberClaim
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, ctx: RequestContext) -> object:
    def respond(outcome: ErrorCode | ProposalFailed) -> HeartbeatResponse:
        error = outcome.code if isinstance(outcome, ProposalFailed) else outcome
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            error = ErrorCode.NONE  # the group is not lost while it is loaded: the member may continue
        return HeartbeatResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=error)

    error = group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(error)
    member = MemberClaim(
        group=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
    )
    return when_known(ctx, ctx.groups.heartbeat(member), respond)
