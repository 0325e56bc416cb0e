"""Typed view of the configs of OAUTHBEARER."""

from dataclasses import dataclass
from typing import Protocol

from headrace.model.addresses import is_loopback

OAUTHBEARER = "OAUTHBEARER"
CLAIM_LENGTH_MAX = 200
"""Characters of the name of a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthConfig:
    keys_url: str | None
    """Where the public keys of the identity provider are."""
    authorities: str | None
    """A PEM file; None for the authorities of the system."""
    refresh_ms: int
    retry_ms: int
    retry_ms_max: int
    issuer: str | None
    audiences: tuple[str, ...]
    clock_skew_s: int
    user_claim: str
    scope_claim: str
    scopes: tuple[str, ...]


class OAuthValues(Protocol):
    def whole(self, name: str) -> int: ...
    def text(self, name: str) -> str: ...
    def optional_text(self, name: str) -> str | None: ...
    def items(self, name: str) -> tuple[str, ...]: ...


def oauth_config(values: OAuthValues) -> OAuthConfig:
    return OAuthConfig(
        keys_url=values.optional_text("sasl.oauthbearer.jwks.endpoint.url"),
        authorities=values.optional_text("headrace.sasl.oauthbearer.ca.location"),
        refresh_ms=values.whole("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        retry_ms=values.whole("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        retry_ms_max=values.whole("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        issuer=values.optional_text("sasl.oauthbearer.expected.issuer"),
        audiences=values.items("sasl.oauthbearer.expected.audience"),
        clock_skew_s=values.whole("sasl.oauthbearer.clock.skew.seconds"),
        user_claim=values.text("sasl.oauthbearer.sub.claim.name"),
        scope_claim=values.text("sasl.oauthbearer.scope.claim.name"),
        scopes=values.items("headrace.sasl.oauthbearer.required.scopes"),
    )


def keys_url_error(text: str) -> str | None:
    """Check the place of the keys: with keys from a connection that anyone may change, anyone could make tokens."""
    from urllib.parse import urlsplit  # few brokers need it

    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return "must be an address such as https://login.example.org/keys"
    if parts.scheme == "file":
        return None if parts.path.startswith("/") and not parts.netloc else "must look like file:///etc/headrace/keys"
    if (parts.scheme == "https" and host) or (parts.scheme == "http" and host and is_loopback(host)):
        return None
    return "must begin with https:// (http:// is for this machine alone) or file:///"


def claim_error(text: str) -> str | None:
    """Check the name of a claim."""
    if text and text == text.strip() and text.isprintable() and len(text) <= CLAIM_LENGTH_MAX:
        return None
    return f"must be the name of a claim, of at most {CLAIM_LENGTH_MAX} characters"
