"""Read fields by offset for the two hot requests: no object per field, every step checked against the end of the
frame.
"""

from struct import Struct

from headrace.wire.errors import ProtocolError

INT16 = Struct(">h")
INT32 = Struct(">i")

TAGGED_FIELDS_MAX = 64
"""Tagged fields of one structure that are skipped before the frame is considered hostile."""


def truncated() -> ProtocolError:
    return ProtocolError("the frame ends inside a field")


def unsigned_varint(buffer: memoryview, position: int, end: int) -> tuple[int, int]:
    """Return (value, position after it); at most 32 bits."""
    value = shift = 0
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
        shift += 7
        if shift > 28:
            break
    if position >= end:
        raise truncated()
    raise ProtocolError("a variable-length integer of more than 32 bits")


def skip_tagged_fields(buffer: memoryview, position: int, end: int) -> int:
    if position < end and buffer[position] == 0:
        return position + 1
    count, position = unsigned_varint(buffer, position, end)
    if count > TAGGED_FIELDS_MAX:
        raise ProtocolError(f"{count} tagged fields in one structure; at most {TAGGED_FIELDS_MAX} are allowed")
    for _ in range(count):
        _, position = unsigned_varint(buffer, position, end)
        size, position = unsigned_varint(buffer, position, end)
        position += size
        if position > end:
            raise truncated()
    return position


def element_count(buffer: memoryview, position: int, end: int, *, compact: bool, smallest: int) -> tuple[int, int]:
    """Return (number of elements, position of the first); refused if they cannot fit in the remaining bytes."""
    if compact:
        if position < end and 0 < buffer[position] < 0x80:
            count = buffer[position] - 1
            position += 1
        else:
            count, position = unsigned_varint(buffer, position, end)
            count -= 1
    else:
        if position + 4 > end:
            raise truncated()
        (count,) = INT32.unpack_from(buffer, position)
        position += 4
    if count < 0:
        return 0, position
    if count * smallest > end - position:
        raise ProtocolError(f"an array of {count} elements in {end - position} bytes")
    return count, position


def string_span(buffer: memoryview, position: int, end: int, *, compact: bool) -> tuple[int, int]:
    """Return (start, stop) of a string's bytes; start -1 for null, then stop is the next position."""
    if compact:
        if position < end and 0 < buffer[position] < 0x80:
            length = buffer[position] - 1
            position += 1
        else:
            length, position = unsigned_varint(buffer, position, end)
            length -= 1
    else:
        if position + 2 > end:
            raise truncated()
        (length,) = INT16.unpack_from(buffer, position)
        position += 2
    if length < 0:
        return -1, position
    if position + length > end:
        raise truncated()
    return position, position + length


def bytes_span(buffer: memoryview, position: int, end: int, *, compact: bool) -> tuple[int, int]:
    """Return the span of a bytes field, as `string_span` does."""
    if compact:
        length, position = unsigned_varint(buffer, position, end)
        length -= 1
    else:
        if position + 4 > end:
            raise truncated()
        (length,) = INT32.unpack_from(buffer, position)
        position += 4
    if length < 0:
        return -1, position
    if position + length > end:
        raise truncated()
    return position, position + length


def varint_bytes(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
