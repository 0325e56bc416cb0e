"""Ready connections: those that one turn has no time for, their order in the next, and those with bytes at hand.

Connections that became ready since then are served before a part of those that wait: a client with a small request
is not queued behind a thousand that came at once, and those that wait make progress all the same.
"""

from collections.abc import Callable, Sequence

from headrace.broker.net.connection import Connection
from headrace.model.limits import EVENTS_BETWEEN_LOOKS
from headrace.ports.network import BROKEN, READABLE

Event = tuple[int, int]
"""(token, what it is ready for)."""


class Ready:
    def __init__(self) -> None:
        self._waiting: list[Event] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def with_waiting(self, fresh: Sequence[Event], is_wanted: Callable[[Event], bool]) -> list[Event]:
        """Return the order of this turn: a few new connections, a few waiting ones, and so on."""
        waiting, self._waiting = [event for event in self._waiting if is_wanted(event)], []
        known = {token for token, _ in waiting}
        fresh = [event for event in fresh if event[0] not in known]
        order: list[Event] = []
        for at in range(0, max(len(fresh), len(waiting)), EVENTS_BETWEEN_LOOKS):
            order += fresh[at : at + EVENTS_BETWEEN_LOOKS]
            order += waiting[at : at + EVENTS_BETWEEN_LOOKS]
        return order

    def put_off(self, events: Sequence[Event]) -> None:
        """Keep these events until the next turn."""
        self._waiting = [_lasting(event) for event in events]


def _lasting(event: Event) -> Event:
    """Return the events that are still valid a turn later. That a connection broke is not, because its token may
    belong to another one by then; the next poll reports it again.
    """
    return event[0], event[1] & ~BROKEN


class Buffered:
    """Connections whose transport holds received bytes, which the network does not report."""

    def __init__(self) -> None:
        self._connections: dict[Connection, None] = {}

    def __bool__(self) -> bool:
        return bool(self._connections)

    def add(self, connection: Connection) -> None:
        self._connections[connection] = None

    def with_events(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, and one for each connection that may be read and still holds bytes."""
        self._connections = {
            connection: None
            for connection in self._connections
            if not connection.closed
            and connection.interest == READABLE
            and connection.tls is not None
            and connection.tls.has_buffered
        }
        readable = {token for token, event in events if event & READABLE}
        tokens = (connection.token for connection in self._connections)
        return [*events, *((token, READABLE) for token in tokens if token not in readable)]
