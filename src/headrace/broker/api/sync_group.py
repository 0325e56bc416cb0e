"""SyncGroup (14): the leader of a generation hands out the assignment, everyone collects its own."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_group, group_error
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import Membership, Sync, SyncResult
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_REQUIRED_FROM = 5


def handle(request: SyncGroupRequest, ctx: RequestContext) -> object:
    def respond(outcome: SyncResult | ProposalFailed) -> SyncGroupResponse:
        if isinstance(outcome, ProposalFailed):
            outcome = SyncResult(outcome.code)
        return SyncGroupResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=outcome.error,
            protocol_type=outcome.protocol_type,
            protocol_name=outcome.protocol,
            assignment=outcome.assignment,
        )

    error = group_error(ctx, Operation.READ, request.group_id)
    protocol_missing = request.protocol_type is None or request.protocol_name is None
    if error is ErrorCode.NONE and protocol_missing and ctx.version >= _PROTOCOL_REQUIRED_FROM:
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if error is not ErrorCode.NONE:
        return respond(ProposalFailed(error, ""))
    command = Sync(
        member=Membership(
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
        ),
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple((each.member_id, each.assignment) for each in request.assignments),
    )
    return ask_group(ctx, request.group_id, lambda groups, ticket, now: groups.sync(command, ticket, now), respond)
