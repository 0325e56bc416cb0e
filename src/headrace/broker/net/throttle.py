"""Throttled connections, no request of which is handled before their time is over, and the rates of new ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.net.connection import Connection
from headrace.broker.net.open_connections import OpenConnections
from headrace.broker.timers import Timers
from headrace.core.quotas.accept_rates import AcceptRates
from headrace.ports.clock import Clock

if TYPE_CHECKING:
    from headrace.broker.client_quotas import ClientQuotas, MeteredClient


class Throttle:
    def __init__(
        self,
        connections: OpenConnections,
        rates: AcceptRates,
        choose_interest: Callable[[Connection], None],
        time_clients: Callable[[ClientQuotas | None], None],
        clock: Clock,
        timers: Timers,
    ) -> None:
        """`choose_interest` stops the loop from reading a muted connection; `time_clients` has it measure the time of
        clients.
        """
        self._connections = connections
        self.rates = rates
        """Rates of new connections of clients."""
        self._choose_interest = choose_interest
        self._time_clients = time_clients
        self._clock = clock
        self._timers = timers
        self._metered: MeteredClient | None = None
        """Of new connections of clients."""

    def mute(self, connection: Connection, duration_ms: float) -> None:
        """Handle no request of the connection for a while; a longer time than the present one counts."""
        until_ms = self._clock.monotonic_ms() + duration_ms
        if connection.closed or until_ms <= connection.muted_until_ms:
            return
        connection.mute(until_ms)
        if connection.mute_timer is not None:
            self._timers.cancel(connection.mute_timer)
        connection.mute_timer = self._timers.at(until_ms, partial(self._unmute, connection))
        self._choose_interest(connection)

    def _unmute(self, connection: Connection) -> None:
        if connection.mute_timer is not None:
            self._timers.cancel(connection.mute_timer)
            connection.mute_timer = None
            connection.unmute()
            self._choose_interest(connection)

    def joined(self, connection: Connection) -> None:
        """Note a new connection of a client."""
        connection.metered = self._metered

    def time_clients(self, quotas: ClientQuotas | None) -> None:
        """Have the time charged that receiving, handling and sending take, or with None no more."""
        self._time_clients(quotas)

    def meter_clients(self, client: MeteredClient | None) -> None:
        """Give every connection of a client, and every new one, this client; handle the muted ones again."""
        self._metered = client
        for connection in self._connections.of_clients():
            connection.metered = client
            connection.produce_shapes.clear()  # the next request is handled in full, and finds its quotas
            self._unmute(connection)
