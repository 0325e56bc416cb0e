"""One direction of a virtual connection: ordered bytes, delivered in slices as the seed draws."""

from collections import deque

from headrace.sim.entropy import SeededEntropy

WINDOW_BYTES_MAX = 256 * 1024
"""Bytes that a writer may have in flight before it would block."""
TINY_SLICE_BYTES_MAX = 16
EIGHTHS = 8
WHOLE_EIGHTHS = 4
"""The number out of eight deliveries that bring everything; the others bring a tiny slice, any slice, or nothing
yet.
"""


class Stream:
    """The writer sends bytes, `deliver` lets some arrive, the reader takes those that have arrived."""

    __slots__ = (
        "_arrived",
        "_delivered",
        "_ends",
        "_frame_start",
        "_put",
        "finished",
        "is_reset",
        "on_the_way",
        "stalled",
    )

    def __init__(self) -> None:
        self.on_the_way = bytearray()
        self._arrived = bytearray()
        self._put = 0
        self._delivered = 0
        self._frame_start = 0
        self._ends: deque[int] = deque()
        self.finished = False
        """The writer sends no more (FIN)."""
        self.is_reset = False
        self.stalled = False
        """Nothing arrives while this is set: a blocked link or a reader that does not read."""

    def room(self) -> int:
        return WINDOW_BYTES_MAX - len(self.on_the_way) - len(self._arrived)

    def put(self, payload: bytes) -> None:
        assert not self.finished, "a finished stream takes no more bytes"
        self.on_the_way += payload
        self._put += len(payload)
        self._ends.append(self._put)

    def take(self, length: int) -> bytes:
        taken = bytes(self._arrived[:length])
        del self._arrived[:length]
        return taken

    def waiting(self) -> int:
        return len(self._arrived)

    def at_end(self) -> bool:
        return self.finished and not self.on_the_way and not self._arrived

    def end_is_here(self) -> bool:
        """Return whether the end has arrived, although earlier bytes may not have been read."""
        return self.finished and not self.on_the_way

    def is_moving(self) -> bool:
        return bool(self.on_the_way) and not self.stalled

    def is_within_a_frame(self) -> bool:
        """Return whether the arrived bytes end inside of bytes that were sent at once."""
        return self._frame_start < self._delivered

    def reset(self) -> None:
        self.on_the_way.clear()
        self._arrived.clear()
        self.finished = True
        self.is_reset = True

    def deliver(self, entropy: SeededEntropy, whole_eighths: int = WHOLE_EIGHTHS) -> bytes:
        """Deliver a slice, perhaps an empty one; return its description for the trace."""
        if not self.is_moving():
            return b""
        length = _drawn_slice_length(len(self.on_the_way), entropy, whole_eighths)
        delivered = bytes(self.on_the_way[:length])
        del self.on_the_way[:length]
        self._arrived += delivered
        self._delivered += length
        ends = self._ends
        while ends and ends[0] <= self._delivered:
            self._frame_start = ends.popleft()
        return delivered


def _drawn_slice_length(length: int, entropy: SeededEntropy, whole_eighths: int) -> int:
    draw = entropy.below(EIGHTHS)
    if draw < whole_eighths:
        return length
    if draw < EIGHTHS - 2:
        return min(length, 1 + entropy.below(TINY_SLICE_BYTES_MAX))
    if draw < EIGHTHS - 1:
        return 1 + entropy.below(length)
    return 0
