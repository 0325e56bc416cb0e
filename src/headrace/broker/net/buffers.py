"""Buffers for large frames: pooled and reused, because a fresh one per frame costs a third of the broker's CPU."""

SMALLEST_CLASS_BITS = 16


class BufferPool:
    """Buffers in sizes of powers of two. What is lent and what is kept for reuse are bounded apart."""

    def __init__(self, *, lent_bytes_max: int, kept_bytes_max: int) -> None:
        self._lent_bytes_max = lent_bytes_max
        self._kept_bytes_max = kept_bytes_max
        self._kept: dict[int, list[memoryview]] = {}
        self._kept_bytes = 0
        self.lent_bytes = 0
        self.returns = 0
        """How often a buffer came back: whoever was refused one may try again when this has moved."""

    def take(self, size: int) -> memoryview | None:
        """A buffer of at least `size` bytes, or None when as much is lent as may be."""
        return self._lend(size, self.lent_bytes)

    def take_larger(self, buffer: memoryview, size: int) -> memoryview | None:
        """As `take`, for one that will come back as soon as its content was copied."""
        return self._lend(size, self.lent_bytes - len(buffer))

    def _lend(self, size: int, others_bytes: int) -> memoryview | None:
        room = 1 << max(SMALLEST_CLASS_BITS, (size - 1).bit_length())
        # One buffer may always be lent, so that a frame within the frame limit never waits for ever.
        if others_bytes and others_bytes + room > self._lent_bytes_max:
            return None
        self.lent_bytes += room
        kept = self._kept.get(room)
        if kept:
            self._kept_bytes -= room
            return kept.pop()
        return memoryview(bytearray(room))

    def give_back(self, buffer: memoryview) -> None:
        room = len(buffer)
        self.lent_bytes -= room
        self.returns += 1
        if self._kept_bytes + room <= self._kept_bytes_max:
            self._kept_bytes += room
            self._kept.setdefault(room, []).append(buffer)
