"""The search for records without a key in batches of compacted topics: on the loop, or in a helper if large."""

from headrace.model.errors import ErrorCode
from headrace.wire.errors import InflationLimit, ProtocolError
from headrace.wire.records.compression import INFLATED_BYTES_MAX
from headrace.wire.records.header import ATTRIBUTES, COMPRESSION_MASK, HEADER, RECORD_COUNT
from headrace.wire.records.validation import keyless_records

INFLATION_TIMES_MAX = 16
"""The limit of decompressed records, as a multiple of max.message.bytes."""
OPENED_ON_LOOP_BYTES_MAX = 64 << 10
"""The limit of decompressed records on the loop. A helper opens larger ones, and batches with more records."""
OPENED_ON_LOOP_RECORDS_MAX = 1_000
OPENED_ON_LOOP_PACKED_BYTES_MAX = 16 << 10
"""The limit of compressed records on the loop: they may consist of blocks of a few bytes, each of which takes time."""

Keyless = list[int] | ErrorCode
"""Indexes of the records without a key, or the error of records that cannot be read."""


def keyless_places(batch: memoryview, message_bytes_max: int) -> Keyless:
    """Find the records without a key, in any time that takes."""
    inflated_bytes_max = min(INFLATION_TIMES_MAX * message_bytes_max, INFLATED_BYTES_MAX)
    try:
        return keyless_records(batch, inflated_bytes_max=inflated_bytes_max)
    except ProtocolError:
        return ErrorCode.INVALID_RECORD


def keyless_on_loop(batch: memoryview, message_bytes_max: int) -> Keyless:
    """Find the records without a key; raise InflationLimit if that takes too long for the loop."""
    fields = HEADER.unpack_from(batch)
    if fields[RECORD_COUNT] > OPENED_ON_LOOP_RECORDS_MAX:
        raise InflationLimit(f"more than {OPENED_ON_LOOP_RECORDS_MAX} records")
    if not fields[ATTRIBUTES] & COMPRESSION_MASK:
        return keyless_places(batch, message_bytes_max)
    if len(batch) > OPENED_ON_LOOP_PACKED_BYTES_MAX:
        raise InflationLimit(f"more than {OPENED_ON_LOOP_PACKED_BYTES_MAX} bytes before they are inflated")
    try:
        return keyless_records(batch, inflated_bytes_max=OPENED_ON_LOOP_BYTES_MAX)
    except InflationLimit:
        raise
    except ProtocolError:
        return ErrorCode.INVALID_RECORD
