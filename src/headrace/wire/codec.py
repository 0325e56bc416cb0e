"""Convert a frame's bytes to a message and back: the steps that all generated codecs share.

Readers and writers are tuples with one function per version, and None for a version below the first.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar, cast

from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.primitives.readers import MALFORMED, Reader
from headrace.wire.primitives.stepped import SteppedBody
from headrace.wire.primitives.writers import LongArray, Pieces, Writer

T = TypeVar("T")


class PeerCodec(Protocol):
    """The part of a codec that the asking side uses."""

    def encode_request(self, message: Any, version: int) -> bytes: ...
    def decode_response(self, buffer: Buffer, position: int, end: int, version: int) -> Any: ...


UNWRITABLE = (struct.error, TypeError, AttributeError, UnicodeEncodeError, OverflowError)
"""Exceptions for a value of the wrong type or range, before they become a ProtocolError."""


def decode(readers: Sequence[Reader[T] | None], name: str, buffer: Buffer, position: int, end: int, version: int) -> T:
    """Decode the message in `buffer[position:end]`. Its bytes are copied once, so no reference to the buffer is kept.

    A `SteppedBody`, which is a whole message, is read as far as it allows, and raises Paused there. Bytes after the
    message are ignored, as in Kafka: librdkafka's Metadata request for all topics carries three.
    """
    _check_bounds(buffer, position, end)
    body = buffer if type(buffer) is SteppedBody else bytes(buffer[position:end])
    return _decode(readers, name, body, version)


def decode_view(
    readers: Sequence[Reader[T] | None], name: str, buffer: Buffer, position: int, end: int, version: int
) -> T:
    """Decode like `decode`, but record batches in the message are views of `buffer`."""
    _check_bounds(buffer, position, end)
    return _decode(readers, name, memoryview(buffer)[position:end], version)


def encode(writers: Sequence[Writer[T] | None], name: str, message: T, version: int) -> bytes:
    """Encode the message without a header. Fields that the version does not have are left out."""
    writer = writers[version] if 0 <= version < len(writers) else None
    if writer is None:
        raise ProtocolError(f"{name} has no version {version}")
    parts: list[Buffer] = []
    try:
        writer(parts.append, message)
    except UNWRITABLE as error:
        raise ProtocolError(f"{name} version {version} cannot carry this message: {error}") from error
    return b"".join(parts)


ITEMS_PER_STEP = 100
"""Items of long arrays that one step of an encoding writes."""


class Encoding:
    """The encoding of a message with long arrays, some items per step."""

    def __init__(self, pieces: Pieces, name: str) -> None:
        self._name = name
        self._steps = self._write(pieces)
        self._step: list[Buffer] = []
        self._items = 0
        self._written: list[bytes] = []
        """The bytes of each step; joined gradually, because joining takes time too."""

    def step(self) -> bytes | None:
        """Write some more; return the bytes of the message after the last step."""
        try:
            is_written = next(self._steps, True)
        except UNWRITABLE as error:
            raise ProtocolError(f"{self._name} cannot carry this message: {error}") from error
        self._written.append(b"".join(self._step))
        self._step.clear()
        return b"".join(self._written) if is_written else None

    def _write(self, pieces: Pieces) -> Iterator[bool]:
        """Write items; return False where a step ends."""
        for piece in pieces:
            if not isinstance(piece, LongArray):
                self._step.append(piece)
                continue
            for value in piece.values:
                item = Pieces()
                piece.each(item.append, value)
                yield from self._write(item)
                self._items += 1
                if not self._items % ITEMS_PER_STEP:
                    yield False


def begin_encoding(writers: Sequence[Writer[T] | None], name: str, message: T, version: int) -> bytes | Encoding:
    """Encode like `encode`, but leave a message with long arrays to be written step by step."""
    writer = writers[version] if 0 <= version < len(writers) else None
    if writer is None:
        raise ProtocolError(f"{name} has no version {version}")
    pieces = Pieces()
    try:
        writer(pieces.append, message)
    except UNWRITABLE as error:
        raise ProtocolError(f"{name} version {version} cannot carry this message: {error}") from error
    return Encoding(pieces, name) if pieces.has_long_arrays else b"".join(cast(list[Buffer], pieces))


def _check_bounds(buffer: Buffer, position: int, end: int) -> None:
    if not 0 <= position <= end <= len(buffer):
        raise ProtocolError(f"bytes {position} to {end} are outside a buffer of {len(buffer)}")


def _decode(readers: Sequence[Reader[T] | None], name: str, body: Buffer, version: int) -> T:
    reader = readers[version] if 0 <= version < len(readers) else None
    if reader is None:
        raise ProtocolError(f"{name} has no version {version}")
    try:
        message, _stop = reader(body, 0)
    except MALFORMED as error:
        raise ProtocolError(f"{name} version {version} ends too early or is not well formed: {error}") from error
    return message
