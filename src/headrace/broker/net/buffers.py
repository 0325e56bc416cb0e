"""Buffers for large frames: pooled and reused, because a new one per frame costs a third of the broker's CPU."""

import mmap

SMALLEST_CLASS_BITS = 16


class BufferPool:
    """Buffers in sizes of powers of two. The lent and the kept ones are limited, each and together.

    Each buffer is an anonymous mapping: its pages take memory when bytes are received into them, and go back to the
    system as soon as the pool drops it.
    """

    def __init__(self, *, lent_bytes_max: int, kept_bytes_max: int) -> None:
        self.lent_bytes_max = lent_bytes_max
        self._kept_bytes_max = kept_bytes_max
        self._kept: dict[int, list[memoryview]] = {}
        self._kept_bytes = 0
        self._unused: dict[int, int] = {}
        """By size, the smallest number of kept buffers since the last trim, which were not needed meanwhile."""
        self.lent_bytes = 0
        self.returns = 0
        """Number of buffers returned so far: a connection that was refused one may try again when it has grown."""

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes

    def take(self, size: int) -> memoryview | None:
        """Lend a buffer of at least `size` bytes; None when the limit is reached."""
        return self._lend(size, self.lent_bytes)

    def take_larger(self, buffer: memoryview, size: int) -> memoryview | None:
        """As `take`, for a buffer that is returned as soon as its content was copied."""
        return self._lend(size, self.lent_bytes - len(buffer))

    def _lend(self, size: int, others_bytes: int) -> memoryview | None:
        room = buffer_bytes(size)
        # One buffer may always be lent, so that a frame within the frame limit never waits for ever.
        if others_bytes and others_bytes + room > self.lent_bytes_max:
            return None
        self.lent_bytes += room
        kept = self._kept.get(room)
        if kept:
            self._kept_bytes -= room
            buffer = kept.pop()
            self._unused[room] = min(self._unused[room], len(kept))
            return buffer
        while self._kept_bytes and self.lent_bytes + self._kept_bytes > self.lent_bytes_max:
            self._drop(max(size for size, buffers in self._kept.items() if buffers))
        return memoryview(mmap.mmap(-1, room))

    def give_back(self, buffer: memoryview) -> None:
        room = len(buffer)
        self.lent_bytes -= room
        self.returns += 1
        kept_bytes = self._kept_bytes + room
        if kept_bytes <= self._kept_bytes_max and kept_bytes + self.lent_bytes <= self.lent_bytes_max:
            self._kept_bytes = kept_bytes
            self._kept.setdefault(room, []).append(buffer)
            self._unused.setdefault(room, 0)

    def trim(self) -> None:
        """Release to the system the kept buffers that were not lent since the last call."""
        for room, buffers in self._kept.items():
            for _ in range(self._unused[room]):
                self._drop(room)
            self._unused[room] = len(buffers)

    def _drop(self, room: int) -> None:
        buffers = self._kept[room]
        buffers.pop(0)  # the one that was not used for the longest time
        self._kept_bytes -= room
        self._unused[room] = min(self._unused[room], len(buffers))


def buffer_bytes(size: int) -> int:
    """Return the size of the buffer for a frame of `size` bytes."""
    return 1 << max(SMALLEST_CLASS_BITS, (size - 1).bit_length())
