"""Read a Produce request that differs from an earlier one of its connection only in its records.

Everything before the records is looked up as a whole; only the length, the end and the header of the batch are read.
`repeats.c` is the compiled equivalent, if it was built (`tools/build_native.py`); `read_repeat_plainly` is its
reference, and is used elsewhere.
"""

from collections.abc import Mapping
from struct import Struct
from typing import TypeVar

from headrace.wire.errors import ProtocolError
from headrace.wire.produce import FLEXIBLE_FROM
from headrace.wire.records.header import ATTRIBUTES, BASE_TIMESTAMP, HEADER, HEADER_SIZE, RECORD_COUNT, HeaderFields
from headrace.wire.records.validation import is_plain
from headrace.wire.records.walk import are_sound_plainly
from headrace.wire.scan import unsigned_varint

SHAPE_AT = 8
"""Start of the bytes that are looked up: after api key, version and correlation id."""

_SIZE_BYTES = 4
_LEAST_BEHIND_SHAPE = 4
"""A length of one byte, and three empty tagged sections; or a length of four bytes."""
_HEAD = Struct(">iii")

Shape = TypeVar("Shape")
Repeat = tuple[Shape, int, int, int, int, HeaderFields | None, int]
"""The value found for the bytes, api key and version as one number, the correlation id, start and end of the record
set, its header if it is one valid usual batch, and the end of the request.
"""

WALKED_RECORDS_MAX = 100_000
"""Records of a batch that take about a millisecond to walk in the compiled reader; larger batches take the long
path.
"""


def read_repeat_plainly(
    buffer: memoryview,
    position: int,
    end: int,
    shapes: Mapping[bytes, Shape],
    shape_bytes: int,
    walks_records: bool = False,
) -> Repeat[Shape] | None:
    """HOT. Read the request whose size is at `position`.

    None for one that begins with other bytes, does not end with its one record set, or is incomplete. The compiled
    reader also walks the records of uncompressed batches, which takes too long here and serves only for comparison.
    """
    start = position + _SIZE_BYTES
    length_at = start + shape_bytes
    if length_at + _LEAST_BEHIND_SHAPE > end:
        return None
    shape = shapes.get(bytes(buffer[start + SHAPE_AT : length_at]))
    if shape is None:
        return None
    size, key_and_version, correlation_id = _HEAD.unpack_from(buffer, position)
    request_end = start + size
    if not length_at + _LEAST_BEHIND_SHAPE <= request_end <= end:
        return None
    if key_and_version >= FLEXIBLE_FROM:
        low, high = buffer[length_at], buffer[length_at + 1]
        if high < 0x80 <= low:  # most lengths have two bytes
            length, records_at = low & 0x7F | high << 7, length_at + 2
        else:
            try:
                length, records_at = unsigned_varint(buffer, length_at, request_end)
            except ProtocolError:
                return None
        stop = records_at + length - 1
        # No tagged fields of the partition, the topic, the request.
        if stop + 3 != request_end or buffer[stop] or buffer[stop + 1] or buffer[stop + 2]:
            return None
    else:
        records_at = length_at + 4
        stop = records_at + int.from_bytes(buffer[length_at:records_at], "big", signed=True)
        if stop != request_end:
            return None
    fields = None
    if stop - records_at >= HEADER_SIZE:
        fields = HEADER.unpack_from(buffer, records_at)
        batch = buffer[records_at:stop]
        if not is_plain(batch, fields) or (walks_records and not _is_walked(batch, fields)):
            fields = None
    return shape, key_and_version, correlation_id, records_at, stop, fields, request_end


def _is_walked(batch: memoryview, fields: HeaderFields) -> bool:
    """Return whether a plain batch is compressed, or has few enough records for the loop and they are sound."""
    count = fields[RECORD_COUNT]
    return bool(fields[ATTRIBUTES]) or (
        count <= WALKED_RECORDS_MAX and are_sound_plainly(batch[HEADER_SIZE:], count, fields[BASE_TIMESTAMP])
    )


try:
    from headrace.wire._compiled import read_repeat as read_repeat
except ImportError:
    read_repeat = read_repeat_plainly
