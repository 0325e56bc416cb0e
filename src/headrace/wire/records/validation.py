"""Validate the header of a producer's batch before the broker stores it, by Kafka's rules.

This is on the produce path, so it reads the header's fields in place, and reads the bytes only for the checksum.
"""

from headrace.model.errors import ErrorCode
from headrace.wire.checksum import crc32c
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.compression import INFLATED_BYTES_MAX, Compression
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC,
    CRC_COVERS_FROM,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORD_COUNT,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.reader import RECORD_BYTES_MIN, open_records, read_varint, record_bounds

ZSTD_FROM_PRODUCE_VERSION = 7
KEYLESS_RECORDS_MAX = 10_000
"""Records without a key that a response names."""

EXPANSION_MAX = (1, 1032, 22, 255, 32_768)
"""The number of bytes that one byte can expand to, by codec: no codec, then the maxima of gzip, snappy, lz4 and
zstd.
"""
RECORDS_MAX = (2**31 - 1) // RECORD_BYTES_MIN
"""Records of one batch: producers collect at most 31 bits of bytes before compression."""

_CLIENT_BITS = COMPRESSION_MASK | TRANSACTIONAL_BIT
"""The attributes that producers may set; the others belong to the broker or are undefined."""
_NOT_COUNTED = HEADER_SIZE - LOG_OVERHEAD
"""Bytes of the header within the length of a batch."""

_NONE = ErrorCode.NONE
_CORRUPT_MESSAGE = ErrorCode.CORRUPT_MESSAGE
_INVALID_RECORD = ErrorCode.INVALID_RECORD
_MESSAGE_TOO_LARGE = ErrorCode.MESSAGE_TOO_LARGE
_UNSUPPORTED_COMPRESSION_TYPE = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
_ZSTD = int(Compression.ZSTD)


def check_produced(
    batch: memoryview,
    fields: HeaderFields,
    *,
    api_version: int,
    max_message_bytes: int,
) -> ErrorCode:
    """HOT. Return the error for a record set of at least a header's size, or NONE; `fields` is its unpacked header.

    Nearly all batches are valid: one expression confirms that, and only for others is the error determined.
    """
    if len(batch) <= max_message_bytes and is_plain(batch, fields):
        return _NONE
    return find_error(batch, fields, api_version=api_version, max_message_bytes=max_message_bytes)


def is_plain(batch: memoryview, fields: HeaderFields) -> bool:
    """HOT. Return whether a record set is one usual batch with a valid checksum."""
    base_offset, length, _, magic, crc, attributes, delta, _, _, producer_id, epoch, sequence, count = fields
    return (
        length + LOG_OVERHEAD == len(batch)
        and magic == CURRENT_MAGIC
        and 0 <= attributes < _ZSTD  # an older codec or none, and no other attribute
        and count == delta + 1 > 0 == base_offset
        and count <= RECORDS_MAX
        and count * RECORD_BYTES_MIN <= (length - _NOT_COUNTED) * EXPANSION_MAX[attributes]
        and (producer_id < 0 or (sequence >= 0 and epoch >= 0))
        and crc32c(batch[CRC_COVERS_FROM:]) == crc
    )


def find_error(batch: memoryview, fields: HeaderFields, *, api_version: int, max_message_bytes: int) -> ErrorCode:
    """Determine the error of a batch by Kafka's rules, one after the other; NONE for one that only looked unusual."""
    size = len(batch)
    if fields[LENGTH] != size - LOG_OVERHEAD:
        return _wrong_length(batch, fields[LENGTH] + LOG_OVERHEAD)
    if fields[MAGIC] != CURRENT_MAGIC:
        return _INVALID_RECORD
    attributes = fields[ATTRIBUTES]
    codec = attributes & COMPRESSION_MASK
    if codec >= _ZSTD and (codec > _ZSTD or api_version < ZSTD_FROM_PRODUCE_VERSION):
        return _UNSUPPORTED_COMPRESSION_TYPE
    if size > max_message_bytes:
        return _MESSAGE_TOO_LARGE
    if crc32c(batch[CRC_COVERS_FROM:]) != fields[CRC]:
        return _CORRUPT_MESSAGE
    count = fields[RECORD_COUNT]
    if count <= 0 or count != fields[LAST_OFFSET_DELTA] + 1 or attributes & CONTROL_BIT or fields[BASE_OFFSET]:
        return _INVALID_RECORD
    if count > RECORDS_MAX or count * RECORD_BYTES_MIN > (size - HEADER_SIZE) * EXPANSION_MAX[codec]:
        return _INVALID_RECORD  # these bytes cannot hold this number of records
    if attributes & LOG_APPEND_TIME_BIT:
        return ErrorCode.INVALID_TIMESTAMP  # only the log may set the append time flag
    if attributes & ~_CLIENT_BITS:
        return _INVALID_RECORD
    if fields[PRODUCER_ID] < 0:
        return _INVALID_RECORD if attributes & TRANSACTIONAL_BIT else _NONE
    if fields[BASE_SEQUENCE] < 0 or fields[PRODUCER_EPOCH] < 0:
        return _INVALID_RECORD
    return _NONE


def keyless_records(
    batch: bytes | bytearray | memoryview, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> list[int]:
    """Return the records that a compacted topic cannot take, by their index in the batch, the first
    `KEYLESS_RECORDS_MAX`.

    It decodes the records, so only such topics use it.
    """
    fields, plain = open_records(batch, inflated_bytes_max)
    keyless: list[int] = []
    try:
        for place, (position, _record_end) in enumerate(record_bounds(fields, plain)):
            _timestamp_delta, position = read_varint(plain, position + 1)
            _offset_delta, position = read_varint(plain, position)
            if read_varint(plain, position)[0] < 0:
                keyless.append(place)
                if len(keyless) == KEYLESS_RECORDS_MAX:
                    break
    except IndexError:
        raise CorruptBatch(f"the records of the batch at offset {fields[BASE_OFFSET]} are truncated") from None
    return keyless


def _wrong_length(batch: memoryview, declared_bytes: int) -> ErrorCode:
    """Return the error of a wrong length: a second batch that follows, which is not allowed, or a false length."""
    rest = len(batch) - declared_bytes
    if declared_bytes < HEADER_SIZE or rest < HEADER_SIZE:
        return _CORRUPT_MESSAGE
    second: HeaderFields = HEADER.unpack_from(batch, declared_bytes)
    is_batch = second[MAGIC] == CURRENT_MAGIC and HEADER_SIZE <= second[LENGTH] + LOG_OVERHEAD <= rest
    return _INVALID_RECORD if is_batch else _CORRUPT_MESSAGE
