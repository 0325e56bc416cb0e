"""One direction of a virtual connection: bytes in order, cut into slices as the seed draws."""

from headrace.sim.entropy import SeededEntropy

WINDOW_BYTES_MAX = 256 * 1024
"""How much a writer may have under way before it would block."""
TINY_SLICE_BYTES_MAX = 16


class Stream:
    """The writer puts bytes on the way, `deliver` lets some arrive, the reader takes what has arrived."""

    __slots__ = ("_arrived", "_on_the_way", "finished", "is_reset", "stalled")

    def __init__(self) -> None:
        self._on_the_way = bytearray()
        self._arrived = bytearray()
        self.finished = False
        """The writer sends no more (FIN)."""
        self.is_reset = False
        self.stalled = False
        """Nothing arrives while it is set: a clogged link or a reader that does not read."""

    def room(self) -> int:
        return WINDOW_BYTES_MAX - len(self._on_the_way) - len(self._arrived)

    def put(self, payload: bytes) -> None:
        assert not self.finished, "a finished stream takes no more bytes"
        self._on_the_way += payload

    def take(self, length: int) -> bytes:
        taken = bytes(self._arrived[:length])
        del self._arrived[:length]
        return taken

    def waiting(self) -> int:
        return len(self._arrived)

    def at_end(self) -> bool:
        return self.finished and not self._on_the_way and not self._arrived

    def is_moving(self) -> bool:
        return bool(self._on_the_way) and not self.stalled

    def reset(self) -> None:
        self._on_the_way.clear()
        self._arrived.clear()
        self.finished = True
        self.is_reset = True

    def deliver(self, entropy: SeededEntropy) -> bytes:
        """Let a slice arrive, perhaps an empty one; what it was, for the trace."""
        if not self.is_moving():
            return b""
        length = _drawn_slice_length(len(self._on_the_way), entropy)
        delivered = bytes(self._on_the_way[:length])
        del self._on_the_way[:length]
        self._arrived += delivered
        return delivered


def _drawn_slice_length(length: int, entropy: SeededEntropy) -> int:
    """Half of the time all of it, else a tiny slice, any slice, or nothing yet."""
    draw = entropy.below(8)
    if draw < 4:
        return length
    if draw < 6:
        return min(length, 1 + entropy.below(TINY_SLICE_BYTES_MAX))
    if draw < 7:
        return 1 + entropy.below(length)
    return 0
