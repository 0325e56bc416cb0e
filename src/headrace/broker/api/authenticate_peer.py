"""AuthenticatePeer (32020): another node proves that it has the cluster key, and this node proves it in return."""

from headrace.broker.api.context import RequestContext
from headrace.wire.messages.authenticate_peer import AuthenticatePeerRequest, AuthenticatePeerResponse


def handle(request: AuthenticatePeerRequest, ctx: RequestContext) -> AuthenticatePeerResponse:
    session = ctx.connection.peer
    assert session is not None, "only the CONTROLLER listener serves this API"
    return session.authenticate(request)
