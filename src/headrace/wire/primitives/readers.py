"""Read the primitives: each `read_*` takes the bytes and a position and returns the value and the next position.

The bytes end where the message ends, so a declared length or count is checked against the remaining bytes before
anything is allocated for it. Any fault in the bytes is a ProtocolError.
"""

import struct
from collections.abc import Callable
from struct import Struct
from typing import TypeVar

from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import (
    INT8,
    INT16,
    INT32,
    STRING_BYTES_MAX,
    TAGGED_FIELD_BYTES_MAX,
    TAGGED_FIELDS_MAX,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    Buffer,
)
from headrace.wire.primitives.stepped import SteppedBody

T = TypeVar("T")
Reader = Callable[[Buffer, int], tuple[T, int]]

MALFORMED = (struct.error, IndexError, UnicodeDecodeError)
"""Exceptions for reading past the end or bad UTF-8, before they become a ProtocolError."""


def malformed(error: Exception) -> ProtocolError:
    return ProtocolError(f"the message ends too early or is not well formed: {error}")


def out_of_bounds(body: Buffer, position: int, length: int) -> ProtocolError:
    if length < 0:
        return ProtocolError(f"null or a negative length before byte {position}, where a value is required")
    return ProtocolError(f"{length} bytes declared at byte {position}, {len(body) - position} are left")


def take(body: Buffer, position: int, length: int) -> int:
    """Return the position after `length` more bytes, which must exist."""
    stop = position + length
    if length < 0 or stop > len(body):
        raise out_of_bounds(body, position, length)
    return stop


# numbers


def read_bool(body: Buffer, position: int) -> tuple[bool, int]:
    stop = take(body, position, 1)
    return body[position] != 0, stop


def read_number(body: Buffer, position: int, layout: Struct) -> tuple[int, int]:
    stop = take(body, position, layout.size)
    value: int = layout.unpack_from(body, position)[0]
    return value, stop


def read_unsigned_varint(body: Buffer, position: int) -> tuple[int, int]:
    """Read at most 32 bits, seven per byte, lowest first."""
    return _read_base128(body, position, VARINT_BYTES_MAX, 32)


def read_varint(body: Buffer, position: int) -> tuple[int, int]:
    """Read a signed 32-bit number in zigzag form."""
    value, position = read_unsigned_varint(body, position)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(body: Buffer, position: int) -> tuple[int, int]:
    """Read a signed 64-bit number in zigzag form."""
    value, position = _read_base128(body, position, VARLONG_BYTES_MAX, 64)
    return (value >> 1) ^ -(value & 1), position


def _read_base128(body: Buffer, position: int, bytes_max: int, bits: int) -> tuple[int, int]:
    try:
        byte = body[position]
        if byte < 0x80:
            return byte, position + 1
        value = byte & 0x7F
        for index in range(1, bytes_max):
            byte = body[position + index]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value >> bits:
                    break
                return value, position + index + 1
    except IndexError as error:
        raise malformed(error) from error
    raise ProtocolError(f"the varint at byte {position} has more than {bits} bits")


# strings and bytes


def read_string(body: Buffer, position: int) -> tuple[str, int]:
    try:
        length = INT16.unpack_from(body, position)[0]
        position += 2
        stop = position + length
        if length < 0 or stop > len(body):
            raise out_of_bounds(body, position, length)
        return str(body[position:stop], "utf-8"), stop
    except MALFORMED as error:
        raise malformed(error) from error


def read_nullable_string(body: Buffer, position: int) -> tuple[str | None, int]:
    try:
        if INT16.unpack_from(body, position)[0] == -1:
            return None, position + 2
    except struct.error as error:
        raise malformed(error) from error
    return read_string(body, position)


def read_compact_string(body: Buffer, position: int) -> tuple[str, int]:
    try:
        length = body[position]
        position += 1
        if length > 0x7F:
            length, position = read_unsigned_varint(body, position - 1)
        stop = position + length - 1
        if length == 0 or length > STRING_BYTES_MAX + 1 or stop > len(body):
            raise out_of_bounds(body, position, length - 1)
        return str(body[position:stop], "utf-8"), stop
    except MALFORMED as error:
        raise malformed(error) from error


def read_compact_nullable_string(body: Buffer, position: int) -> tuple[str | None, int]:
    try:
        if body[position] == 0:
            return None, position + 1
    except IndexError as error:
        raise malformed(error) from error
    return read_compact_string(body, position)


def read_records(body: Buffer, position: int) -> tuple[Buffer, int]:
    """Return a slice of `body`: a view if `body` is one."""
    length, position = read_number(body, position, INT32)
    stop = take(body, position, length)
    return body[position:stop], stop


def read_nullable_records(body: Buffer, position: int) -> tuple[Buffer | None, int]:
    length, position = read_number(body, position, INT32)
    if length == -1:
        return None, position
    stop = take(body, position, length)
    return body[position:stop], stop


def read_compact_records(body: Buffer, position: int) -> tuple[Buffer, int]:
    length, position = read_unsigned_varint(body, position)
    stop = take(body, position, length - 1)
    return body[position:stop], stop


def read_compact_nullable_records(body: Buffer, position: int) -> tuple[Buffer | None, int]:
    length, position = read_unsigned_varint(body, position)
    if length == 0:
        return None, position
    stop = take(body, position, length - 1)
    return body[position:stop], stop


def read_bytes(body: Buffer, position: int) -> tuple[bytes, int]:
    value, position = read_records(body, position)
    return bytes(value), position


def read_nullable_bytes(body: Buffer, position: int) -> tuple[bytes | None, int]:
    value, position = read_nullable_records(body, position)
    return None if value is None else bytes(value), position


