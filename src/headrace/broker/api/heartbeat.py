"""Heartbeat (12): a member of a classic group says that it lives, and hears whether it has to join again."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_group, group_error
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import Membership
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, ctx: RequestContext) -> object:
    def respond(outcome: ErrorCode | ProposalFailed) -> HeartbeatResponse:
        error = outcome.code if isinstance(outcome, ProposalFailed) else outcome
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            error = ErrorCode.NONE  # what is being loaded has not been lost: the member may go on
        return HeartbeatResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=error)

    error = group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(error)
    member = Membership(
        group=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
    )
    return ask_group(ctx, request.group_id, lambda groups, ticket, now: groups.heartbeat(member, ticket, now), respond)
