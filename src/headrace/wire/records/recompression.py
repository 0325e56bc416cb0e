"""Recompress an arrived batch, for topics whose `compression.type` requires it."""

from struct import Struct

from headrace.wire.records.compression import Compression, compress, decompress
from headrace.wire.records.header import (
    ATTRIBUTES,
    COMPRESSION_MASK,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH,
    LOG_OVERHEAD,
    HeaderFields,
    checksum,
)

_CRC = Struct(">I")


def recompressed(batch: memoryview, fields: HeaderFields, codec: Compression, *, inflated_bytes_max: int) -> bytearray:
    """Return the batch with its records compressed by that codec.

    Raises CorruptBatch if they cannot be decoded, InflationLimit if they exceed the limit.
    """
    plain = decompress(fields[ATTRIBUTES] & COMPRESSION_MASK, batch[HEADER_SIZE:], inflated_bytes_max)
    packed = compress(codec, plain)
    values = list(fields)
    values[LENGTH] = HEADER_SIZE - LOG_OVERHEAD + len(packed)
    values[ATTRIBUTES] = fields[ATTRIBUTES] & ~COMPRESSION_MASK | codec
    changed = bytearray(HEADER_SIZE)
    HEADER.pack_into(changed, 0, *values)
    changed += packed
    _CRC.pack_into(changed, CRC_AT, checksum(changed))
    return changed
