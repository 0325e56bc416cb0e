"""Another compression for a batch that arrived, for topics whose `compression.type` asks for one.

It is done on the loop, so only as much at a time as takes about a millisecond: batches with more records than that stay
as they were sent.
"""

from struct import Struct

from headrace.wire.errors import InflationLimit
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

RECOMPRESSED_BYTES_MAX = {
    Compression.NONE: 512 << 10,
    Compression.GZIP: 32 << 10,
    Compression.SNAPPY: 256 << 10,
    Compression.LZ4: 256 << 10,
    Compression.ZSTD: 128 << 10,
}
"""How many bytes of records, before compression, a batch may have to be compressed anew, by codec."""

_CRC = Struct(">I")


def recompressed(batch: memoryview, fields: HeaderFields, codec: Compression) -> bytearray | None:
    """The batch with its records under that codec; None if there are too many of them.

    CorruptBatch if they cannot be read.
    """
    bytes_max = RECOMPRESSED_BYTES_MAX[codec]
    try:
        plain = decompress(fields[ATTRIBUTES] & COMPRESSION_MASK, batch[HEADER_SIZE:], bytes_max)
    except InflationLimit:
        return None
    packed = compress(codec, plain)
    values = list(fields)
    values[LENGTH] = HEADER_SIZE - LOG_OVERHEAD + len(packed)
    values[ATTRIBUTES] = fields[ATTRIBUTES] & ~COMPRESSION_MASK | codec
    changed = bytearray(HEADER_SIZE)
    HEADER.pack_into(changed, 0, *values)
    changed += packed
    _CRC.pack_into(changed, CRC_AT, checksum(changed))
    return changed
