"""The SASL handshake of one connection, decided without I/O: which requests it may send, and who the client is.

A client names a mechanism, exchanges messages of it, and is authenticated or refused. While the connection lasts, it
may authenticate again (KIP-368), with the same mechanism and the same name.
"""

from collections.abc import Mapping
from enum import StrEnum
from math import inf
from typing import NamedTuple, Protocol

from headrace.model.limits import SASL_MS_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError


class SaslState(StrEnum):
    MECHANISM = "Awaiting the mechanism"
    MESSAGE = "Awaiting a message"
    REJECTED = "Awaiting the end"
    AUTHENTICATED = "Authenticated"
    REFUSED = "Refused"


class SaslEvent(StrEnum):
    MECHANISM = "a mechanism that is served"
    CHALLENGE = "a message that needs another one"
    PROOF = "the proof of the client's name"
    REJECTION = "a token that is refused"
    REFUSAL = "anything else"


TRANSITIONS: Mapping[tuple[SaslState, SaslEvent], SaslState] = {
    (SaslState.MECHANISM, SaslEvent.MECHANISM): SaslState.MESSAGE,
    (SaslState.MESSAGE, SaslEvent.CHALLENGE): SaslState.MESSAGE,
    (SaslState.MESSAGE, SaslEvent.PROOF): SaslState.AUTHENTICATED,
    (SaslState.AUTHENTICATED, SaslEvent.MECHANISM): SaslState.MESSAGE,
    (SaslState.MESSAGE, SaslEvent.REJECTION): SaslState.REJECTED,
    (SaslState.MECHANISM, SaslEvent.REFUSAL): SaslState.REFUSED,
    (SaslState.MESSAGE, SaslEvent.REFUSAL): SaslState.REFUSED,
    (SaslState.REJECTED, SaslEvent.REFUSAL): SaslState.REFUSED,
    (SaslState.AUTHENTICATED, SaslEvent.REFUSAL): SaslState.REFUSED,
}
"""A connection begins with MECHANISM, and ends with REFUSED."""

_ALLOWED: Mapping[SaslState, frozenset[int]] = {
    SaslState.MECHANISM: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    SaslState.MESSAGE: frozenset({ApiKey.SASL_AUTHENTICATE}),
    SaslState.REJECTED: frozenset({ApiKey.SASL_AUTHENTICATE}),
    SaslState.REFUSED: frozenset(),
}
_AGAIN = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})
"""The requests of a client whose session is over."""


class Challenge(NamedTuple):
    """A message to the client, which has to send another one."""

    message: bytes


class Proved(NamedTuple):
    """The client has proved its name."""

    user: str
    message: bytes = b""
    """The last message to the client."""
    lifetime_ms: float = inf
    """The time for which the proof is valid."""
    by_token: bool = False
    """True if the client has a delegation token instead of a password."""


class Rejection(NamedTuple):
    """The client's token is refused, which the client confirms by a last message (RFC 7628)."""

    text: str
    """For the client."""
    reason: str
    """For the log."""
    keys_may_change: bool = False
    """True if the token may be accepted once the provider's keys are fetched again."""


class LoginFailed(Exception):
    """The client is refused. The reason is for the log; the client learns that its credentials are invalid."""


class SessionExpired(ProtocolError):
    """A client sent a request after its session was over, as clients without KIP-368 do. It connects again."""


class Login(Protocol):
    """The messages of one mechanism."""

    user: str
    """The name that the client claims, empty before its first message."""

    def receive(self, message: bytes) -> Challenge | Proved | Rejection:
        """Return the next message to the client, its name or its refusal; raise LoginFailed."""


class SaslSession:
    """The state of one connection."""

    __slots__ = ("_exchange", "deadline_ms", "expires_ms", "mechanism", "refused_user", "rejection", "state", "user")

    def __init__(self, now_ms: float) -> None:
        self.state = SaslState.MECHANISM
        self.mechanism = ""
        self.user: str | None = None
        """The client's name, once it was authenticated."""
        self.deadline_ms = now_ms + SASL_MS_MAX
        """When the client must have authenticated; never again once it has."""
        self.expires_ms = inf
        """When the client must authenticate again."""
        self.rejection: Rejection | None = None
        """The refusal of the client's token."""
        self.refused_user = ""
        """The name that the client claimed when it was refused."""
        self._exchange: Login | None = None

    def refusal_of(self, api_key: int, now_ms: float) -> str | None:
        """Return why a request must not be handled; None if it may."""
        if self.state is SaslState.AUTHENTICATED:
            if now_ms < self.expires_ms or api_key in _AGAIN:
                return None
            return "the session is over: the client had to authenticate again (connections.max.reauth.ms)"
        if api_key in _ALLOWED[self.state]:
            return None
        return f"API key {api_key} was requested before the client had authenticated"

    @property
    def claimed_user(self) -> str:
        return "" if self._exchange is None else self._exchange.user

    def choose(self, mechanism: str, exchange: Login) -> None:
        """Begin an exchange; raise LoginFailed if the client may not change to this mechanism."""
        if self.user is not None and mechanism != self.mechanism:
            self.refuse()
            raise LoginFailed(f"the client authenticates again with {mechanism} instead of {self.mechanism}")
        self.state = TRANSITIONS[self.state, SaslEvent.MECHANISM]
        self.mechanism = mechanism
        self._exchange = exchange

    def receive(self, message: bytes) -> Challenge | Proved | Rejection:
        """Pass a message to the exchange. What it proves counts from `admit` on, a rejection from `reject` on.

        Raises LoginFailed.
        """
        if self.rejection is not None:
            raise LoginFailed(self.rejection.reason)
        assert self._exchange is not None
        step = self._exchange.receive(message)
        if isinstance(step, Challenge):
            self.state = TRANSITIONS[self.state, SaslEvent.CHALLENGE]
        elif isinstance(step, Proved) and self.user is not None and step.user != self.user:
            raise LoginFailed(f"the client authenticates again as {step.user!r} instead of {self.user!r}")
        return step

    def admit(self, proved: Proved, now_ms: float, lifetime_ms: float) -> None:
        """Let the client send all requests, for this time."""
        self.state = TRANSITIONS[self.state, SaslEvent.PROOF]
        self.user = proved.user
        self.deadline_ms = inf
        self.expires_ms = now_ms + lifetime_ms
        self._exchange = None

    def reject(self, rejection: Rejection) -> None:
        """Let the client send only the message that ends the exchange."""
        self.state = TRANSITIONS[self.state, SaslEvent.REJECTION]
        self.refused_user = self.claimed_user
        self.rejection = rejection

    def refuse(self) -> None:
        """Let the client send nothing more."""
        self.refused_user = self.claimed_user
        self.state = TRANSITIONS.get((self.state, SaslEvent.REFUSAL), SaslState.REFUSED)
        self._exchange = None
