"""RenewDelegationToken (39): lets a token expire later."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.delegation_tokens import NO_TIME, token_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.delegation_tokens import TokenResult
from headrace.model.errors import ErrorCode
from headrace.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(request: RenewDelegationTokenRequest, ctx: RequestContext) -> RenewDelegationTokenResponse | Parked:
    def response(code: ErrorCode, expires_ms: int = NO_TIME) -> RenewDelegationTokenResponse:
        return RenewDelegationTokenResponse(
            error_code=code, expiry_timestamp_ms=expires_ms, throttle_time_ms=ctx.throttle_time_ms
        )

    refusal = token_refusal(ctx)
    if refusal:
        return response(refusal)
    token_id = ctx.delegation_tokens.find(bytes(request.hmac))
    principal, period_ms = str(ctx.principal), request.renew_period_ms
    limits, now_ms = ctx.delegation_tokens.limits, ctx.clock.wall_ms()

    def respond(outcome: TokenResult | ProposalFailed) -> RenewDelegationTokenResponse:
        if isinstance(outcome, ProposalFailed):
            return response(outcome.code)
        return response(outcome.error, NO_TIME if outcome.token is None else outcome.token.expires_ms)

    proposal = ctx.controller.propose(
        lambda controller: controller.renew_token(token_id, principal, period_ms, limits=limits, now_ms=now_ms)
    )
    return park_until_committed(ctx, proposal, respond)
