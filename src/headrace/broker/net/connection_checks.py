"""Closes connections that exceed the limits of time: idle ones, and peers that do not take their responses."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.net.connection_limits import ConnectionLimits
from headrace.broker.net.open_connections import OpenConnections
from headrace.broker.timers import Timers

CONNECTION_CHECK_INTERVAL_MS = 1000
CONNECTIONS_CHECKED_PER_TURN = 2_000


class CheckedLoop(Protocol):
    """The loop, as the checks use it."""

    @property
    def turn_began_ms(self) -> float: ...

    def close(self, connection: Connection) -> None: ...


class ConnectionChecks:
    def __init__(
        self,
        loop: CheckedLoop,
        connections: OpenConnections,
        limits: ConnectionLimits,
        *,
        timers: Timers,
        metrics: Metrics,
        before: Callable[[], None],
    ) -> None:
        """`before` is called before every round of checks."""
        self._loop = loop
        self._connections = connections
        self._limits = limits
        self._timers = timers
        self._metrics = metrics
        self._before = before
        timers.after(CONNECTION_CHECK_INTERVAL_MS, self._check_all)

    def _check_all(self) -> None:
        self._timers.after(CONNECTION_CHECK_INTERVAL_MS, self._check_all)
        self._before()
        self._check_some(iter(self._connections.all()))

    def _check_some(self, connections: Iterator[Connection]) -> None:
        now_ms, checked = self._loop.turn_began_ms, 0
        for connection in islice(connections, CONNECTIONS_CHECKED_PER_TURN):
            checked += 1
            if connection.sasl is not None and connection.sasl.expires_ms < now_ms:
                connection.produce_shapes.clear()  # the next request is handled in full, and refused
                connection.produce_shape_bytes = 0
            if not connection.closed and self._limits.are_exceeded(connection, now_ms):
                self._metrics.connections_timed_out += 1
                self._loop.close(connection)
        if checked == CONNECTIONS_CHECKED_PER_TURN:
            self._timers.next_turn(lambda: self._check_some(connections))
