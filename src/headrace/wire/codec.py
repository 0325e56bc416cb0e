"""From a frame's bytes to a message and back: the steps all generated codecs share.

Readers and writers are tuples with one function per version; every API is known from version 0.
"""

import struct
from collections.abc import Sequence
from typing import TypeVar

from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.primitives.reading import MALFORMED, Reader
from headrace.wire.primitives.writing import Writer

T = TypeVar("T")

UNWRITABLE = (struct.error, TypeError, AttributeError, UnicodeEncodeError, OverflowError)
"""What a value of the wrong type or range raises before it is turned into a ProtocolError."""


def decode(readers: Sequence[Reader[T]], name: str, buffer: Buffer, position: int, end: int, version: int) -> T:
    """The message in `buffer[position:end]`. Its bytes are copied once, so nothing is held.

    Bytes behind it are passed over, as Kafka does: librdkafka's Metadata request for all topics carries three.
    """
    _check_bounds(buffer, position, end)
    return _decode(readers, name, bytes(buffer[position:end]), version)


def decode_view(readers: Sequence[Reader[T]], name: str, buffer: Buffer, position: int, end: int, version: int) -> T:
    """Like `decode`, but record batches in the message are views of `buffer`."""
    _check_bounds(buffer, position, end)
    return _decode(readers, name, memoryview(buffer)[position:end], version)


def encode(writers: Sequence[Writer[T]], name: str, message: T, version: int) -> bytes:
    """The bytes of the message, without a header. Fields that the version does not have are left out."""
    if not 0 <= version < len(writers):
        raise ProtocolError(f"{name} has no version {version}")
    parts: list[Buffer] = []
    try:
        writers[version](parts.append, message)
    except UNWRITABLE as error:
        raise ProtocolError(f"{name} version {version} cannot carry this message: {error}") from error
    return b"".join(parts)


def _check_bounds(buffer: Buffer, position: int, end: int) -> None:
    if not 0 <= position <= end <= len(buffer):
        raise ProtocolError(f"bytes {position} to {end} are not in a buffer of {len(buffer)}")


def _decode(readers: Sequence[Reader[T]], name: str, body: Buffer, version: int) -> T:
    if not 0 <= version < len(readers):
        raise ProtocolError(f"{name} has no version {version}")
    try:
        message, _stop = readers[version](body, 0)
    except MALFORMED as error:
        raise ProtocolError(f"{name} version {version} ends too early or is not well formed: {error}") from error
    return message
