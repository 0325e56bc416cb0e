"""Limits on connections: how many clients may have, and how long one may be idle or slow."""

from typing import Protocol

from headrace.broker.net.connection import NO_PARTIAL_FRAME, Connection
from headrace.ports.network import READABLE


class ConnectionLimits:
    """Limits of what one client, and all clients together, may use."""

    __slots__ = ("connections_max", "connections_per_host_max", "idle_ms_max", "slow_ms_max")

    def __init__(
        self, *, connections_max: int, connections_per_host_max: int, idle_ms_max: float, slow_ms_max: float
    ) -> None:
        self.connections_max = connections_max
        self.connections_per_host_max = connections_per_host_max
        self.idle_ms_max = idle_ms_max
        self.slow_ms_max = slow_ms_max

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
    """The number of connections of clients, in all and by host."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.total = 0
        self.by_host: dict[str, int] = {}

    def admit(self, connection: Connection) -> bool:
        """Count the connection; return False, and count nothing, if the limits allow no other one."""
        held = self.by_host.get(connection.peer_host, 0)
        if self.total >= self.limits.connections_max or held >= self.limits.connections_per_host_max:
            return False
        self.total += 1
        self.by_host[connection.peer_host] = held + 1
        return True

    def remove(self, connection: Connection) -> None:
        self.total -= 1
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
