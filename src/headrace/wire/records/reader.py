"""Decode record batches into records: iterate over batches, check them, and search by time.

No length is trusted: every count is checked against the remaining bytes, and inconsistent bytes raise `CorruptBatch`.
Timestamps are those a consumer sees, so a batch with log append time gives its one time to all records.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice
from struct import Struct
from typing import NamedTuple

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.compression import INFLATED_BYTES_MAX, decompress
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH,
    LENGTH_AT,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    HeaderFields,
    checksum,
)

Headers = tuple[tuple[str, bytes | None], ...]

_LENGTH = Struct(">i")
_CONTROL_KEY = Struct(">hh")
_VARINT_BITS_MAX = 63
_INT64 = 1 << 63
RECORD_BYTES_MIN = 7
"""A record without key, value and headers: its length and six fields of a byte each."""

RECORDS_BETWEEN = 512
"""Records walked before a search may end for another reason."""

ONE_BYTE_NUMBERS = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))
"""The value of each one-byte zigzag encoding."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class ControlType(IntEnum):
    """The meaning of a control batch for the transaction of its producer."""

    ABORT = 0
    COMMIT = 1


class OffsetAndTime(NamedTuple):
    offset: int
    timestamp: int


def batches(buffer: bytes | bytearray | memoryview, *, allow_truncated_end: bool = False) -> Iterator[memoryview]:
    """Yield every whole batch of the buffer; a fetched buffer may end within one, which is left out."""
    view = memoryview(buffer)
    position = 0
    end = len(view)
    length_of = _LENGTH.unpack_from
    while position < end:
        size = HEADER_SIZE
        if end - position >= LOG_OVERHEAD:
            size = LOG_OVERHEAD + length_of(view, position + LENGTH_AT)[0]
            if size < HEADER_SIZE:
                raise CorruptBatch(f"the batch at byte {position} declares {size} bytes, less than its header needs")
        behind = position + size
        if behind > end:
            if allow_truncated_end:
                return
            raise CorruptBatch(f"the batch at byte {position} is truncated")
        if view[position + MAGIC_AT] != CURRENT_MAGIC:
            raise CorruptBatch(f"the batch at byte {position} has the unknown format {view[position + MAGIC_AT]}")
        yield view[position:behind]
        position = behind


def check_batch(batch: bytes | bytearray | memoryview) -> HeaderFields:
    """Return the header of one whole batch whose length, format, checksum and counts agree; else raise
    `CorruptBatch`.
    """
    if len(batch) < HEADER_SIZE:
        raise CorruptBatch(f"{len(batch)} bytes are less than the header of a batch")
    fields: HeaderFields = HEADER.unpack_from(batch)
    if fields[LENGTH] + LOG_OVERHEAD != len(batch):
        raise CorruptBatch(f"the batch declares {fields[LENGTH] + LOG_OVERHEAD} bytes but has {len(batch)}")
    if fields[MAGIC] != CURRENT_MAGIC:
        raise CorruptBatch(f"the batch has the unknown format {fields[MAGIC]}")
    if fields[CRC] != checksum(batch):
        raise CorruptBatch(f"the checksum of the batch at offset {fields[BASE_OFFSET]} is wrong")
    if fields[LAST_OFFSET_DELTA] < 0 or fields[RECORD_COUNT] < 0:
        raise CorruptBatch(f"the batch at offset {fields[BASE_OFFSET]} has negative counts")
    return fields


def check_produced(batch: bytes | bytearray | memoryview) -> int:
    """Return the number of records of a whole batch that a producer could have sent; else raise `CorruptBatch`."""
    fields = check_batch(batch)
    if fields[ATTRIBUTES] & CONTROL_BIT:
        raise CorruptBatch("producers must not write control batches")
    if not 0 < fields[RECORD_COUNT] == fields[LAST_OFFSET_DELTA] + 1:
        raise CorruptBatch(f"{fields[RECORD_COUNT]} records have the offsets 0 to {fields[LAST_OFFSET_DELTA]}")
    return fields[RECORD_COUNT]