def read_compact_bytes(body: Buffer, position: int) -> tuple[bytes, int]:
    value, position = read_compact_records(body, position)
    return bytes(value), position


def read_compact_nullable_bytes(body: Buffer, position: int) -> tuple[bytes | None, int]:
    value, position = read_compact_nullable_records(body, position)
    return None if value is None else bytes(value), position


def read_uuid(body: Buffer, position: int) -> tuple[bytes, int]:
    stop = take(body, position, 16)
    return bytes(body[position:stop]), stop


# arrays


def read_count(body: Buffer, position: int, element_bytes_min: int) -> tuple[int, int]:
    """Return the number of elements, -1 for null; never more than fit in the remaining bytes."""
    count, position = read_number(body, position, INT32)
    if count < -1 or count * element_bytes_min > len(body) - position:
        raise ProtocolError(f"{count} elements declared, {len(body) - position} bytes are left")
    return count, position


def read_compact_count(body: Buffer, position: int, element_bytes_min: int) -> tuple[int, int]:
    """Return the number of elements, -1 for null; never more than fit in the remaining bytes."""
    count, position = read_unsigned_varint(body, position)
    count -= 1
    if count * element_bytes_min > len(body) - position:
        raise ProtocolError(f"{count} elements declared, {len(body) - position} bytes are left")
    return count, position


def read_array(body: Buffer, position: int, element_bytes_min: int, read: Reader[T]) -> tuple[tuple[T, ...], int]:
    count, position = read_count(body, position, element_bytes_min)
    return _read_elements(body, position, required(count), read)


def read_nullable_array(
    body: Buffer, position: int, element_bytes_min: int, read: Reader[T]
) -> tuple[tuple[T, ...] | None, int]:
    count, position = read_count(body, position, element_bytes_min)
    return (None, position) if count < 0 else _read_elements(body, position, count, read)


def read_compact_array(
    body: Buffer, position: int, element_bytes_min: int, read: Reader[T]
) -> tuple[tuple[T, ...], int]:
    count, position = read_compact_count(body, position, element_bytes_min)
    return _read_elements(body, position, required(count), read)


def read_compact_nullable_array(
    body: Buffer, position: int, element_bytes_min: int, read: Reader[T]
) -> tuple[tuple[T, ...] | None, int]:
    count, position = read_compact_count(body, position, element_bytes_min)
    return (None, position) if count < 0 else _read_elements(body, position, count, read)


def required(count: int) -> int:
    """Return a count that may not be null."""
    if count < 0:
        raise ProtocolError("null where an array is required")
    return count


def _read_elements(body: Buffer, position: int, count: int, read: Reader[T]) -> tuple[tuple[T, ...], int]:
    if type(body) is SteppedBody:
        return body.read_elements(position, count, read)
    elements = []
    for _ in range(count):
        element, position = read(body, position)
        elements.append(element)
    return tuple(elements), position


def _read_numbers(body: Buffer, position: int, count: int, layout: Struct) -> tuple[tuple[int, ...], int]:
    if type(body) is SteppedBody:
        body.count_numbers(position, count)
    return struct.unpack_from(f">{count}{layout.format[1:]}", body, position), position + count * layout.size


def read_numbers(body: Buffer, position: int, layout: Struct) -> tuple[tuple[int, ...], int]:
    count, position = read_count(body, position, layout.size)
    required(count)
    return _read_numbers(body, position, count, layout)


def read_nullable_numbers(body: Buffer, position: int, layout: Struct) -> tuple[tuple[int, ...] | None, int]:
    count, position = read_count(body, position, layout.size)
    if count < 0:
        return None, position
    return _read_numbers(body, position, count, layout)


def read_compact_numbers(body: Buffer, position: int, layout: Struct) -> tuple[tuple[int, ...], int]:
    count, position = read_compact_count(body, position, layout.size)
    required(count)
    return _read_numbers(body, position, count, layout)


def read_compact_nullable_numbers(body: Buffer, position: int, layout: Struct) -> tuple[tuple[int, ...] | None, int]:
    count, position = read_compact_count(body, position, layout.size)
    if count < 0:
        return None, position
    return _read_numbers(body, position, count, layout)


def read_nullable_struct(body: Buffer, position: int, read: Reader[T]) -> tuple[T | None, int]:
    """Read a struct that follows a byte, which is negative for null."""
    marker, position = read_number(body, position, INT8)
    return (None, position) if marker < 0 else read(body, position)


# tagged fields


def read_tag_count(body: Buffer, position: int) -> tuple[int, int]:
    count, position = read_unsigned_varint(body, position)
    if count > TAGGED_FIELDS_MAX:
        raise ProtocolError(f"{count} tagged fields, the limit is {TAGGED_FIELDS_MAX}")
    return count, position


def read_tag(body: Buffer, position: int) -> tuple[int, int, int]:
    """Return a tag, and the start and end of its value."""
    tag, position = read_unsigned_varint(body, position)
    size, position = read_unsigned_varint(body, position)
    if size > TAGGED_FIELD_BYTES_MAX:
        raise ProtocolError(f"a tagged field of {size} bytes, the limit is {TAGGED_FIELD_BYTES_MAX}")
    return tag, position, take(body, position, size)


def skip_tags(body: Buffer, position: int) -> int:
    """Return the position after tagged fields, none of which is known here."""
    count, position = read_tag_count(body, position)
    for _ in range(count):
        _, _, position = read_tag(body, position)
    return position


def end_tag(position: int, stop: int) -> None:
    """Check that a known tagged field fills the bytes declared for it."""
    if position != stop:
        raise ProtocolError(f"a tagged field ends at byte {position}, byte {stop} was declared")
