"""JoinGroup (11): a member joins the next generation of a group; the response waits for the other members."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import group_error, random_uuid, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import Join, JoinResult
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

MEMBER_NAME_LENGTH_MAX = 255
"""Characters of the client id or instance id that become part of a member id."""

_REBALANCE_TIMEOUT_FROM = 1
_MEMBER_ID_REQUIRED_FROM = 4
_PROTOCOL_TYPE_FROM = 7
_SKIP_ASSIGNMENT_FROM = 9


def handle(request: JoinGroupRequest, ctx: RequestContext) -> object:
    def respond(outcome: JoinResult | ProposalFailed) -> JoinGroupResponse:
        if isinstance(outcome, ProposalFailed):
            outcome = JoinResult(outcome.code, request.member_id)
        return _response(ctx, outcome)

    error = group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(JoinResult(error, request.member_id))
    return when_known(ctx, ctx.groups.join(_command(ctx, request)), respond)


def _command(ctx: RequestContext, request: JoinGroupRequest) -> Join:
    timeout_ms = request.rebalance_timeout_ms if ctx.version >= _REBALANCE_TIMEOUT_FROM else request.session_timeout_ms
    name = request.group_instance_id if request.group_instance_id is not None else ctx.client_id or ""
    return Join(
        group=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=ctx.client_id or "",
        client_host=f"/{ctx.connection.peer_host}",
        requester=ctx.requester,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=max(timeout_ms, 0),
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        new_member_id=f"{name[:MEMBER_NAME_LENGTH_MAX]}-{random_uuid(ctx)}",
        member_id_required=ctx.version >= _MEMBER_ID_REQUIRED_FROM,
        skip_assignment_supported=ctx.version >= _SKIP_ASSIGNMENT_FROM,
    )


def _response(ctx: RequestContext, result: JoinResult) -> JoinGroupResponse:
    no_protocol = None if ctx.version >= _PROTOCOL_TYPE_FROM else ""
    return JoinGroupResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=no_protocol if result.protocol is None else result.protocol,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=tuple(
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in result.members
        ),
    )
