"""Write the primitives: each `write_*` passes its bytes to `write`, in practice the `append` of a list joined once.

A value that the protocol cannot carry (a string too long, a number out of range, a UUID that is not 16 bytes) raises.
"""

import struct
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple, TypeVar

from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import INT16, INT32, STRING_BYTES_MAX, Buffer

T = TypeVar("T")
Write = Callable[[Buffer], object]
Writer = Callable[[Write, T], None]

NO_TAGS = b"\0"
_NULL_INT8 = b"\xff"
_PRESENT = b"\x01"
_NULL_INT16 = b"\xff\xff"
_NULL_INT32 = b"\xff\xff\xff\xff"
_COMPACT_NULL = b"\0"
_SMALL_VARINTS = tuple(bytes((value,)) for value in range(0x80))

SHORT_ARRAY_ITEMS_MAX = 16
"""An array of at most this many items is written at once, even where long ones are deferred."""


class LongArray(NamedTuple):
    """Items that are not written yet, at their place in the message."""

    values: Sequence[Any]
    each: Writer[Any]


class Pieces(list[Buffer | LongArray]):
    """The written parts of a message: if its `append` is the `write` function, long arrays are deferred."""

    __slots__ = ("has_long_arrays",)

    def __init__(self) -> None:
        self.has_long_arrays = False

    def put_off(self, values: Sequence[T], each: Writer[T]) -> None:
        self.has_long_arrays = True
        self.append(LongArray(values, each))


def unsigned_varint(value: int) -> bytes:
    """Encode up to 32 bits, seven per byte, lowest first."""
    if 0 <= value < 0x80:
        return _SMALL_VARINTS[value]
    if not 0 <= value <= 0xFFFF_FFFF:
        raise ProtocolError(f"{value} does not fit an unsigned varint")
    return _base128(value)


def varint(value: int) -> bytes:
    """Encode a signed 32-bit number in zigzag form."""
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise ProtocolError(f"{value} does not fit a varint")
    return _base128((value << 1) ^ (value >> 31))


def varlong(value: int) -> bytes:
    """Encode a signed 64-bit number in zigzag form."""
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ProtocolError(f"{value} does not fit a varlong")
    return _base128((value << 1) ^ (value >> 63))


def _base128(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def uuid(value: bytes) -> bytes:
    """Return the value, which must be 16 bytes: struct would pad or truncate it silently."""
    if len(value) != 16:
        raise ProtocolError(f"a UUID has 16 bytes, not {len(value)}")
    return value


def present(value: T | None) -> T:
    """Return the value of a field that may be null in other versions, but not in this one."""
    if value is None:
        raise ProtocolError("null in a field that this version requires")
    return value


# strings and bytes


def write_string(write: Write, value: str) -> None:
    encoded = value.encode()
    if len(encoded) > STRING_BYTES_MAX:
        raise ProtocolError(f"a string of {len(encoded)} bytes, the limit is {STRING_BYTES_MAX}")
    write(INT16.pack(len(encoded)))
    write(encoded)


def write_nullable_string(write: Write, value: str | None) -> None:
    if value is None:
        write(_NULL_INT16)
    else:
        write_string(write, value)


def write_compact_string(write: Write, value: str) -> None:
    encoded = value.encode()
    if len(encoded) > STRING_BYTES_MAX:
        raise ProtocolError(f"a string of {len(encoded)} bytes, the limit is {STRING_BYTES_MAX}")
    write(unsigned_varint(len(encoded) + 1))
    write(encoded)


def write_compact_nullable_string(write: Write, value: str | None) -> None:
    if value is None:
        write(_COMPACT_NULL)
    else:
        write_compact_string(write, value)


def write_bytes(write: Write, value: Buffer) -> None:
    write(INT32.pack(len(value)))
    write(value)


def write_nullable_bytes(write: Write, value: Buffer | None) -> None:
    if value is None:
        write(_NULL_INT32)
    else:
        write_bytes(write, value)


def write_compact_bytes(write: Write, value: Buffer) -> None:
    write(unsigned_varint(len(value) + 1))
    write(value)


def write_compact_nullable_bytes(write: Write, value: Buffer | None) -> None:
    if value is None:
        write(_COMPACT_NULL)
    else:
        write_compact_bytes(write, value)


def write_uuid(write: Write, value: bytes) -> None:
    write(uuid(value))


# arrays


def write_array(write: Write, values: Sequence[T], each: Writer[T]) -> None:
    write(INT32.pack(len(values)))
    _write_items(write, values, each)


def write_nullable_array(write: Write, values: Sequence[T] | None, each: Writer[T]) -> None:
    if values is None:
        write(_NULL_INT32)
    else:
        write_array(write, values, each)


def write_compact_array(write: Write, values: Sequence[T], each: Writer[T]) -> None:
    write(unsigned_varint(len(values) + 1))
    _write_items(write, values, each)


def write_compact_nullable_array(write: Write, values: Sequence[T] | None, each: Writer[T]) -> None:
    if values is None:
        write(_COMPACT_NULL)
    else:
        write_compact_array(write, values, each)


def _write_items(write: Write, values: Sequence[T], each: Writer[T]) -> None:
    if len(values) > SHORT_ARRAY_ITEMS_MAX:
        pieces = getattr(write, "__self__", None)
        if isinstance(pieces, Pieces):
            pieces.put_off(values, each)
            return
    for value in values:
        each(write, value)


def write_numbers(write: Write, values: Sequence[int], layout: Struct) -> None:
    write(INT32.pack(len(values)))
    write(struct.pack(f">{len(values)}{layout.format[1:]}", *values))


def write_nullable_numbers(write: Write, values: Sequence[int] | None, layout: Struct) -> None:
    if values is None:
        write(_NULL_INT32)
    else:
        write_numbers(write, values, layout)


def write_compact_numbers(write: Write, values: Sequence[int], layout: Struct) -> None:
    write(unsigned_varint(len(values) + 1))
    write(struct.pack(f">{len(values)}{layout.format[1:]}", *values))


def write_compact_nullable_numbers(write: Write, values: Sequence[int] | None, layout: Struct) -> None:
    if values is None:
        write(_COMPACT_NULL)
    else:
        write_compact_numbers(write, values, layout)


def write_nullable_struct(write: Write, value: T | None, each: Writer[T]) -> None:
    if value is None:
        write(_NULL_INT8)
    else:
        write(_PRESENT)
        each(write, value)


# tagged fields


def write_tags(write: Write, tagged: Sequence[tuple[int, bytes]]) -> None:
    """Write the tagged fields that are present, in ascending order of their tags."""
    write(unsigned_varint(len(tagged)))
    for tag, value in tagged:
        write(unsigned_varint(tag))
        write(unsigned_varint(len(value)))
        write(value)
