"""Typed view of the configs of delegation tokens."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig:
    secret: str | None = field(repr=False)
    """The same on every node; None if tokens are not served."""
    lifetime_ms_max: int
    renewal_ms_max: int
    check_interval_ms: int


class TokenValues(Protocol):
    def whole(self, name: str) -> int: ...
    def optional_text(self, name: str) -> str | None: ...


def token_config(values: TokenValues) -> TokenConfig:
    return TokenConfig(
        secret=values.optional_text("delegation.token.secret.key") or None,
        lifetime_ms_max=values.whole("delegation.token.max.lifetime.ms"),
        renewal_ms_max=values.whole("delegation.token.expiry.time.ms"),
        check_interval_ms=values.whole("delegation.token.expiry.check.interval.ms"),
    )