def is_control(batch: bytes | bytearray | memoryview) -> bool:
    """Return whether the batch holds a transaction marker, which consumers skip."""
    attributes: int = HEADER.unpack_from(batch)[ATTRIBUTES]
    return attributes & CONTROL_BIT != 0


def control_type(record: Record) -> ControlType:
    """Return the type of the marker in a control batch."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise CorruptBatch("the key of a control record is too short")
    _version, kind = _CONTROL_KEY.unpack_from(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptBatch(f"a control record has the unknown type {kind}")
    return ControlType(kind)


def records(batch: bytes | bytearray | memoryview, *, inflated_bytes_max: int = INFLATED_BYTES_MAX) -> Iterator[Record]:
    """Yield the records of one whole batch; `check_batch` verifies the checksum."""
    fields, plain = open_records(batch, inflated_bytes_max)
    return decode_records(fields, plain)


def first_at_or_after(
    batch: bytes | bytearray | memoryview,
    timestamp_ms: int,
    *,
    inflated_bytes_max: int = INFLATED_BYTES_MAX,
    between: Callable[[], object] = lambda: None,
) -> OffsetAndTime | None:
    """Return the first record of the batch that is not older than the time; `between` is called after every few
    records.
    """
    if HEADER.unpack_from(batch)[MAX_TIMESTAMP] < timestamp_ms:
        return None
    places = _places(batch, inflated_bytes_max)
    while few := tuple(islice(places, RECORDS_BETWEEN)):
        for place in few:
            if place[1] >= timestamp_ms:
                return OffsetAndTime(*place)
        between()
    return None


def max_timestamp_record(
    batch: bytes | bytearray | memoryview, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> OffsetAndTime | None:
    """Return the newest record of the batch, the first of several; none if the batch is empty."""
    newest: tuple[int, int] | None = None
    for place in _places(batch, inflated_bytes_max):
        if newest is None or place[1] > newest[1]:
            newest = place
    return OffsetAndTime(*newest) if newest is not None else None


def open_records(batch: bytes | bytearray | memoryview, inflated_bytes_max: int) -> tuple[HeaderFields, bytes]:
    fields: HeaderFields = HEADER.unpack_from(batch)
    plain = decompress(fields[ATTRIBUTES] & COMPRESSION_MASK, memoryview(batch)[HEADER_SIZE:], inflated_bytes_max)
    if not 0 <= fields[RECORD_COUNT] <= len(plain) // RECORD_BYTES_MIN:
        raise CorruptBatch(
            f"the batch at offset {fields[BASE_OFFSET]} declares {fields[RECORD_COUNT]} records in {len(plain)} bytes"
        )
    return fields, plain


def _places(batch: bytes | bytearray | memoryview, inflated_bytes_max: int) -> Iterator[tuple[int, int]]:
    """Yield offset and time of every record; keys and values are skipped."""
    fields, plain = open_records(batch, inflated_bytes_max)
    base_offset = fields[BASE_OFFSET]
    base_timestamp = fields[BASE_TIMESTAMP]
    log_time = fields[MAX_TIMESTAMP] if fields[ATTRIBUTES] & LOG_APPEND_TIME_BIT else None
    try:
        for position, _record_end in record_bounds(fields, plain):
            timestamp_delta, position = read_varint(plain, position + 1)
            offset_delta, position = read_varint(plain, position)
            timestamp = base_timestamp + timestamp_delta if log_time is None else log_time
            if not 0 <= offset_delta <= fields[LAST_OFFSET_DELTA] or not -_INT64 <= timestamp < _INT64:
                raise CorruptBatch(f"a record of the batch at offset {base_offset} is outside its batch")
            yield base_offset + offset_delta, timestamp
    except IndexError:
        raise CorruptBatch(f"the records of the batch at offset {base_offset} are truncated") from None


def record_bounds(fields: HeaderFields, plain: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start of each record, after its length, and its end."""
    position = 0
    end = len(plain)
    for _ in range(fields[RECORD_COUNT]):
        size, position = read_varint(plain, position)
        if not RECORD_BYTES_MIN - 1 <= size <= end - position:
            raise CorruptBatch(f"a record declares {size} bytes where {end - position} remain")
        yield position, position + size
        position += size


