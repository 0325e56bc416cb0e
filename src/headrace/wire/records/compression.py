"""Compress and decompress the records of a batch with Kafka's five codecs, never beyond a stated limit.

The attributes of a batch carry the codec's id in their lowest three bits. For any input, `decompress` returns the plain
bytes or raises `CorruptBatch` or `InflationLimit`, and its memory is bounded by the limit: the frames of lz4 and zstd
are first walked block by block, which shows how large the result and the window can be.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum
from mmap import mmap
from struct import Struct
from typing import Any

import cramjam

from headrace.wire.errors import CorruptBatch, InflationLimit
from headrace.wire.records import lz4_frames, zstd_frames

INFLATED_BYTES_MAX = 128 * 1024 * 1024
"""Largest decompressed size of the records of one batch by default."""


class Compression(IntEnum):
    """The codec ids of the batch attributes, and their names in Kafka's configs."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_GZIP_WINDOW_BITS = 31
_GZIP_PIECE_BYTES = 1 << 20
_OWN_PAGES_BYTES_MIN = 256 << 10
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_SIZE = Struct(">i")
_SNAPPY_GROWTH_MAX = 32
"""A snappy element takes at least two bytes and gives at most 64."""

_OUTPUT_IS_FULL = "whole buffer"
"""Part of cramjam's message when the bytes do not fit into the given buffer."""


def compress(codec: int, plain: bytes | bytearray) -> bytes:
    """Return the bytes as they are stored after the header of a batch with this codec."""
    if codec == Compression.NONE:
        return bytes(plain)
    if codec == Compression.GZIP:
        packer = zlib.compressobj(wbits=_GZIP_WINDOW_BITS)
        return packer.compress(plain) + packer.flush()
    if codec == Compression.SNAPPY:
        return _compress_xerial(plain)
    if codec == Compression.LZ4:
        return lz4_frames.compress(plain)
    if codec == Compression.ZSTD:
        return bytes(cramjam.zstd.compress(plain))
    raise ValueError(f"unknown compression id {codec}")


def decompress(codec: int, packed: bytes | memoryview, limit_bytes: int = INFLATED_BYTES_MAX) -> bytes:
    """Return the plain bytes, at most `limit_bytes` of them."""
    if codec == Compression.NONE:
        if len(packed) > limit_bytes:
            raise InflationLimit(f"records of {len(packed)} bytes are above the limit of {limit_bytes}")
        return bytes(packed)
    if codec == Compression.GZIP:
        return _decompress_gzip(packed, limit_bytes)
    if codec == Compression.SNAPPY:
        return _decompress_snappy(bytes(packed), limit_bytes)
    if codec == Compression.LZ4:
        packed = bytes(packed)
        return _decompress_into(
            cramjam.lz4.decompress_into, packed, lz4_frames.inflated_bytes_bound(packed), limit_bytes
        )
    if codec == Compression.ZSTD:
        packed = bytes(packed)
        bound = zstd_frames.inflated_bytes_bound(packed, window_bytes_max=limit_bytes)
        return _decompress_into(cramjam.zstd.decompress_into, packed, bound, limit_bytes)
    raise CorruptBatch(f"unknown compression id {codec}")


def _too_large(limit_bytes: int) -> InflationLimit:
    return InflationLimit(f"the records decompress to more than the limit of {limit_bytes} bytes")


def _decompress_into(
    unpack: Callable[[bytes, bytearray | mmap], Any], packed: bytes, bound: int, limit_bytes: int
) -> bytes:
    room = min(bound, limit_bytes)
    # Filling megabytes with zeros takes milliseconds in which no other thread gets the interpreter. The system does so
    # page by page, where they are written.
    output = mmap(-1, room) if room > _OWN_PAGES_BYTES_MIN else bytearray(room)
    try:
        size = unpack(packed, output)
        return bytes(output[:size])
    except cramjam.DecompressionError as error:
        if bound > limit_bytes and _OUTPUT_IS_FULL in str(error):
            raise _too_large(limit_bytes) from None
        raise CorruptBatch(f"the compressed records cannot be decompressed: {error}") from None
    finally:
        if isinstance(output, mmap):
            output.close()


def _decompress_gzip(packed: bytes | memoryview, limit_bytes: int) -> bytes:
    """Decompress one gzip member after the other, as the format allows, and piece by piece: other threads run in
    between.
    """
    parts: list[bytes] = []
    left = limit_bytes
    rest = bytes(packed)
    try:
        while rest:
            unpacker = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
            while True:
                part = unpacker.decompress(rest, min(left + 1, _GZIP_PIECE_BYTES))
                if len(part) > left:
                    raise _too_large(limit_bytes)
                parts.append(part)
                left -= len(part)
                if unpacker.eof:
                    break
                if not part and not unpacker.unconsumed_tail:
                    raise CorruptBatch("the compressed records are truncated")
                rest = unpacker.unconsumed_tail
            rest = unpacker.unused_data
    except zlib.error as error:
        raise CorruptBatch(f"the compressed records cannot be decompressed: {error}") from None
    if not parts:
        raise CorruptBatch("the compressed records are empty")
    return b"".join(parts)


def _compress_xerial(plain: bytes | bytearray) -> bytes:
    """Compress with the framing of the Java clients: a header, then blocks with their sizes before them."""
    parts = [_XERIAL_HEADER]
    view = memoryview(plain)
    for start in range(0, len(plain), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_BLOCK_SIZE.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(packed: bytes, limit_bytes: int) -> bytes:
    """Decompress with the Java framing or, as librdkafka writes it, without any."""
    if len(packed) == 0:
        raise CorruptBatch("the compressed records are empty")
    if not packed.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(packed, limit_bytes, limit_bytes)
    parts: list[bytes] = []
    left = limit_bytes
    position = len(_XERIAL_HEADER)
    end = len(packed)
    if position > end:
        raise CorruptBatch("the compressed records are truncated")
    while position < end:
        if end - position < _BLOCK_SIZE.size:
            raise CorruptBatch("the compressed records are truncated")
        (size,) = _BLOCK_SIZE.unpack_from(packed, position)
        position += _BLOCK_SIZE.size
        if not 0 <= size <= end - position:
            raise CorruptBatch("a compressed block is longer than the remaining bytes")
        part = _decompress_snappy_block(packed[position : position + size], left, limit_bytes)
        parts.append(part)
        left -= len(part)
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: bytes, left_bytes: int, limit_bytes: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _SNAPPY_GROWTH_MAX:
            raise CorruptBatch("a compressed block declares more than it can hold")
        if size > left_bytes:
            raise _too_large(limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"the compressed records cannot be decompressed: {error}") from None
