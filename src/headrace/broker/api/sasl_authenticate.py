"""SaslAuthenticate (36): one message of a SASL exchange, and the name of the client at its end.

The answer to a login waits if this user has failed at the same address before. Meanwhile no other request of the
connection is handled.
"""

from collections.abc import Callable
from math import isinf

from headrace.broker.api.context import Parked, RequestContext
from headrace.core.access.sasl import Challenge, LoginFailed, Proved, Rejection, SaslSession, SaslState
from headrace.model.access import USER, Principal
from headrace.model.errors import ErrorCode
from headrace.model.limits import TOKEN_KEYS_MS_MAX
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

_TOLD = "Authentication failed: invalid credentials"
"""The message for every reason: a client must not find out which users exist."""


def handle(request: SaslAuthenticateRequest, ctx: RequestContext) -> SaslAuthenticateResponse | Parked:
    session = ctx.connection.sasl
    if session is None or session.state not in (SaslState.MESSAGE, SaslState.REJECTED):
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate follows SaslHandshake, on a listener with SASL",
        )
    return _received(ctx, session, bytes(request.auth_bytes), may_wait=True)


def _received(
    ctx: RequestContext, session: SaslSession, message: bytes, *, may_wait: bool
) -> SaslAuthenticateResponse | Parked:
    reason, proved = "", None
    try:
        step = session.receive(message)
        if isinstance(step, Challenge):
            return SaslAuthenticateResponse(auth_bytes=step.message)
        if isinstance(step, Rejection):
            parked = _after_fetch(ctx, session, message) if step.keys_may_change and may_wait else None
            return parked or _rejected(ctx, session, step)
        proved = step
    except LoginFailed as failed:
        reason = str(failed)
    user, address = session.claimed_user, ctx.connection.peer_host
    wait_ms = ctx.authentication.wait_ms(user, address)
    if wait_ms is None:
        reason, proved, wait_ms = "too many logins of this user and address wait already", None, 0.0
    if proved is not None:
        return _after(ctx, wait_ms, lambda: _admitted(ctx, session, proved))
    told = _TOLD if session.rejection is None else session.rejection.text
    ctx.authentication.failed(session, user=user, address=address, reason=reason)
    return _after(ctx, wait_ms + ctx.authentication.failure_delay_ms, lambda: _refused(ctx, told))


def _rejected(ctx: RequestContext, session: SaslSession, rejection: Rejection) -> SaslAuthenticateResponse:
    ctx.authentication.rejected(session, rejection, address=ctx.connection.peer_host)
    return SaslAuthenticateResponse(auth_bytes=rejection.text.encode())


def _after_fetch(ctx: RequestContext, session: SaslSession, message: bytes) -> Parked | None:
    """Look at the message again once the keys of the identity provider were fetched; None if that brings nothing."""
    parked: Parked | None = None

    def look_again() -> None:
        if parked is None or parked.completed or parked.abandoned():
            return
        parked.give_up()
        ctx.connection.release()
        response = _received(ctx, session, message, may_wait=False)
        if not isinstance(response, Parked):
            ctx.respond(response)

    if not ctx.authentication.token_keys(ctx.listener_name).wait(look_again):
        return None
    ctx.connection.hold()
    ctx.timers.after(TOKEN_KEYS_MS_MAX, look_again)
    parked = ctx.park()
    return parked


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
    ctx.connection.by_token = proved.by_token
    return SaslAuthenticateResponse(
        auth_bytes=proved.message, session_lifetime_ms=0 if isinf(lifetime_ms) else max(1, int(lifetime_ms))
    )


def _refused(ctx: RequestContext, message: str) -> SaslAuthenticateResponse:
    ctx.connection.closing = True  # once it has the response
    return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message)
