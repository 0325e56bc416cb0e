"""Locate the records of one batch and their keys, and rebuild the batch without the removed records.

Offsets never change: kept records are copied unchanged after a header that keeps the base offset, the last offset and
the producer's sequence. Timestamps are rewritten only when a delete horizon is set, because the horizon replaces the
base timestamp (KIP-534).
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from headrace.wire.errors import CorruptBatch, InflationLimit
from headrace.wire.records.builder import encode_varint
from headrace.wire.records.compression import INFLATED_BYTES_MAX, Compression, compress
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COMPRESSION_MASK,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    HeaderFields,
    checksum,
)
from headrace.wire.records.reader import ONE_BYTE_NUMBERS, open_records, read_varint

NO_TIMESTAMP = -1
RECORDS_MAX = 1_000_000
"""Records per batch. Decoded records are far larger than their bytes; a batch with more is kept unchanged."""
INFLATION_TIMES_MAX = 16
"""Limit on the decompressed size of a batch, as a multiple of the maximum message size; also applied to producers of
compacted topics.
"""

_CRC = Struct(">I")


class Entry(NamedTuple):
    """One record in the uncompressed bytes of its batch."""

    start: int
    """Position of the record's length field."""
    end: int
    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool


def inflated_bytes_max(max_message_bytes: int) -> int:
    return min(INFLATION_TIMES_MAX * max_message_bytes, INFLATED_BYTES_MAX)


def open_entries(batch: bytes, bytes_max: int) -> tuple[bytes, list[Entry]]:
    """Decompress the records of a batch, at most `bytes_max` bytes, and locate each one.

    Raises CorruptBatch if the records contradict their lengths, and InflationLimit if there are too many.
    """
    fields, plain = open_records(batch, bytes_max)
    if fields[RECORD_COUNT] > RECORDS_MAX:
        raise InflationLimit(f"the batch at offset {fields[BASE_OFFSET]} has {fields[RECORD_COUNT]} records")
    try:
        return plain, _entries(fields, plain)
    except IndexError:
        raise CorruptBatch(f"the records of the batch at offset {fields[BASE_OFFSET]} are truncated") from None


def _entries(fields: HeaderFields, plain: bytes) -> list[Entry]:
    """Locate the records. Compaction spends most of its time in this loop: short numbers, the common case, are read
    inline.
    """
    last_delta = fields[LAST_OFFSET_DELTA]
    new, kind, small, varint = tuple.__new__, Entry, ONE_BYTE_NUMBERS, read_varint
    entries: list[Entry] = []
    position = 0
    for _ in range(fields[RECORD_COUNT]):
        start = position
        if (byte := plain[position]) < 0x80:
            size = small[byte]
            position += 1
        elif (high := plain[position + 1]) < 0x80 and not byte & 1:
            size = (byte & 0x7F | high << 7) >> 1
            position += 2
        else:
            size, position = varint(plain, position)
        end = position + size
        position += 1
        if (byte := plain[position]) < 0x80:
            timestamp_delta = small[byte]
            position += 1
        else:
            timestamp_delta, position = varint(plain, position)
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
        # Only the sign of the value's length matters here: odd zigzag numbers are negative.
        has_value = not plain[position] & 1
        if not 0 <= delta <= last_delta or position >= end or end > len(plain):
            raise CorruptBatch(
                f"a record of the batch at offset {fields[BASE_OFFSET]} does not match its declared lengths"
            )
        entries.append(new(kind, (start, end, delta, timestamp_delta, key, has_value)))
        position = end
    if position != len(plain):
        raise CorruptBatch(f"bytes follow the last record of the batch at offset {fields[BASE_OFFSET]}")
    return entries


def delete_horizon(fields: HeaderFields) -> int | None:
    """Return the time from which the tombstones of the batch may be removed, if an earlier cleaning has set it."""
    return fields[BASE_TIMESTAMP] if fields[ATTRIBUTES] & DELETE_HORIZON_BIT else None


def rebuilt(fields: HeaderFields, plain: bytes, kept: Sequence[Entry], *, horizon_ms: int | None) -> bytearray:
    """Rebuild the batch with only these records, at least one; a new `horizon_ms` becomes its base timestamp."""
    assert kept, "rebuilt() needs at least one record; use emptied() for none"
    base_timestamp, attributes = fields[BASE_TIMESTAMP], fields[ATTRIBUTES]
    max_timestamp = fields[MAX_TIMESTAMP]
    if not attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = base_timestamp + max(entry.timestamp_delta for entry in kept)
    if horizon_ms is None:
        body = b"".join([plain[start:end] for start, end in _runs(kept)])
    else:
        shift = base_timestamp - horizon_ms
        body = b"".join([_with_timestamp_delta(plain, entry, entry.timestamp_delta + shift) for entry in kept])
        base_timestamp, attributes = horizon_ms, attributes | DELETE_HORIZON_BIT
    packed = compress(attributes & COMPRESSION_MASK, body)
    changed = {
        ATTRIBUTES: attributes,
        BASE_TIMESTAMP: base_timestamp,
        MAX_TIMESTAMP: max_timestamp,
        RECORD_COUNT: len(kept),
    }
    return _batch(fields, changed, packed)


def emptied(fields: HeaderFields) -> bytearray:
    """Reduce the batch to its header, which still holds the offset range and the producer's last sequence."""
    kept_bits = ~(COMPRESSION_MASK | DELETE_HORIZON_BIT)
    attributes = fields[ATTRIBUTES] & kept_bits | Compression.NONE
    return _batch(fields, {ATTRIBUTES: attributes, BASE_TIMESTAMP: NO_TIMESTAMP, RECORD_COUNT: 0}, b"")


def _batch(fields: HeaderFields, changed: dict[int, int], packed: bytes) -> bytearray:
    values = list(fields)
    for place, value in changed.items():
        values[place] = value
    values[1] = HEADER_SIZE - LOG_OVERHEAD + len(packed)
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(batch, 0, *values)
    batch += packed
    _CRC.pack_into(batch, CRC_AT, checksum(batch))
    return batch


def _runs(kept: Sequence[Entry]) -> list[tuple[int, int]]:
    """Merge adjacent records into runs, so that fewer ranges are copied."""
    runs: list[tuple[int, int]] = []
    start, end = kept[0].start, kept[0].end
    for entry in kept[1:]:
        if entry.start != end:
            runs.append((start, end))
            start = entry.start
        end = entry.end
    runs.append((start, end))
    return runs


def _with_timestamp_delta(plain: bytes, entry: Entry, timestamp_delta: int) -> bytes:
    _size, position = read_varint(plain, entry.start)
    _old, after = read_varint(plain, position + 1)
    time = encode_varint(timestamp_delta)
    size = 1 + len(time) + entry.end - after
    return b"".join((encode_varint(size), plain[position : position + 1], time, plain[after : entry.end]))
