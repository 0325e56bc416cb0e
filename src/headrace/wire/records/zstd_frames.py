"""The frame format around Zstandard blocks: measure a frame's content and window before decompression.

Clients send frames that do not state their content size, and a frame of a few bytes may request a window of gigabytes;
walking the block headers reveals both (RFC 8878, section 3.1).
"""

from struct import Struct, error

from headrace.wire.errors import CorruptBatch, InflationLimit

MAGIC = 0xFD2FB528
_SKIPPABLE_MAGICS = range(0x184D2A50, 0x184D2A60)

WINDOW_BYTES_ALWAYS_ALLOWED = 8 * 1024 * 1024
"""The window that every decoder should support, even where the limit for the result is smaller."""

_U32 = Struct("<I")
_BLOCK_BYTES_MAX = 128 * 1024
_SINGLE_SEGMENT_BIT = 0x20
_CHECKSUM_BIT = 0x04
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_RAW, _RLE, _COMPRESSED = 0, 1, 2


def inflated_bytes_bound(packed: bytes, *, window_bytes_max: int) -> int:
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
                raise CorruptBatch("the compressed records are not a zstd frame")
            flags = packed[position + 4]
            position, window_bytes = _walk_header(packed, position + 5, flags)
            if window_bytes > max(window_bytes_max, WINDOW_BYTES_ALWAYS_ALLOWED):
                raise InflationLimit(f"the zstd frame requests a window of {window_bytes} bytes")
            position, size = _walk_blocks(packed, position, min(_BLOCK_BYTES_MAX, window_bytes))
            position += 4 if flags & _CHECKSUM_BIT else 0
            bound += size
    except (IndexError, error):
        raise CorruptBatch("the zstd frame is truncated") from None
    if position != len(packed):
        raise CorruptBatch("the zstd frame is truncated")
    return bound


def _walk_header(packed: bytes, position: int, flags: int) -> tuple[int, int]:
    """Return where the blocks begin, and the window in bytes; `position` is after the descriptor byte `flags`."""
    window_bytes = 0
    content_size_bytes = _CONTENT_SIZE_BYTES[flags >> 6]
    if flags & _SINGLE_SEGMENT_BIT:
        content_size_bytes = content_size_bytes or 1
    else:
        descriptor = packed[position]
        position += 1
        base = 1 << (10 + (descriptor >> 3))
        window_bytes = base + base // 8 * (descriptor & 0x07)
    position += _DICTIONARY_ID_BYTES[flags & 0x03]
    if flags & _SINGLE_SEGMENT_BIT:
        window_bytes = int.from_bytes(packed[position : position + content_size_bytes], "little")
        window_bytes += 256 if content_size_bytes == 2 else 0
    return position + content_size_bytes, window_bytes


def _walk_blocks(packed: bytes, position: int, block_bytes_max: int) -> tuple[int, int]:
    """Return the end of the last block, and how much all blocks can hold."""
    bound = 0
    while True:
        head = packed[position] | packed[position + 1] << 8 | packed[position + 2] << 16
        position += 3
        kind = head >> 1 & 0x03
        size = head >> 3
        if kind == _COMPRESSED:
            bound += block_bytes_max
            position += size
        elif kind == _RAW:
            bound += size
            position += size
        elif kind == _RLE:
            bound += size
            position += 1
        else:
            raise CorruptBatch("the zstd frame has a block of a reserved type")
        if head & 1:
            return position, bound
