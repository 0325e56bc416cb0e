"""Create, renew, expire and list delegation tokens (KIP-48, KIP-373)."""

from collections.abc import Sequence

from headrace.client.core.admin.routing import ask_controller
from headrace.client.core.calls import Operation, ask
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError, InvalidArgument
from headrace.client.types import DelegationToken
from headrace.wire.messages import create_delegation_token as create_api
from headrace.wire.messages import describe_delegation_token as describe_api
from headrace.wire.messages import expire_delegation_token as expire_api
from headrace.wire.messages import renew_delegation_token as renew_api

AT_ONCE = -1
"""The period after which a token expires at once."""
LONGEST = -1
"""The lifetime or the period of a renewal that is as long as the broker allows."""
_OWNERS_FROM_VERSION = 3


def create_token(
    cluster: Cluster, *, owner: str | None, renewers: Sequence[str], lifetime_ms: int | None
) -> Operation[DelegationToken]:
    """Create a token; principals look like User:alice, and the owner is the caller if none is given."""
    kind, name = (None, None) if owner is None else _principal(owner)
    request = create_api.CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=tuple(
            create_api.CreateDelegationTokenRequestRenewer(principal_type=each[0], principal_name=each[1])
            for each in map(_principal, renewers)
        ),
        max_lifetime_ms=LONGEST if lifetime_ms is None else lifetime_ms,
    )
    reply = yield from ask_controller(
        cluster,
        create_api,
        request,
        codes=lambda found: (found.error_code,),
        min_version=1 if owner is None else _OWNERS_FROM_VERSION,
    )
    if reply.error_code:
        raise BrokerError(reply.error_code, "the token could not be created", None)
    made_for = f"{reply.principal_type}:{reply.principal_name}"
    requester = f"{reply.token_requester_principal_type}:{reply.token_requester_principal_name}"
    return DelegationToken(
        token_id=reply.token_id,
        owner=made_for,
        requester=made_for if requester == ":" else requester,
        renewers=tuple(renewers),
        issued_ms=reply.issue_timestamp_ms,
        expires_ms=reply.expiry_timestamp_ms,
        max_ms=reply.max_timestamp_ms,
        proof=bytes(reply.hmac),
    )


def renew_token(cluster: Cluster, proof: bytes, *, period_ms: int | None) -> Operation[int]:
    """Return when the token expires now."""
    request = renew_api.RenewDelegationTokenRequest(
        hmac=proof, renew_period_ms=LONGEST if period_ms is None else period_ms
    )
    reply = yield from ask_controller(cluster, renew_api, request, codes=lambda found: (found.error_code,))
    if reply.error_code:
        raise BrokerError(reply.error_code, "the token could not be renewed", None)
    expires_ms: int = reply.expiry_timestamp_ms
    return expires_ms


def expire_token(cluster: Cluster, proof: bytes, *, period_ms: int | None) -> Operation[int]:
    """Return when the token expires, or has expired."""
    request = expire_api.ExpireDelegationTokenRequest(
        hmac=proof, expiry_time_period_ms=AT_ONCE if period_ms is None else period_ms
    )
    reply = yield from ask_controller(cluster, expire_api, request, codes=lambda found: (found.error_code,))
    if reply.error_code:
        raise BrokerError(reply.error_code, "the token could not be expired", None)
    expires_ms: int = reply.expiry_timestamp_ms
    return expires_ms


def tokens(owners: Sequence[str] | None) -> Operation[tuple[DelegationToken, ...]]:
    """Return the tokens that the caller may see, of all owners or of these."""
    wanted = None
    if owners is not None:
        wanted = tuple(
            describe_api.DescribeDelegationTokenRequestOwner(principal_type=each[0], principal_name=each[1])
            for each in map(_principal, owners)
        )
    reply = yield from ask(describe_api, describe_api.DescribeDelegationTokenRequest(owners=wanted))
    if reply.error_code:
        raise BrokerError(reply.error_code, "the tokens could not be listed", None)
    return tuple(_token(each) for each in reply.tokens)


def _token(found: describe_api.DescribeDelegationTokenResponseToken) -> DelegationToken:
    owner = f"{found.principal_type}:{found.principal_name}"
    requester = f"{found.token_requester_principal_type}:{found.token_requester_principal_name}"
    return DelegationToken(
        token_id=found.token_id,
        owner=owner,
        requester=owner if requester == ":" else requester,  # before version 3 there was no other one
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in found.renewers),
        issued_ms=found.issue_timestamp,
        expires_ms=found.expiry_timestamp,
        max_ms=found.max_timestamp,
        proof=bytes(found.hmac),
    )


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise InvalidArgument(f"a principal looks like User:alice, not {text!r}")
    return kind, name
