"""One connection of the client: its target, waiting calls, calls in flight, and when it may send.

A throttled client must pause for the time that the broker requests (KIP-219), and a broker with limited sessions
requires reauthentication (KIP-368). The state of both is here; `links.py` acts on it.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from headrace.client.core.authentication import SaslExchange
from headrace.client.core.awaited_calls import NEVER, Pending, may_repeat, repeated
from headrace.client.core.connection import BrokerConnection
from headrace.client.errors import BrokerUnreachable, unreachable
from headrace.ports.network import Transport

THROTTLE_MS_MAX = 60_000
"""Longest throttle time that is honoured, whatever the broker requests."""

SESSION_SHARE = 0.9
"""The share of a session's lifetime after which the client reauthenticates."""


SILENCE_MS = 500
"""Time without a response after which a call for any broker is offered to another address."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Security(NamedTuple):
    """Security of connections: a transport around the plain one (TLS), and credentials (SASL)."""

    wrap: Callable[[Transport, str], "SecuredTransport"] | None = None
    """(transport, host name) -> transport"""

    exchange: Callable[[], SaslExchange] | None = None


class SecuredTransport(Transport, Protocol):
    def wants_send(self, has_more: bool) -> bool:
        """Return whether it has or could have bytes to send: not while the handshake waits for a response."""

    def flush(self) -> None:
        """Send pending bytes."""


PLAINTEXT = Security()


class LinkRoute(NamedTuple):
    """One connection: calls of different channels to one broker do not wait for each other."""

    address: Address
    channel: int


class Link:
    """One connection and the calls on it."""

    def __init__(self, transport: Transport, connection: BrokerConnection, now_ms: float, give_up_ms: float) -> None:
        self.transport = transport
        self.connection = connection
        self.outgoing: deque[memoryview] = deque([memoryview(connection.first_request())])
        self.waiting: deque[Pending] = deque()
        """Calls that wait until something can be sent."""
        self.sent: deque[Pending] = deque()
        self.give_up_ms = give_up_ms
        """When the connection must be ready."""
        self.patience_ms = now_ms + SILENCE_MS
        """When calls for any broker are offered to another address, if no call was responded to yet."""
        self.was_silent = False
        """True if that has happened: other addresses are preferred."""
        self.has_responded = False
        """True if a call was responded to; ApiVersions does not count."""
        self.interest = 0
        self.secured: SecuredTransport | None = None
        self.muted_until_ms = 0.0
        self.identify_ms = NEVER
        """When to reauthenticate."""

    def calls(self) -> int:
        return len(self.waiting) + len(self.sent)

    def may_send(self, now_ms: float) -> bool:
        return self.connection.is_ready and self.muted_until_ms <= now_ms

    def sends(self, pending: Pending, now_ms: float) -> None:
        """Note that a call which has a response was sent."""
        if not self.has_responded and not self.sent:
            self.patience_ms = now_ms + SILENCE_MS
        self.sent.append(pending)

    def responds(self) -> Pending:
        """Note a response; return the call that it belongs to."""
        self.has_responded, self.was_silent = True, False
        return self.sent.popleft()

    def is_silent(self, now_ms: float) -> bool:
        """Return whether calls that another address could serve have waited for a response for long enough."""
        return self.patience_ms <= now_ms and self._could_be_served_elsewhere()

    def _could_be_served_elsewhere(self) -> bool:
        if not self.connection.is_ready:
            return any(pending.is_free for pending in self.waiting)
        return not self.has_responded and any(map(may_repeat, self.sent))

    def offer(self) -> list[Pending]:
        """Return calls for another address: copies of those that were sent, or those that wait for the connection."""
        if not self.connection.is_ready:
            return self.release_free()
        copies: list[Pending] = []
        for index, pending in enumerate(self.sent):
            if may_repeat(pending):
                self.sent[index], copy = repeated(pending)
                copies.append(copy)
        return copies

    def release_free(self) -> list[Pending]:
        """Release the waiting calls for any broker, for another connection."""
        free = [pending for pending in self.waiting if pending.is_free]
        for pending in free:
            self.waiting.remove(pending)
        return free

    def expired(self, now_ms: float) -> list[Pending]:
        """Return the waiting calls whose time is over."""
        is_ready = self.connection.is_ready
        return [
            pending
            for pending in self.waiting
            if pending.deadline_ms <= now_ms or (not is_ready and pending.connect_by_ms <= now_ms)
        ]

    def became_ready(self, now_ms: float) -> None:
        self.was_silent = False
        lifetime_ms = self.connection.session_lifetime_ms
        self.identify_ms = now_ms + lifetime_ms * SESSION_SHARE if lifetime_ms > 0 else NEVER

    def identify(self, exchange: SaslExchange, give_up_ms: float) -> None:
        """Reauthenticate: calls in flight complete first, and new calls wait."""
        self.outgoing.append(memoryview(self.connection.identify(exchange)))
        self.identify_ms = self.patience_ms = NEVER
        self.give_up_ms = give_up_ms

    def throttled(self, throttle_ms: int, now_ms: float) -> None:
        self.muted_until_ms = max(self.muted_until_ms, now_ms + min(throttle_ms, THROTTLE_MS_MAX))

    def next_deadline_ms(self) -> float:
        """Return when something is due, if no event comes first."""
        deadline_ms = NEVER
        if not self.connection.is_ready:
            deadline_ms = min((self.give_up_ms, *(pending.connect_by_ms for pending in self.waiting)))
        elif self.waiting:
            deadline_ms = self.muted_until_ms
        if not (self.has_responded and self.connection.is_ready) and self._could_be_served_elsewhere():
            deadline_ms = min(deadline_ms, self.patience_ms)
        for queue in (self.waiting, self.sent):
            deadline_ms = min((deadline_ms, *(pending.deadline_ms for pending in queue)))
        return deadline_ms

    def broken(self, reason: str) -> BrokerUnreachable:
        """Return the error of the calls on it when the connection breaks."""
        if not self.connection.is_ready:
            return unreachable(self.connection.address, reason)
        return BrokerUnreachable(
            f"the connection to {self.connection.address} broke before the response ({reason}); check that the broker "
            "is running, and see its log"
        )
