"""Limits on connections: how many clients may have, and how long one may be idle or slow."""

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from headrace.broker.net.connection import NO_PARTIAL_FRAME, Connection
from headrace.model.addresses import canonical_host
from headrace.ports.network import READABLE


class ConnectionLimits:
    """Limits of what one client, and all clients together, may use."""

    __slots__ = (
        "connections_max",
        "connections_per_host_max",
        "host_overrides",
        "idle_ms_max",
        "listener_connections_max",
        "slow_ms_max",
    )

    def __init__(
        self,
        *,
        connections_max: int,
        connections_per_host_max: int,
        host_overrides: Mapping[str, int],
        listener_connections_max: Mapping[str, int],
        idle_ms_max: float,
        slow_ms_max: float,
    ) -> None:
        """`host_overrides` are limits of single addresses, in their canonical form."""
        self.connections_max = connections_max
        self.connections_per_host_max = connections_per_host_max
        self.host_overrides = host_overrides
        self.listener_connections_max = listener_connections_max
        self.idle_ms_max = idle_ms_max
        self.slow_ms_max = slow_ms_max

    def of_host(self, host: str) -> int:
        """Return how many connections an address may have."""
        if not self.host_overrides:
            return self.connections_per_host_max
        return self.host_overrides.get(canonical_host(host), self.connections_per_host_max)

    def are_exceeded(self, connection: Connection, now_ms: float) -> bool:
        """Return whether the connection is idle, does not take its responses, does not complete a frame, or has not
        authenticated, for too long. Connections of other nodes may be idle.
        """
        slow_before = now_ms - self.slow_ms_max
        return bool(
            (connection.unsent and connection.unsent_since_ms < slow_before)
            or (
                connection.partial_since_ms != NO_PARTIAL_FRAME
                and connection.partial_since_ms < slow_before
                and connection.interest == READABLE
            )
            or (
                connection.last_active_ms < now_ms - self.idle_ms_max
                and not connection.responses
                and connection.peer is None
            )
            or (connection.sasl is not None and connection.sasl.deadline_ms < now_ms)
        )


class ClientCounts:
    """The number of connections of clients, in all, by host and by listener."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.total = 0
        self.by_host: dict[str, int] = {}
        self.by_listener: Counter[str] = Counter()

    def admit(self, connection: Connection) -> bool:
        """Count the connection; return False, and count nothing, if the limits allow no other one."""
        host, listener, limits = connection.peer_host, connection.listener_name, self.limits
        held = self.by_host.get(host, 0)
        if self.total >= limits.connections_max or held >= limits.of_host(host):
            return False
        if self.by_listener[listener] >= limits.listener_connections_max.get(listener, limits.connections_max):
            return False
        self.total += 1
        self.by_listener[listener] += 1
        self.by_host[host] = held + 1
        return True

    def remove(self, connection: Connection) -> None:
        self.total -= 1
        self.by_listener[connection.listener_name] -= 1
        held = self.by_host[connection.peer_host] - 1
        if held:
            self.by_host[connection.peer_host] = held
        else:
            del self.by_host[connection.peer_host]


class PeerAdmission(Protocol):
    """Admits connections of other nodes."""

    def admit(self, connection: Connection) -> bool:
        """Set `connection.peer`, or return False to have the connection closed."""

    def closed(self, connection: Connection) -> None: ...
