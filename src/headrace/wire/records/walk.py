"""Walk the records of a batch before it is stored, to check that its bytes are the records that its header declares.

`walk.h` is the compiled equivalent, if it was built (`headrace.wire.compiled`); `are_sound_plainly` is its reference,
and is used elsewhere. The rules are those of the strictest reader: numbers that clients read into 32 bits may not be
longer, offsets are consecutive, and no byte is left over.
"""

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.reader import RECORD_BYTES_MIN, read_varint

_RECORD_SIZE_MIN = RECORD_BYTES_MIN - 1
_SHORT_BYTES_MAX = 5
_INT32 = 1 << 31
_INT64 = 1 << 63


def are_sound_plainly(plain: bytes | bytearray | memoryview, count: int, base_timestamp: int) -> bool:
    """Return whether the bytes, which are not compressed, are exactly `count` records with the offsets 0 to `count` -
    1.
    """
    position, end = 0, len(plain)
    try:
        for place in range(count):
            size, position = _short_number(plain, position)
            record_end = position + size
            if not _RECORD_SIZE_MIN <= size <= end - position:
                return False
            later, position = read_varint(plain, position + 1)
            delta, position = _short_number(plain, position)
            if delta != place or not (-_INT64 <= later < _INT64 and -_INT64 <= base_timestamp + later < _INT64):
                return False
            position = _behind_bytes(plain, position)
            position = _behind_bytes(plain, position)
            headers, position = _short_number(plain, position)
            if not 0 <= headers <= max(record_end - position, 0) // 2:
                return False
            for _ in range(headers):
                if _short_number(plain, position)[0] < 0:
                    return False  # a header must have a key
                position = _behind_bytes(plain, position)
                position = _behind_bytes(plain, position)
            if position != record_end:
                return False
    except (IndexError, CorruptBatch):
        return False
    return position == end


def _short_number(plain: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Return a zigzag number of at most 32 bits, in at most the five bytes that it needs, and the position after it."""
    number, behind = read_varint(plain, position)
    if behind - position > _SHORT_BYTES_MAX or not -_INT32 <= number < _INT32:
        raise CorruptBatch("a number in a record is longer than 32 bits")
    return number, behind


def _behind_bytes(plain: bytes | bytearray | memoryview, position: int) -> int:
    """Return the position after a length and that many bytes; a negative length stands for null."""
    size, position = _short_number(plain, position)
    return position + max(size, 0)


try:
    from headrace.wire._compiled import are_sound as are_sound
except ImportError:
    are_sound = are_sound_plainly
