"""Makes changed access rules count on connections that are open already."""

from collections.abc import Iterator
from itertools import islice

from headrace.broker.access import Access
from headrace.broker.client_connections import ClientConnections
from headrace.broker.net.connection import Connection
from headrace.broker.partitions.reader import RunningFetch
from headrace.broker.partitions.scan_leases import ScanLeases
from headrace.broker.timers import Timers

FETCHES_CHECKED_PER_TURN = 500
"""Connections whose parked fetches are checked in one turn."""


class AccessChanges:
    """Follows the rules: no request is let through because an earlier one was, and parked ones are checked again.

    Produce requests that equal an earlier one are checked as if they were the first. A parked fetch of a topic that the
    client may no longer read is answered at once, and scan leases of such topics end.
    """

    def __init__(self, access: Access, connections: ClientConnections, scans: ScanLeases, timers: Timers) -> None:
        self._access = access
        self._connections = connections
        self._scans = scans
        self._timers = timers
        self._unchecked: Iterator[Connection] = iter(())
        self._is_due = False

    def rules_changed(self) -> None:
        self._access.rules_changed()
        open_now = self._connections.open()
        for connection in open_now:
            connection.produce_shapes.clear()
        # Connections that an earlier change has left unchecked are among these.
        self._unchecked = iter(open_now)
        if not self._is_due:
            self._is_due = True
            self._timers.next_turn(self._step)

    def _step(self) -> None:
        """Check the parked fetches of some connections, then those of the others, then the leases."""
        checked = list(islice(self._unchecked, FETCHES_CHECKED_PER_TURN))
        for connection in checked:
            for parked in tuple(connection.parked):
                if isinstance(parked, RunningFetch):
                    parked.check_access()
        self._is_due = len(checked) == FETCHES_CHECKED_PER_TURN
        if self._is_due:
            self._timers.next_turn(self._step)
        else:
            self._scans.check_access()
