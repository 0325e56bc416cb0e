"""SaslHandshake (17): the client chooses a SASL mechanism."""

from headrace.broker.api.context import RequestContext
from headrace.core.access.sasl import LoginFailed, SaslState
from headrace.model.errors import ErrorCode
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, ctx: RequestContext) -> SaslHandshakeResponse:
    session, authentication = ctx.connection.sasl, ctx.authentication
    if session is None or session.state not in (SaslState.MECHANISM, SaslState.AUTHENTICATED):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if request.mechanism not in authentication.mechanisms:
        session.refuse()
        ctx.connection.closing = True  # once it has the response
        return SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=authentication.mechanisms
        )
    try:
        session.choose(request.mechanism, authentication.exchange(request.mechanism, ctx.listener_name))
    except LoginFailed as failed:
        ctx.logger.info("authentication failed", peer=ctx.connection.peer_host, reason=str(failed))
        ctx.connection.closing = True
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=authentication.mechanisms)
    return SaslHandshakeResponse(mechanisms=authentication.mechanisms)