def read_varint(plain: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Return a zigzag number and the position after it."""
    byte = plain[position]
    position += 1
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift > _VARINT_BITS_MAX:
            raise CorruptBatch("a number in a record is longer than ten bytes")
        byte = plain[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), position


def decode_records(fields: HeaderFields, plain: bytes) -> Iterator[Record]:
    """Decode the records. Consumers spend most of their time in this loop: short numbers, the common case, are read
    inline.
    """
    base_offset = fields[BASE_OFFSET]
    base_timestamp = fields[BASE_TIMESTAMP]
    last_delta = fields[LAST_OFFSET_DELTA]
    log_time = fields[MAX_TIMESTAMP] if fields[ATTRIBUTES] & LOG_APPEND_TIME_BIT else None
    new, kind, small, varint = tuple.__new__, Record, ONE_BYTE_NUMBERS, read_varint
    position, end = 0, len(plain)
    try:
        for _ in range(fields[RECORD_COUNT]):
            if (byte := plain[position]) < 0x80:
                size = small[byte]
                position += 1
            elif (high := plain[position + 1]) < 0x80 and not byte & 1:
                size = (byte & 0x7F | high << 7) >> 1
                position += 2
            else:
                size, position = varint(plain, position)
            record_end = position + size
            position += 1
            if (byte := plain[position]) < 0x80:
                timestamp = base_timestamp + small[byte]
                position += 1
            else:
                later, position = varint(plain, position)
                timestamp = base_timestamp + later
            if (byte := plain[position]) < 0x80:
                delta = small[byte]
                position += 1
            else:
                delta, position = varint(plain, position)
            if (byte := plain[position]) < 0x80:
                length = small[byte]
                position += 1
            else:
                length, position = varint(plain, position)
            key = plain[position : (position := position + length)] if length >= 0 else None
            if (byte := plain[position]) < 0x80:
                length = small[byte]
                position += 1
            elif (high := plain[position + 1]) < 0x80 and not byte & 1:
                length = (byte & 0x7F | high << 7) >> 1
                position += 2
            else:
                length, position = varint(plain, position)
            value = plain[position : (position := position + length)] if length >= 0 else None
            headers: Headers = ()
            if plain[position] == 0:
                position += 1
            else:
                headers, position = read_headers(plain, position, record_end)
            # A wrong length moves the end of the record away from where its size puts it.
            if position != record_end or not 0 <= delta <= last_delta or size < RECORD_BYTES_MIN - 1:
                raise CorruptBatch(f"a record of the batch at offset {base_offset} does not match its declared size")
            yield new(kind, (base_offset + delta, timestamp if log_time is None else log_time, key, value, headers))
    except IndexError:
        raise CorruptBatch(f"the records of the batch at offset {base_offset} are truncated") from None
    if position != end:
        raise CorruptBatch(f"{end - position} bytes follow the last record of the batch at offset {base_offset}")


def read_headers(plain: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(plain, position)
    if not 0 <= count <= (end - position) // 2:
        raise CorruptBatch(f"a record declares {count} headers in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key_size, position = read_varint(plain, position)
        if not 0 <= key_size <= end - position:
            raise CorruptBatch(f"the key of a header declares {key_size} bytes where {end - position} remain")
        key = plain[position : position + key_size].decode(errors="replace")
        value_size, position = read_varint(plain, position + key_size)
        value = None
        if value_size >= 0:
            value = plain[position : position + value_size]
            position += value_size
        headers.append((key, value))
    return tuple(headers), position
