"""JoinCluster (32024): a node with an invitation gets the id and the key of the cluster, sealed for it."""

from headrace.broker.api.context import RequestContext
from headrace.broker.peers.invitations import InvitationRefused
from headrace.core.peers.seals import NoCryptography
from headrace.model.errors import ErrorCode
from headrace.wire.messages.join_cluster import JoinClusterRequest, JoinClusterResponse


def handle(request: JoinClusterRequest, ctx: RequestContext) -> JoinClusterResponse:
    invitations = ctx.invitations
    assert invitations is not None, "only the CONTROLLER listener serves this API"
    ctx.connection.closing = True  # once it has the response: the node comes back with the key
    try:
        return JoinClusterResponse(sealed=invitations.redeem(request, ctx.connection.peer_host))
    except (InvitationRefused, NoCryptography) as error:
        ctx.logger.warning("a node could not join", peer=ctx.connection.peer_host, reason=str(error))
        return JoinClusterResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=str(error))
