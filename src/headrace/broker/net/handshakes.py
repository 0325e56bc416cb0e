"""TLS handshakes of new connections, which join the loop when they have ended.

A handshake costs a millisecond of CPU, so that a turn spends a limited time on them: a connection that is passed over
is still ready in the next turn. Half-open handshakes are limited in number and time.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.timers import Timer, Timers
from headrace.core.access.certificate_names import CertificateError, subject_of
from headrace.model.access import USER, Principal
from headrace.model.limits import TLS_HANDSHAKE_MS_MAX, TLS_HANDSHAKES_MAX, TLS_HANDSHAKES_TURN_MS_MAX
from headrace.model.principal_rules import PrincipalRules
from headrace.ports.clock import Clock
from headrace.ports.network import READABLE, WRITABLE, Network, ServerTls, TlsRefused, Token


class HandshakeLoop(Protocol):
    """The loop, as handshakes use it."""

    @property
    def turn_began_ms(self) -> float: ...

    def attach(self, token: Token, handle: Callable[[int], None]) -> None: ...
    def detach(self, token: Token) -> None: ...
    def join(self, connection: Connection) -> None:
        """Serve a connection whose handshake has ended."""

    def give_up(self, connection: Connection) -> None:
        """Close a connection that did not join."""

    def read_again(self, connection: Connection) -> None:
        """Receive from a connection in the next turn, without an event of the network."""


class Handshakes:
    """Set `tls` and `rules` to have later connections use others."""

    def __init__(
        self,
        tls: ServerTls,
        rules: PrincipalRules,
        *,
        network: Network,
        timers: Timers,
        clock: Clock,
        metrics: Metrics,
        logger: NodeLogger,
    ) -> None:
        self.tls = tls
        self.rules = rules
        self._network = network
        self._timers = timers
        self._clock = clock
        self._metrics = metrics
        self._logger = logger
        self.on_login: Callable[[Connection, str], None] = lambda connection, reason: None
        """Called for a client with a certificate that was admitted, and, with the reason, for one that was refused."""
        self._running: dict[Connection, Timer] = {}
        """With the timer of each one's time limit."""
        self._turn_ms = 0.0
        """Time that handshakes have taken in the turn that began at `_turn_began_ms`."""
        self._turn_began_ms = -1.0

    def begin(self, connection: Connection, loop: HandshakeLoop) -> None:
        """Begin the handshake of an accepted connection."""
        if len(self._running) >= TLS_HANDSHAKES_MAX:
            self._refuse(next(iter(self._running)), loop, f"{TLS_HANDSHAKES_MAX} newer handshakes are not over either")
        tls = self.tls.wrap(connection.transport, lambda: loop.read_again(connection))
        connection.transport = connection.tls = tls
        self._running[connection] = self._timers.after(TLS_HANDSHAKE_MS_MAX, lambda: self._expire(connection, loop))
        loop.attach(connection.token, partial(self._continue, connection, loop))

    def _continue(self, connection: Connection, loop: HandshakeLoop, _event: int) -> None:
        began_ms = self._clock.monotonic_ms()
        if loop.turn_began_ms != self._turn_began_ms:
            self._turn_began_ms, self._turn_ms = loop.turn_began_ms, 0.0
        elif self._turn_ms >= TLS_HANDSHAKES_TURN_MS_MAX:
            return
        tls = connection.tls
        assert tls is not None
        try:
            has_ended = tls.handshake()
        except TlsRefused as refused:
            self._refuse(connection, loop, str(refused))
            return
        except OSError as error:
            self._refuse(connection, loop, f"the connection broke: {error.strerror or error}")
            return
        finally:
            self._turn_ms += self._clock.monotonic_ms() - began_ms
        if has_ended:
            self._join(connection, loop, tls.certificate)
        else:
            self._network.watch(connection.token, WRITABLE if tls.wants_send else READABLE)

    def _join(self, connection: Connection, loop: HandshakeLoop, certificate: bytes | None) -> None:
        if certificate is not None:
            try:
                subject = subject_of(certificate)
            except CertificateError as error:
                self._refuse(connection, loop, f"the client's certificate cannot be read: {error}")
                return
            name = self.rules.name_of(subject)
            if name is None:
                self._refuse(connection, loop, f"no rule of ssl.principal.mapping.rules matches {subject}")
                return
            connection.principal = Principal(USER, name)
            self.on_login(connection, "")
        self._timers.cancel(self._running.pop(connection))
        loop.detach(connection.token)
        self._metrics.tls_handshakes += 1
        loop.join(connection)

    def _expire(self, connection: Connection, loop: HandshakeLoop) -> None:
        self._refuse(connection, loop, f"it was not over within {TLS_HANDSHAKE_MS_MAX // 1000} s")

    def _refuse(self, connection: Connection, loop: HandshakeLoop, reason: str) -> None:
        self._metrics.tls_handshakes_failed += 1
        self._logger.info(
            "TLS handshake failed",
            peer=connection.transport.peer_address,
            listener=connection.listener_name,
            reason=reason,
        )
        self.on_login(connection, reason)
        self._end(connection, loop)

    def _end(self, connection: Connection, loop: HandshakeLoop) -> None:
        self._timers.cancel(self._running.pop(connection))
        loop.detach(connection.token)
        loop.give_up(connection)

    def close(self, loop: HandshakeLoop) -> None:
        """End the handshakes that are not over."""
        for connection in tuple(self._running):
            self._end(connection, loop)
