"""ExpireDelegationToken (40): lets a token expire sooner, or at once."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.delegation_tokens import NO_TIME, token_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.delegation_tokens import TokenResult
from headrace.model.errors import ErrorCode
from headrace.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def handle(request: ExpireDelegationTokenRequest, ctx: RequestContext) -> ExpireDelegationTokenResponse | Parked:
    def response(code: ErrorCode, expires_ms: int = NO_TIME) -> ExpireDelegationTokenResponse:
        return ExpireDelegationTokenResponse(
            error_code=code, expiry_timestamp_ms=expires_ms, throttle_time_ms=ctx.throttle_time_ms
        )

    refusal = token_refusal(ctx)
    if refusal:
        return response(refusal)
    token_id = ctx.delegation_tokens.find(bytes(request.hmac))
    principal, period_ms, now_ms = str(ctx.principal), request.expiry_time_period_ms, ctx.clock.wall_ms()

    def respond(outcome: TokenResult | ProposalFailed) -> ExpireDelegationTokenResponse:
        if isinstance(outcome, ProposalFailed):
            return response(outcome.code)
        if outcome.error:
            return response(outcome.error)
        return response(outcome.error, now_ms if outcome.token is None else outcome.token.expires_ms)

    proposal = ctx.controller.propose(
        lambda controller: controller.expire_token(token_id, principal, period_ms, now_ms=now_ms)
    )
    return park_until_committed(ctx, proposal, respond)
