"""Accepts the connections of some listeners, a limited number in each turn and, of clients, within their rates."""

from collections.abc import Callable
from typing import Protocol

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.net.handshakes import HandshakeLoop, Handshakes
from headrace.broker.net.late_closes import LateCloses
from headrace.broker.timers import Timers
from headrace.core.quotas.accept_rates import AcceptRates
from headrace.model.addresses import canonical_host
from headrace.model.limits import CONNECTIONS_ACCEPTED_PER_TURN_MAX
from headrace.ports.network import READABLE, ListeningSocket, Token

ACCEPT_PAUSE_MS = 100
"""Time for which a listener rests when the process has no file descriptor for another connection."""
RATE_PAUSE_MS_MIN = 5.0
"""The shortest time for which a listener rests that is beyond its rate: then it accepts several connections at once."""


class AcceptingLoop(HandshakeLoop, Protocol):
    """The loop, as an acceptor uses it."""

    dirty: list[Connection]

    def watch(self, token: Token, interest: int) -> None: ...


class ConnectionAcceptor:
    def __init__(
        self,
        loop: AcceptingLoop,
        *,
        timers: Timers,
        metrics: Metrics,
        logger: NodeLogger,
        rates: AcceptRates | None = None,
    ) -> None:
        self._loop = loop
        self._rates = rates
        self._late_closes = LateCloses(timers, metrics, loop.give_up)
        self._timers = timers
        self._metrics = metrics
        self._logger = logger
        self._listeners: dict[int, ListeningSocket] = {}

    def add(
        self,
        listener: ListeningSocket,
        name: str,
        admit: Callable[[Connection], bool],
        handshakes: Handshakes | None = None,
    ) -> None:
        """Accept from this listener; a connection that `admit` refuses is closed."""
        self._listeners[listener.token] = listener
        self._loop.attach(listener.token, lambda _event: self._accept_from(listener, name, admit, handshakes))

    def close(self) -> None:
        """Close the listeners, and what they accepted beyond a rate; the other connections stay."""
        self._late_closes.end_all()
        for listener in self._listeners.values():
            self._loop.detach(listener.token)
            listener.close()
        self._listeners.clear()

    def _accept_from(
        self,
        listener: ListeningSocket,
        name: str,
        admit: Callable[[Connection], bool],
        handshakes: Handshakes | None,
    ) -> None:
        loop, rates = self._loop, self._rates
        for _ in range(CONNECTIONS_ACCEPTED_PER_TURN_MAX):
            wait_ms = rates.wait_ms(name, loop.turn_began_ms) if rates is not None else 0.0
            if wait_ms:
                self._metrics.accept_pauses += 1
                self._pause(listener, max(wait_ms, RATE_PAUSE_MS_MIN))
                return
            try:
                transport = listener.accept()
            except OSError as error:
                self._logger.warning("cannot accept connections; retrying", listener=name, error=str(error))
                self._pause(listener, ACCEPT_PAUSE_MS)
                return
            if transport is None:
                return
            connection = Connection(transport, name, loop.dirty, loop.turn_began_ms)
            if rates is not None:
                rates.accepted(name, loop.turn_began_ms)
            if not admit(connection):
                self._metrics.connections_refused += 1
                transport.close()
            elif self._closes_late(connection):
                continue
            elif handshakes is not None:
                handshakes.begin(connection, loop)
            else:
                loop.join(connection)

    def _closes_late(self, connection: Connection) -> bool:
        """Return whether the address of the connection is beyond its rate, so that it is closed after a delay."""
        if self._rates is None:
            return False
        wait_ms = self._rates.admit(canonical_host(connection.peer_host), self._loop.turn_began_ms)
        if wait_ms:
            self._late_closes.add(connection, wait_ms)
        return bool(wait_ms)

    def _pause(self, listener: ListeningSocket, pause_ms: float) -> None:
        """Accept nothing at the listener for a while."""
        self._loop.watch(listener.token, 0)
        self._timers.after(pause_ms, lambda: self._listen_again(listener))

    def _listen_again(self, listener: ListeningSocket) -> None:
        if listener.token in self._listeners:
            self._loop.watch(listener.token, READABLE)
