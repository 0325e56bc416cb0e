"""SaslAuthenticate (36): one message of a SASL exchange, and the name of the client at its end.

The answer to a login waits if this user has failed at the same address before. Meanwhile no other request of the
connection is handled.
"""

from collections.abc import Callable
from math import isinf

from headrace.broker.api.context import Parked, RequestContext
from headrace.core.access.sasl import Challenge, LoginFailed, Proved, SaslSession, SaslState
from headrace.model.access import USER, Principal
from headrace.model.errors import ErrorCode
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

_TOLD = "Authentication failed: invalid credentials"
"""The message for every reason: a client must not find out which users exist."""


def handle(request: SaslAuthenticateRequest, ctx: RequestContext) -> SaslAuthenticateResponse | Parked:
    session = ctx.connection.sasl
    if session is None or session.state is not SaslState.MESSAGE:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate follows SaslHandshake, on a listener with SASL",
        )
    reason, proved = "", None
    try:
        step = session.receive(request.auth_bytes)
        if isinstance(step, Challenge):
            return SaslAuthenticateResponse(auth_bytes=step.message)
        proved = step
    except LoginFailed as failed:
        reason = str(failed)
    user, address = session.claimed_user, ctx.connection.peer_host
    wait_ms = ctx.authentication.wait_ms(user, address)
    if wait_ms is None:
        reason, proved, wait_ms = "too many logins of this user and address wait already", None, 0.0
    if proved is not None:
        return _after(ctx, wait_ms, lambda: _admitted(ctx, session, proved))
    ctx.authentication.failed(session, user=user, address=address, reason=reason)
    return _after(ctx, wait_ms + ctx.authentication.failure_delay_ms, lambda: _refused(ctx))


def _after(
    ctx: RequestContext, wait_ms: float, answer: Callable[[], SaslAuthenticateResponse]
) -> SaslAuthenticateResponse | Parked:
    if not wait_ms:
        return answer()
    connection = ctx.connection
    connection.hold()

    def answer_now() -> SaslAuthenticateResponse:
        connection.release()
        return answer()

    return ctx.park(timeout_ms=wait_ms, on_timeout=answer_now)


def _admitted(ctx: RequestContext, session: SaslSession, proved: Proved) -> SaslAuthenticateResponse:
    lifetime_ms = ctx.authentication.succeeded(session, proved, address=ctx.connection.peer_host)
    ctx.connection.principal = Principal(USER, proved.user)
    return SaslAuthenticateResponse(
        auth_bytes=proved.message, session_lifetime_ms=0 if isinf(lifetime_ms) else int(lifetime_ms)
    )


def _refused(ctx: RequestContext) -> SaslAuthenticateResponse:
    ctx.connection.closing = True  # once it has the response
    return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=_TOLD)
