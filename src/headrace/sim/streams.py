"""One direction of a virtual connection: ordered bytes, delivered in pieces as the seed draws."""

from collections import deque

from headrace.sim.entropy import SeededEntropy
from headrace.sim.links import VirtualLink

WINDOW_BYTES_MAX = 256 * 1024
"""Bytes that a writer may have in flight before it would block."""
TINY_PIECE_BYTES_MAX = 16
EIGHTHS = 8
WHOLE_EIGHTHS = 4
"""The number out of eight deliveries that bring everything; the others bring a tiny piece, any piece, or nothing
yet.
"""


class Stream:
    """The writer sends bytes, `deliver` lets some arrive, the reader takes those that have arrived."""

    __slots__ = (
        "_arrivals",
        "_arrived",
        "_delivered",
        "_ends",
        "_frame_start",
        "_put",
        "finished",
        "is_reset",
        "link",
        "on_the_way",
        "reader_is_gone",
        "stalled",
    )

    def __init__(self, link: VirtualLink) -> None:
        self.link = link
        self.on_the_way = bytearray()
        self._arrived = bytearray()
        self._put = 0
        self._delivered = 0
        self._frame_start = 0
        self._ends: deque[int] = deque()
        self._arrivals: deque[tuple[float, int]] = deque()
        """When the bytes up to a position may arrive; empty on an instant link."""
        self.finished = False
        """The writer sends no more (FIN)."""
        self.is_reset = False
        self.reader_is_gone = False
        """The reader's host resets the connection when anything arrives."""
        self.stalled = False
        """Nothing arrives while this is set: a blocked link or a reader that does not read."""

    def room(self) -> int:
        return WINDOW_BYTES_MAX - len(self.on_the_way) - len(self._arrived)

    def put(self, payload: bytes) -> None:
        assert not self.finished, "a finished stream takes no more bytes"
        self.on_the_way += payload
        self._put += len(payload)
        self._ends.append(self._put)
        if self._arrivals or not self.link.is_instant:
            earliest_ms = self._arrivals[-1][0] if self._arrivals else 0.0
            self._arrivals.append((max(earliest_ms, self.link.arrival_ms()), self._put))

    def take(self, length: int) -> bytes:
        taken = bytes(self._arrived[:length])
        del self._arrived[:length]
        return taken

    def waiting(self) -> int:
        return len(self._arrived)

    def at_end(self) -> bool:
        return self.end_is_here() and not self._arrived

    def end_is_here(self) -> bool:
        """Return whether the end has arrived, although earlier bytes may not have been read."""
        return self.finished and not self.on_the_way and (self.is_reset or not self.link.is_cut)

    def is_moving(self) -> bool:
        return bool(self.on_the_way) and not self.stalled and not self.link.is_cut

    def is_within_a_frame(self) -> bool:
        """Return whether the arrived bytes end inside of bytes that were sent at once."""
        return self._frame_start < self._delivered

    def reset(self) -> None:
        self.forget()
        self.finished = True
        self.is_reset = True

    def forget(self) -> None:
        """Lose all bytes that were not read."""
        self.on_the_way.clear()
        self._arrived.clear()
        self._arrivals.clear()
        self._delivered = self._put

    def deliver(self, entropy: SeededEntropy, whole_eighths: int = WHOLE_EIGHTHS) -> bytes:
        """Deliver a piece, perhaps an empty one; return it for the trace."""
        available = self._available() if self.is_moving() else 0
        if not available:
            return b""
        length = _drawn_piece_length(available, entropy, whole_eighths)
        delivered = bytes(self.on_the_way[:length])
        del self.on_the_way[:length]
        self._arrived += delivered
        self._delivered += length
        ends = self._ends
        while ends and ends[0] <= self._delivered:
            self._frame_start = ends.popleft()
        return delivered

    def _available(self) -> int:
        """Return the number of bytes that may arrive by now."""
        arrivals, now_ms = self._arrivals, self.link.now_ms
        while arrivals and arrivals[0][1] <= self._delivered:
            arrivals.popleft()
        if not arrivals:
            return len(self.on_the_way)
        return max((end for due_ms, end in arrivals if due_ms <= now_ms), default=self._delivered) - self._delivered


def _drawn_piece_length(length: int, entropy: SeededEntropy, whole_eighths: int) -> int:
    draw = entropy.below(EIGHTHS)
    if draw < whole_eighths:
        return length
    if draw < EIGHTHS - 2:
        return min(length, 1 + entropy.below(TINY_PIECE_BYTES_MAX))
    if draw < EIGHTHS - 1:
        return 1 + entropy.below(length)
    return 0
