"""The broker's side of OAUTHBEARER (RFC 7628): the client sends a token that an identity provider has signed."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from headrace.core.access.sasl import LoginFailed, Proved, Rejection
from headrace.core.access.signed_tokens import KeyUnknown, TokenRefused
from headrace.model.limits import TOKEN_BYTES_MAX

MESSAGE_BYTES_MAX = TOKEN_BYTES_MAX + (8 << 10)
USER_LENGTH_MAX = 255
"""Characters of a user's name."""
SCOPES_MAX = 1_000
"""Scopes of one token."""
REFUSAL = '{"status":"invalid_token"}'
"""The response to every token that is refused; the client learns no more."""

_FIRST = re.compile(
    rb"n,(?:a=(?P<authzid>(?:[^\x00,=]|=2C|=3D)+))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER = re.compile(r"bearer +(?P<token>[-_.A-Za-z0-9]+)", re.IGNORECASE)


class TokenNames(NamedTuple):
    """The claims of a token that count, and what they must say."""

    user_claim: str
    scope_claim: str
    scopes: tuple[str, ...]
    """Scopes that a token must have, all of them."""


class TokenUser(NamedTuple):
    """A user, and the time until which a token names it."""

    name: str
    expires_s: float


class TokenVerifier(Protocol):
    def verify(self, token: str) -> TokenUser:
        """Raise TokenRefused; KeyUnknown if a fetch of the provider's keys may change that."""

    def remaining_ms(self, user: TokenUser) -> float:
        """Return the time until the token expires."""


class OAuthBearerLogin:
    """One login. It keeps no state between messages: a token may be checked again with newer keys."""

    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier
        self.user = ""

    def receive(self, message: bytes) -> Proved | Rejection:
        """Return the client's name, or the refusal of its token; raise LoginFailed for a malformed message."""
        token, acts_as = _parsed(message)
        try:
            user = self._verifier.verify(token)
        except KeyUnknown as refused:
            return Rejection(REFUSAL, f"the token is refused: {refused}", keys_may_change=True)
        except TokenRefused as refused:
            return Rejection(REFUSAL, f"the token is refused: {refused}")
        self.user = user.name
        if acts_as not in ("", user.name):
            raise LoginFailed("a user asks to act as another one")
        return Proved(user.name, lifetime_ms=self._verifier.remaining_ms(user))


def _parsed(message: bytes) -> tuple[str, str]:
    """Return the token, and the name under which the client wants to act, if it says one."""
    if len(message) > MESSAGE_BYTES_MAX:
        raise LoginFailed("the message of OAUTHBEARER is too long")
    found = _FIRST.fullmatch(message)
    if found is None:
        raise LoginFailed("the message of OAUTHBEARER is malformed")
    pairs = [pair.partition("=") for pair in found["pairs"].decode("ascii").split("\x01")[:-1]]
    tokens = [_BEARER.fullmatch(value) for name, _, value in pairs if name == "auth"]
    if len(tokens) != 1 or tokens[0] is None:
        raise LoginFailed("the message of OAUTHBEARER has no bearer token, or several")
    try:
        acts_as = (found["authzid"] or b"").decode().replace("=2C", ",").replace("=3D", "=")
    except UnicodeDecodeError:
        raise LoginFailed("the message of OAUTHBEARER is not UTF-8") from None
    return tokens[0]["token"], acts_as


def token_user(claims: Mapping[str, Any], names: TokenNames) -> TokenUser:
    """Return the user that checked claims name; raise TokenRefused."""
    name = claims.get(names.user_claim)
    if not isinstance(name, str) or not name.strip() or len(name) > USER_LENGTH_MAX or not name.isprintable():
        raise TokenRefused(f'it has no usable name in the claim "{names.user_claim}"')
    missing = set(names.scopes) - _scopes(claims.get(names.scope_claim))
    if missing:
        raise TokenRefused(f"it lacks the scope {min(missing)}")
    return TokenUser(name, float(claims["exp"]))


def _scopes(claim: object) -> set[str]:
    """Return the scopes: a list of texts, or one text with blanks between them (RFC 8693)."""
    listed = claim.split(" ") if isinstance(claim, str) else [] if claim is None else claim
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed) or len(listed) > SCOPES_MAX:
        raise TokenRefused("its scopes are not texts")
    return set(listed)
