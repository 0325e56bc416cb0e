"""DescribeDelegationToken (41): lists the tokens that the client may see, of all owners or of some."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.delegation_tokens import token_refusal
from headrace.core.controller.delegation_tokens import belongs_to
from headrace.core.controller.records import DelegationTokenRecord
from headrace.model.access import AclResourceType, Operation
from headrace.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeDelegationTokenResponseRenewer,
    DescribeDelegationTokenResponseToken,
)


def handle(request: DescribeDelegationTokenRequest, ctx: RequestContext) -> DescribeDelegationTokenResponse:
    refusal = token_refusal(ctx)
    if refusal:
        return DescribeDelegationTokenResponse(error_code=refusal, throttle_time_ms=ctx.throttle_time_ms)
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    found = [
        token
        for token in ctx.image.tokens.values()
        if (owners is None or any(belongs_to(token, owner) for owner in owners)) and _may_see(ctx, token)
    ]
    return DescribeDelegationTokenResponse(
        tokens=tuple(_described(ctx, token) for token in found), throttle_time_ms=ctx.throttle_time_ms
    )


def _may_see(ctx: RequestContext, token: DelegationTokenRecord) -> bool:
    return (
        belongs_to(token, str(ctx.principal))
        or ctx.authorized(Operation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id)
        or ctx.authorized(Operation.DESCRIBE_TOKENS, AclResourceType.USER, token.owner)
    )


def _described(ctx: RequestContext, token: DelegationTokenRecord) -> DescribeDelegationTokenResponseToken:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    return DescribeDelegationTokenResponseToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=ctx.delegation_tokens.proof(token.token_id),
        renewers=tuple(_renewer(each) for each in token.renewers),
    )


def _renewer(principal: str) -> DescribeDelegationTokenResponseRenewer:
    kind, _, name = principal.partition(":")
    return DescribeDelegationTokenResponseRenewer(principal_type=kind, principal_name=name)
