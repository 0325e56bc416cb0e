"""CreateDelegationToken (38): makes a token of the client, or of another user if the client may."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.delegation_tokens import NO_TIME, token_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.delegation_tokens import NewToken, TokenResult
from headrace.model.access import AclResourceType, Operation, Principal
from headrace.model.errors import ErrorCode
from headrace.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

TOKEN_ID_BYTES = 16


def handle(request: CreateDelegationTokenRequest, ctx: RequestContext) -> CreateDelegationTokenResponse | Parked:
    owner = ctx.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)

    def failed(code: ErrorCode) -> CreateDelegationTokenResponse:
        return _response(ctx, owner, TokenResult(code))

    refusal = token_refusal(ctx)
    if refusal:
        return failed(refusal)
    if owner != ctx.principal and not ctx.authorized(Operation.CREATE_TOKENS, AclResourceType.USER, str(owner)):
        return failed(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    wanted = NewToken(
        owner=str(owner),
        requester=str(ctx.principal),
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        lifetime_ms=request.max_lifetime_ms,
    )
    token_id = ctx.entropy.random_bytes(TOKEN_ID_BYTES).hex()
    limits, now_ms = ctx.delegation_tokens.limits, ctx.clock.wall_ms()

    def respond(outcome: TokenResult | ProposalFailed) -> CreateDelegationTokenResponse:
        return failed(outcome.code) if isinstance(outcome, ProposalFailed) else _response(ctx, owner, outcome)

    proposal = ctx.controller.propose(
        lambda controller: controller.create_token(wanted, token_id=token_id, limits=limits, now_ms=now_ms)
    )
    return park_until_committed(ctx, proposal, respond)


def _response(ctx: RequestContext, owner: Principal, result: TokenResult) -> CreateDelegationTokenResponse:
    token = result.token
    return CreateDelegationTokenResponse(
        error_code=result.error,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=ctx.principal.type,
        token_requester_principal_name=ctx.principal.name,
        issue_timestamp_ms=NO_TIME if token is None else token.issued_ms,
        expiry_timestamp_ms=NO_TIME if token is None else token.expires_ms,
        max_timestamp_ms=NO_TIME if token is None else token.max_ms,
        token_id="" if token is None else token.token_id,
        hmac=b"" if token is None else ctx.delegation_tokens.proof(token.token_id),
        throttle_time_ms=ctx.throttle_time_ms,
    )
