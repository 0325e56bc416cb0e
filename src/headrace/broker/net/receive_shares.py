"""Shares of the receive pool: selects the large frame to evict, and the next connection, when buffers are short.

A frame counts as stalled when it has not grown by a certain part of its buffer for a while. A stalled frame is evicted
at once: the oldest one of the address that holds most. A frame that grows is evicted only for a connection that has
waited for as long, and only if the address of the frame (or, within one address, its connection) holds more than its
fair share.
"""

from collections.abc import Iterable

from headrace.broker.net.connection import Connection
from headrace.model.limits import FRAME_PROGRESS_BYTES_MIN, FRAME_PROGRESS_PARTS, FRAME_STALLED_MS


class ReceiveShares:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._holders: dict[Connection, None] = {}
        """Connections whose large frame has a buffer, in the order in which the frames began."""
        self._waiting: dict[Connection, float] = {}
        """Connections whose large frame has no buffer, or too small a buffer, with the time since when."""
        self.ended_waits = 0
        """Number of connections that got the buffer they waited for."""

    # Frames

    def began(self, connection: Connection, now_ms: float) -> None:
        if connection.peer is None:  # frames of other nodes are not evicted for clients
            self._holders[connection] = None
        connection.frame_progress_ms = now_ms
        connection.frame_progress_bytes = connection.frame_received
        self.end_wait(connection)

    def received(self, connection: Connection, now_ms: float) -> None:
        """Note the progress of a frame, if it is large enough to count."""
        assert connection.frame is not None
        needed = max(len(connection.frame) // FRAME_PROGRESS_PARTS, FRAME_PROGRESS_BYTES_MIN)
        if connection.frame_received - connection.frame_progress_bytes >= needed:
            connection.frame_progress_bytes = connection.frame_received
            connection.frame_progress_ms = now_ms

    def ended(self, connection: Connection) -> None:
        self._holders.pop(connection, None)
        self._waiting.pop(connection, None)

    # Shortage

    def to_evict(self, wanting: Connection, room: int, now_ms: float) -> Connection | None:
        """Return the connection to close so that another one gets a buffer of `room` bytes; None if it has to wait."""
        others = [holder for holder in self._holders if holder is not wanting]
        stalled_before = now_ms - FRAME_STALLED_MS
        held = _held_by_host(self._holders)
        stalled = [holder for holder in others if holder.frame_progress_ms <= stalled_before]
        if stalled:
            return min(stalled, key=lambda holder: (-held[holder.peer_host], holder.frame_progress_ms))
        if self._waiting.setdefault(wanting, now_ms) > stalled_before:
            return None
        return self._above_share(wanting, room, others, held)

    def _above_share(
        self, wanting: Connection, room: int, others: list[Connection], held: dict[str, int]
    ) -> Connection | None:
        if not others:
            return None
        own = wanting.peer_host
        hosts = len(held.keys() | {own})
        heaviest = max(held, key=held.__getitem__)
        if heaviest != own and held[heaviest] > max(held.get(own, 0) + room, self._bytes_max // hosts):
            return next(holder for holder in others if holder.peer_host == heaviest)
        largest = max(
            (holder for holder in others if holder.peer_host == own),
            key=lambda holder: _frame_bytes(holder),
            default=None,
        )
        if largest is not None and _frame_bytes(largest) > max(room, self._bytes_max // (len(others) + 1)):
            return largest
        return None

    # Waiting

    def wait(self, connection: Connection, now_ms: float) -> None:
        self._waiting.setdefault(connection, now_ms)

    def end_wait(self, connection: Connection) -> None:
        if self._waiting.pop(connection, None) is not None:
            self.ended_waits += 1

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def next_waiting(self, count_max: int) -> list[Connection]:
        """Return the connections that try again first: those of the addresses that hold least, in the order of their
        arrival.
        """
        held = _held_by_host(self._holders)
        waiting = [connection for connection in self._waiting if connection.starved]
        return sorted(waiting, key=lambda connection: held.get(connection.peer_host, 0))[:count_max]


def _frame_bytes(connection: Connection) -> int:
    return len(connection.frame) if connection.frame is not None else 0


def _held_by_host(holders: Iterable[Connection]) -> dict[str, int]:
    held: dict[str, int] = {}
    for holder in holders:
        held[holder.peer_host] = held.get(holder.peer_host, 0) + _frame_bytes(holder)
    return held
