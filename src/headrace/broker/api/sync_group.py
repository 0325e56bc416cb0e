"""SyncGroup (14): the leader of a generation sends the assignments, and every member receives its own."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import group_error, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import MemberClaim, Sync, SyncResult
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_REQUIRED_FROM = 5


def handle(request: SyncGroupRequest, ctx: RequestContext) -> object:
    def respond(outcome: SyncResult | ProposalFailed) -> SyncGroupResponse:
        return _response(ctx, SyncResult(outcome.code) if isinstance(outcome, ProposalFailed) else outcome)

    error = _error(request, ctx)
    if error is not ErrorCode.NONE:
        return respond(SyncResult(error))
    return when_known(ctx, ctx.groups.sync(_command(request)), respond)


def _error(request: SyncGroupRequest, ctx: RequestContext) -> ErrorCode:
    protocol_missing = request.protocol_type is None or request.protocol_name is None
    if protocol_missing and ctx.version >= _PROTOCOL_REQUIRED_FROM:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return group_error(ctx, Operation.READ, request.group_id)


def _command(request: SyncGroupRequest) -> Sync:
    return Sync(
        member=MemberClaim(
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
        ),
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple((each.member_id, each.assignment) for each in request.assignments),
    )


def _response(ctx: RequestContext, result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        assignment=result.assignment,
    )
