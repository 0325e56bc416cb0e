"""CreateInvitation (32026): an operator gets a token with which one other node may join the cluster."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.authorization import stranger_refusal
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.create_invitation import CreateInvitationRequest, CreateInvitationResponse


def handle(request: CreateInvitationRequest, ctx: RequestContext) -> CreateInvitationResponse:
    if not ctx.authorized(Operation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this principal may not alter the cluster")
    refusal = stranger_refusal(ctx, "invitations are given")
    if refusal is not None:
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal)
    invitations = ctx.invitations
    if invitations is None:
        return _refused(
            ErrorCode.INVALID_REQUEST,
            "this node has no listener for other nodes: start it with --cluster-listen HOST:PORT",
        )
    from headrace.broker.peers.invitations import InvitationRefused

    try:
        invitation = invitations.create(request.lifetime_ms)
    except InvitationRefused as error:
        return _refused(ErrorCode.INVALID_REQUEST, str(error))
    return CreateInvitationResponse(
        throttle_time_ms=ctx.throttle_time_ms, token=invitation.token, expiry_ms=invitation.expiry_ms
    )


def _refused(code: ErrorCode, message: str) -> CreateInvitationResponse:
    return CreateInvitationResponse(error_code=code, error_message=message)
