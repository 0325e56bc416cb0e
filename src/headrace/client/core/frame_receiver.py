"""Assemble frames from the bytes of one connection; large ones are received in place, without a copy.

`room` returns the buffer for the next bytes while a large frame is arriving; `filled` takes their number. Other bytes
go through `take`. A large frame is lent out in place, and its buffer is reused once no memoryview refers to it.
"""

from struct import Struct

from headrace.client.errors import BadResponse
from headrace.wire.frames import SIZE_BYTES
from headrace.wire.primitives.layouts import Buffer

LARGE_BYTES_MIN = 16 * 1024
"""Frames from this size on have their own buffer."""

GROWTH_BYTES = 2 * 1024 * 1024
"""A buffer begins with at most this size and grows as it is filled: an announced size alone takes no memory."""

SPARES_MAX = 3
"""Buffers kept for reuse: one is read by the application, one is being filled, one is between."""

SPARE_BYTES_MAX = 8 * 1024 * 1024
"""Larger buffers are not kept."""

_SIZE = Struct(">i")


class Incoming:
    __slots__ = ("_address", "_filled", "_frame_bytes_max", "_large", "_lent", "_size", "_small", "_spares")

    def __init__(self, address: str, frame_bytes_max: int) -> None:
        self._address = address
        self._frame_bytes_max = frame_bytes_max
        self._small = b""
        """The beginning of a small frame."""
        self._large: bytearray | None = None
        self._size = self._filled = 0
        """Announced and received bytes of the large frame."""
        self._lent: memoryview | None = None
        """The buffer view that was returned last; released before the next: a buffer with a view cannot grow."""
        self._spares: list[bytearray] = []

    def allow(self, frame_bytes_max: int) -> None:
        """Change the largest frame that is accepted, for frames that have not begun."""
        self._frame_bytes_max = frame_bytes_max

    def room(self) -> memoryview | None:
        """Return the buffer to receive into; None if no large frame is arriving."""
        large = self._large
        if large is None:
            return None
        self._take_back()
        if self._filled == len(large):
            large.extend(bytes(min(self._size - len(large), len(large))))
        with memoryview(large) as whole:
            self._lent = whole[self._filled : self._size]
        return self._lent

    def filled(self, count: int) -> list[Buffer]:
        """Note that bytes were received into the room, which must not be used any more."""
        assert self._large is not None
        self._take_back()
        self._filled += count
        if self._filled < self._size:
            return []
        frame = memoryview(self._large)[: self._size]
        if len(self._large) <= SPARE_BYTES_MAX:
            self._spares = [*self._spares[1 - SPARES_MAX :], self._large]
        self._large = None
        return [frame]

    def _take_back(self) -> None:
        if self._lent is not None:
            self._lent.release()

    def take(self, chunk: bytes | memoryview) -> list[Buffer]:
        """Return the frames that these bytes complete, without their sizes."""
        frames: list[Buffer] = []
        rest = memoryview(chunk)
        while (room := self.room()) is not None:
            count = min(len(room), len(rest))
            if not count:
                return frames
            room[:count] = rest[:count]
            frames += self.filled(count)
            rest = rest[count:]
        if self._small:
            rest = memoryview(b"".join((self._small, rest)))
        return frames + self._cut(rest)

    def _cut(self, rest: memoryview) -> list[Buffer]:
        """Split bytes into whole frames; the beginning of a large one goes to the buffer that receives the rest."""
        frames: list[Buffer] = []
        position = 0
        while len(rest) - position >= SIZE_BYTES:
            (size,) = _SIZE.unpack_from(rest, position)
            if not SIZE_BYTES <= size <= self._frame_bytes_max:
                raise BadResponse(
                    f"{self._address} announces a response of {size} bytes, allowed are "
                    f"{self._frame_bytes_max}; check that it is a Kafka broker and that this listener does "
                    "not use TLS"
                )
            begin = position + SIZE_BYTES
            if len(rest) - begin < size:
                if size >= LARGE_BYTES_MIN:
                    self._begin_large(size, rest[begin:])
                    position = len(rest)
                break
            position = begin + size
            frames.append(bytes(rest[begin:position]))
        self._small = bytes(rest[position:])
        return frames

    def _begin_large(self, size: int, beginning: memoryview) -> None:
        self._size, self._filled = size, len(beginning)
        self._large = large = self._spare(size) or bytearray(min(size, max(GROWTH_BYTES, len(beginning))))
        large[: len(beginning)] = beginning

    def _spare(self, size: int) -> bytearray | None:
        for number, spare in enumerate(self._spares):
            if len(spare) >= size and _is_free(spare):
                return self._spares.pop(number)
        return None


def _is_free(buffer: bytearray) -> bool:
    """Return whether no view of the buffer exists: while one exists, its size cannot change."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
