"""What a handler is given beside the request: who asks, through which listener, and the broker to call.

A handler module holds `handle(request, ctx)` and returns the response message (or its encoded body), or
`ctx.park(...)` when the answer comes in a later turn: keep the `Parked` and call its `complete(response)` from an
event. Handlers may raise `ProtocolError` to have the connection closed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.broker.api.response_writer import Responding
from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import Connection
from headrace.broker.timers import Timer, Timers
from headrace.model.access import Operation, Principal, ResourceType
from headrace.wire.errors import ProtocolError

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


class Parked:
    """An answer of a later turn: completed once, by its event or by its deadline, whichever comes first."""

    __slots__ = ("_metrics", "_responding", "_timer", "_timers", "completed")

    def __init__(self, responding: Responding, metrics: Metrics, timers: Timers) -> None:
        self._responding = responding
        self._metrics = metrics
        self._timers = timers
        self._timer: Timer | None = None
        self.completed = False
        metrics.parked_requests += 1

    def expire_after(self, timeout_ms: float, give_up: Callable[[], object]) -> None:
        self._timer = self._timers.after(timeout_ms, lambda: self.complete(give_up()))

    def complete(self, response: object) -> None:
        if not self.completed:
            self._end()
            self._responding.respond(response)

    def abandoned(self) -> bool:
        """Nobody waits any more, the connection is gone: whoever asks need not go on."""
        closed = self._responding.answer.connection.closed
        if closed and not self.completed:
            self._end()
        return closed

    def give_up(self) -> None:
        """No answer will come: the request cannot be read."""
        self._end()

    def _end(self) -> None:
        self.completed = True
        self._metrics.parked_requests -= 1
        if self._timer is not None:
            self._timers.cancel(self._timer)


def close_for_bad_input(broker: "Broker", connection: Connection, error: ProtocolError) -> None:
    """When this turn ends: it shows in a turn in which the connection may not have been read."""
    broker.metrics.protocol_errors += 1
    peer = connection.transport.peer_address
    broker.logger.info("connection closed for bad input", peer=peer, reason=str(error))
    connection.closing = True
    connection.mark_dirty()


class RequestContext:
    __slots__ = ("_responding", "broker", "client_id", "connection", "version")

    def __init__(
        self,
        *,
        broker: "Broker",
        connection: Connection,
        version: int,
        client_id: str | None,
        responding: Responding,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.version = version
        self.client_id = client_id
        self._responding = responding

    @property
    def principal(self) -> Principal:
        return self.connection.principal

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    @property
    def throttle_time_ms(self) -> int:
        """Every response carries it; quotas will set it."""
        return 0

    def authorized(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """The one check every handler makes before it touches a resource."""
        return self.broker.access.authorize(self.principal, operation, resource_type, name)

    def respond(self, response: object) -> None:
        """Answer at once."""
        self._responding.respond(response)

    def reject(self, parked: Parked, error: ProtocolError) -> None:
        """A fault of the peer that shows in a later turn: the connection is closed when this one ends."""
        parked.give_up()
        close_for_bad_input(self.broker, self.connection, error)

    def park(self, *, timeout_ms: float | None = None, on_timeout: Callable[[], object] | None = None) -> Parked:
        """Leave this request unanswered for now; after `timeout_ms` it is answered with what `on_timeout` gives."""
        parked = Parked(self._responding, self.broker.metrics, self.broker.timers)
        if timeout_ms is not None:
            assert on_timeout is not None
            parked.expire_after(timeout_ms, on_timeout)
        return parked
