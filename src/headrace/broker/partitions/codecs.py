"""Recompression of batches for topics with a `compression.type` of their own: on the loop, or in a helper if large."""

from headrace.broker.partitions.keys import INFLATION_TIMES_MAX
from headrace.model.errors import ErrorCode
from headrace.wire.errors import InflationLimit, ProtocolError
from headrace.wire.records.compression import INFLATED_BYTES_MAX, Compression, decompress
from headrace.wire.records.header import ATTRIBUTES, COMPRESSION_MASK, HEADER, HEADER_SIZE, HeaderFields
from headrace.wire.records.recompression import recompressed

STORED_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""The codec by compression.type. Any other value keeps the producer's codec."""

RECOMPRESSED_ON_LOOP_BYTES_MAX = {
    Compression.NONE: 256 << 10,
    Compression.GZIP: 16 << 10,
    Compression.SNAPPY: 128 << 10,
    Compression.LZ4: 128 << 10,
    Compression.ZSTD: 64 << 10,
}
"""Uncompressed bytes that take about a quarter of a millisecond to recompress, by the target codec."""

Stored = bytearray | ErrorCode
"""The batch in the form to store, or the error that prevents it."""


def is_recompressed_on_loop(batch: memoryview, fields: HeaderFields, codec: Compression) -> bool:
    """Return whether the loop has time for the batch. True also for unreadable records, which fail as quickly again."""
    try:
        decompress(fields[ATTRIBUTES] & COMPRESSION_MASK, batch[HEADER_SIZE:], RECOMPRESSED_ON_LOOP_BYTES_MAX[codec])
    except InflationLimit:
        return False
    except ProtocolError:
        return True
    return True


def stored_on_loop(batch: memoryview, fields: HeaderFields, codec: Compression, message_bytes_max: int) -> Stored:
    """Recompress the batch; raise InflationLimit if that takes too long for the loop."""
    return _stored(batch, fields, codec, RECOMPRESSED_ON_LOOP_BYTES_MAX[codec], message_bytes_max)


def stored_by_helper(batch: memoryview, codec: Compression, message_bytes_max: int) -> Stored:
    inflated_bytes_max = min(INFLATION_TIMES_MAX * message_bytes_max, INFLATED_BYTES_MAX)
    try:
        return _stored(batch, HEADER.unpack_from(batch), codec, inflated_bytes_max, message_bytes_max)
    except InflationLimit:
        # Clients react to this error by splitting the batch.
        return ErrorCode.MESSAGE_TOO_LARGE


def _stored(
    batch: memoryview, fields: HeaderFields, codec: Compression, inflated_bytes_max: int, message_bytes_max: int
) -> Stored:
    try:
        changed = recompressed(batch, fields, codec, inflated_bytes_max=inflated_bytes_max)
    except InflationLimit:
        raise
    except ProtocolError:
        return ErrorCode.INVALID_RECORD
    return changed if len(changed) <= message_bytes_max else ErrorCode.MESSAGE_TOO_LARGE
