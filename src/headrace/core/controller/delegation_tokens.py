"""Decide on delegation tokens: create, renew and expire them, and remove those that have expired (KIP-48, KIP-373)."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.core.controller.commands import ControllerDecision, Refused
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import (
    ACCESS_LEVEL,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from headrace.model.errors import ErrorCode

TOKENS_MAX = 5_000
"""Delegation tokens of the cluster."""
TOKENS_PER_OWNER_MAX = 500
RENEWERS_MAX = 100
NAME_LENGTH_MAX = 255
"""Characters of a principal's name."""
REMOVED_AT_ONCE_MAX = 1_000
"""Expired tokens that one decision removes; the others are removed by the next one."""
LIFETIME_MS_MAX = 2**53
"""Longer times are cut: nothing lives longer."""


class TokenLimits(NamedTuple):
    """Times of the config."""

    lifetime_ms_max: int
    """From the creation of a token to its end, whatever is renewed."""
    renewal_ms_max: int
    """From its creation or its last renewal to its expiry."""


class NewToken(NamedTuple):
    owner: str
    """Principals such as User:alice."""
    requester: str
    renewers: tuple[str, ...]
    lifetime_ms: int
    """Not positive for the longest."""


class TokenResult(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    token: DelegationTokenRecord | None = None
    """The token as it is now; one that has expired at once is gone."""


def has_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    return now_ms > min(token.expires_ms, token.max_ms)


def belongs_to(token: DelegationTokenRecord, principal: str) -> bool:
    """Return whether a principal may renew, expire and see a token."""
    return principal in (token.owner, token.requester) or principal in token.renewers


def create_token(
    image: MetadataImage, wanted: NewToken, *, token_id: str, limits: TokenLimits, now_ms: int
) -> ControllerDecision[TokenResult]:
    try:
        _check_new(image, wanted)
    except Refused as refusal:
        return _refused(refusal)
    lifetime_ms = limits.lifetime_ms_max if wanted.lifetime_ms <= 0 else min(wanted.lifetime_ms, limits.lifetime_ms_max)
    max_ms = now_ms + min(lifetime_ms, LIFETIME_MS_MAX)
    token = DelegationTokenRecord(
        owner=wanted.owner,
        requester=wanted.requester,
        renewers=tuple(dict.fromkeys(wanted.renewers)),
        issued_ms=now_ms,
        max_ms=max_ms,
        expires_ms=min(max_ms, now_ms + limits.renewal_ms_max),
        token_id=token_id,
    )
    return ControllerDecision((token,), TokenResult(token=token))


def renew_token(
    image: MetadataImage, token_id: str, principal: str, period_ms: int, *, limits: TokenLimits, now_ms: int
) -> ControllerDecision[TokenResult]:
    """Let a token expire later, after a period that is not longer than the config's; not positive for the longest."""
    try:
        token = _existing(image, token_id, principal)
        if has_expired(token, now_ms):
            raise Refused(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired")
    except Refused as refusal:
        return _refused(refusal)
    longest_ms = limits.renewal_ms_max
    return _expiring(token, now_ms + (longest_ms if period_ms <= 0 else min(period_ms, longest_ms)))


def expire_token(
    image: MetadataImage, token_id: str, principal: str, period_ms: int, *, now_ms: int
) -> ControllerDecision[TokenResult]:
    """Let a token expire after a period; at once if it is negative."""
    try:
        token = _existing(image, token_id, principal)
        if period_ms < 0:
            return ControllerDecision((RemoveDelegationTokenRecord(token_id),), TokenResult())
        if has_expired(token, now_ms):
            raise Refused(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired")
    except Refused as refusal:
        return _refused(refusal)
    return _expiring(token, now_ms + min(period_ms, LIFETIME_MS_MAX))


def remove_expired_tokens(image: MetadataImage, *, now_ms: int) -> ControllerDecision[int]:
    """Remove tokens that have expired; return their number."""
    expired = [token_id for token_id, token in image.tokens.items() if has_expired(token, now_ms)]
    removed = expired[:REMOVED_AT_ONCE_MAX]
    return ControllerDecision(tuple(RemoveDelegationTokenRecord(token_id) for token_id in removed), len(removed))


def _check_new(image: MetadataImage, wanted: NewToken) -> None:
    if image.metadata_version < ACCESS_LEVEL:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"tokens need metadata.version {ACCESS_LEVEL}")
    _check_principals((wanted.owner, *wanted.renewers))
    if len(wanted.renewers) > RENEWERS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"a token has at most {RENEWERS_MAX} renewers")
    if len(image.tokens) >= TOKENS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"the cluster has at most {TOKENS_MAX} delegation tokens")
    if sum(token.owner == wanted.owner for token in image.tokens.values()) >= TOKENS_PER_OWNER_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"an owner has at most {TOKENS_PER_OWNER_MAX} delegation tokens")


def _check_principals(principals: Sequence[str]) -> None:
    for principal in principals:
        kind, _, name = principal.partition(":")
        if kind != "User":
            raise Refused(ErrorCode.INVALID_PRINCIPAL_TYPE, "owners and renewers are users")
        if not name or len(name) > NAME_LENGTH_MAX or not name.isprintable():
            raise Refused(ErrorCode.INVALID_REQUEST, f"a name has 1 to {NAME_LENGTH_MAX} printable characters")


def _existing(image: MetadataImage, token_id: str, principal: str) -> DelegationTokenRecord:
    token = image.tokens.get(token_id)
    if token is None:
        raise Refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token")
    if not belongs_to(token, principal):
        raise Refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "the token belongs to others")
    return token


def _expiring(token: DelegationTokenRecord, expires_ms: int) -> ControllerDecision[TokenResult]:
    changed = DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issued_ms=token.issued_ms,
        max_ms=token.max_ms,
        expires_ms=min(token.max_ms, expires_ms),
        token_id=token.token_id,
    )
    return ControllerDecision((changed,), TokenResult(token=changed))


def _refused(refusal: Refused) -> ControllerDecision[TokenResult]:
    return ControllerDecision((), TokenResult(refusal.code))
