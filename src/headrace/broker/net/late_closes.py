"""Connections of addresses beyond their rate: accepted, not served, and closed after a delay (KIP-612)."""

from collections.abc import Callable
from functools import partial

from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.timers import Timers
from headrace.core.quotas.entities import CONNECTION_RATE
from headrace.model.limits import LATE_CLOSES_MAX


class LateCloses:
    """They count as connections of clients until they are closed, so that the delay costs no descriptors of others."""

    def __init__(self, timers: Timers, metrics: Metrics, close: Callable[[Connection], None]) -> None:
        self._timers = timers
        self._metrics = metrics
        self._close = close
        self._waiting: dict[Connection, None] = {}

    def add(self, connection: Connection, delay_ms: float) -> None:
        """Close the connection when its address may open another one, so that its client does not try faster."""
        self._metrics.connections_refused += 1
        self._metrics.throttled_requests[CONNECTION_RATE] += 1
        self._metrics.throttled_ms[CONNECTION_RATE] += delay_ms
        self._waiting[connection] = None
        if len(self._waiting) > LATE_CLOSES_MAX:
            self._end(next(iter(self._waiting)))
        self._timers.after(delay_ms, partial(self._end, connection))

    def end_all(self) -> None:
        for connection in tuple(self._waiting):
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        if connection in self._waiting:
            del self._waiting[connection]
            self._close(connection)
