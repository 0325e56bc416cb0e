"""The LZ4 frame format around LZ4 blocks: written as the Java client can read it, measured before decompression.

Frames are written here block by block because the Java client refuses blocks that depend on each other.
"""

from struct import Struct, error

import cramjam

from headrace.wire.errors import CorruptBatch

MAGIC = 0x184D2204
_SKIPPABLE_MAGICS = range(0x184D2A50, 0x184D2A60)

_U32 = Struct("<I")
_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
"""Magic; version 1 with independent blocks and no checksums; blocks of 64 KiB; the checksum of those two bytes."""

_BLOCK_BYTES = 64 * 1024
_PLAIN_BLOCK_BIT = 0x80000000
_END_MARK = b"\x00\x00\x00\x00"

_VERSION_MASK, _VERSION_1 = 0xC0, 0x40
_BLOCK_CHECKSUM_BIT = 0x10
_CONTENT_SIZE_BIT = 0x08
_CONTENT_CHECKSUM_BIT = 0x04
_DICTIONARY_BIT = 0x01
_GROWTH_MAX = 255
"""An LZ4 length grows by at most 255 with each byte spent on it."""

_BLOCK_BYTES_BY_CODE = {4: 64 * 1024, 5: 256 * 1024, 6: 1024 * 1024, 7: 4 * 1024 * 1024}


def compress(plain: bytes | bytearray) -> bytes:
    """Return one frame of independent blocks."""
    parts = [_HEADER]
    view = memoryview(plain)
    for start in range(0, len(plain), _BLOCK_BYTES):
        chunk = view[start : start + _BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(chunk, store_size=False))
        if len(block) < len(chunk):
            parts.append(_U32.pack(len(block)))
            parts.append(block)
        else:
            parts.append(_U32.pack(len(chunk) | _PLAIN_BLOCK_BIT))
            parts.append(bytes(chunk))
    parts.append(_END_MARK)
    return b"".join(parts)


def inflated_bytes_bound(packed: bytes) -> int:
    """Return an upper bound of the bytes in these frames, by walking their blocks without decompressing them."""
    bound = 0
    position = 0
    try:
        while position < len(packed):
            (magic,) = _U32.unpack_from(packed, position)
            if magic in _SKIPPABLE_MAGICS:
                position += 8 + _U32.unpack_from(packed, position + 4)[0]
                continue
            if magic != MAGIC:
                raise CorruptBatch("the compressed records are not an lz4 frame")
            position, size = _walk_frame(packed, position + 4)
            bound += size
    except (IndexError, KeyError, error):
        raise CorruptBatch("the lz4 frame is truncated or damaged") from None
    if position != len(packed):
        raise CorruptBatch("the lz4 frame is truncated")
    return bound


def _walk_frame(packed: bytes, position: int) -> tuple[int, int]:
    """Return the end of the frame whose descriptor is at `position`, and how much it can hold."""
    flags = packed[position]
    if flags & _VERSION_MASK != _VERSION_1:
        raise CorruptBatch("the lz4 frame has an unknown version")
    block_bytes = _BLOCK_BYTES_BY_CODE[packed[position + 1] >> 4 & 0x07]
    position += 3 + (8 if flags & _CONTENT_SIZE_BIT else 0) + (4 if flags & _DICTIONARY_BIT else 0)
    trailer = 4 if flags & _BLOCK_CHECKSUM_BIT else 0
    bound = 0
    while True:
        (size,) = _U32.unpack_from(packed, position)
        position += 4
        if size == 0:
            return position + (4 if flags & _CONTENT_CHECKSUM_BIT else 0), bound
        if size & _PLAIN_BLOCK_BIT:
            size ^= _PLAIN_BLOCK_BIT
            bound += size
        else:
            bound += min(block_bytes, size * _GROWTH_MAX)
        position += size + trailer
