"""The values of a batch as a list, without building its records.

Records of equal shape follow each other at equal distances. Whether they do is seen column by column: the bytes at one
place of all of them are a slice with a stride, which C compares at once. So a run of such records costs little more
than its values; where records are of mixed shape, it is cheaper to build them.
"""

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.reader import read_varint

RUN_RECORDS_MIN = 8
"""A run is looked for when at least so many records are left."""

_CONTINUED = bytes(range(0x80, 0x100))
_LAST = bytes(range(0x80))


def values_of(plain: bytes, count: int) -> list[bytes | None] | None:
    """The values of the records of a batch after decompression; None if they do not come in runs."""
    values: list[bytes | None] = []
    position = 0
    try:
        while len(values) < count:
            shape = _shape(plain, position)
            begin, length, stride, _fixed, _free = shape
            left = count - len(values)
            run = 1
            if left >= RUN_RECORDS_MIN:
                run = _run_length(plain, position, left, shape)
                if run < RUN_RECORDS_MIN:
                    return None
            end = position + run * stride
            if length < 0:
                values += [None] * run
            else:
                values += [plain[at : at + length] for at in range(begin, end, stride)]
            position = end
    except IndexError:
        raise CorruptBatch("the records of a batch are cut off") from None
    if position != len(plain):
        raise CorruptBatch(f"{len(plain) - position} bytes follow the last record of a batch")
    return values


Shape = tuple[int, int, int, list[int], list[tuple[int, int]]]
"""Where the value begins, its length (-1: null), the bytes of the whole record, and the places of its numbers: those
that are the same in every record of this shape, and the first and last of those that only have the same width."""


def _shape(plain: bytes, position: int) -> Shape:
    size, at = read_varint(plain, position)
    end = at + size
    fixed = list(range(position, at))
    at += 1  # attributes
    free = []
    for _ in range(2):  # the time and the offset, as distances from the batch's
        begin = at
        _distance, at = read_varint(plain, at)
        free.append((begin, at))
    key_length, after = read_varint(plain, at)
    fixed += range(at, after)
    at = after + max(key_length, 0)
    length, begin = read_varint(plain, at)
    fixed += range(at, begin)
    at = begin + max(length, 0)
    if size < 0 or key_length < -1 or length < -1 or not at < end <= len(plain):
        raise CorruptBatch("a record is not what it declares")
    if plain[at] == 0 and at + 1 == end:
        fixed.append(at)
    else:
        fixed += range(at, end)  # With headers, only records with the same ones are of this shape.
    return begin, length, end - position, fixed, free


def _run_length(plain: bytes, position: int, left: int, shape: Shape) -> int:
    """How many records from here on have this shape, at least one."""
    stride = shape[2]
    run = min(left, (len(plain) - position) // stride)
    for place in shape[3]:
        column = plain[place : place + (run - 1) * stride + 1 : stride]
        run = len(column) - len(column.lstrip(column[:1]))
    for begin, end in shape[4]:
        for place in range(begin, end):
            column = plain[place : place + (run - 1) * stride + 1 : stride]
            run = len(column) - len(column.lstrip(_LAST if place == end - 1 else _CONTINUED))
    return run
