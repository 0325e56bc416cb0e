"""Walk the batches of a segment file, header by header, up to the first invalid one."""

from collections.abc import Iterator

from headrace.ports.disk import Disk, FileHandle
from headrace.wire.checksum import crc32c
from headrace.wire.records.header import (
    BASE_OFFSET,
    CRC,
    CRC_COVERS_FROM,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_OVERHEAD,
    MAGIC,
    RECORD_COUNT,
    HeaderFields,
)

CHECK_CHUNK_BYTES = 1 << 20
HEADER_CHUNK_BYTES = 32 * 1024
"""Small batches share a read; larger ones are skipped, so that only their headers are read."""

NEVER_CHECK = 1 << 63
OFFSET_MAX = (1 << 63) - 1
_ZERO_HEADER = bytes(HEADER_SIZE)


class BatchWalk:
    """Iterates over (position, header fields); afterwards `position` is the end of the last valid batch.

    `damage` describes the fault that stopped the walk before `end`; it stays empty at the end of the file and at a
    header of zeros, where preallocated space begins. Checksums are verified from `check_from_offset` on. They do not
    cover offsets, so an offset above `last_offset_max` is damage too, and so is a gap, unless compaction may have made
    it.
    """

    def __init__(
        self,
        disk: Disk,
        file: FileHandle,
        *,
        position: int,
        end: int,
        next_offset: int,
        check_from_offset: int = NEVER_CHECK,
        last_offset_max: int = OFFSET_MAX,
        gaps: bool = True,
    ) -> None:
        self._disk = disk
        self._file = file
        self._end = end
        self._check_from_offset = check_from_offset
        self._last_offset_max = last_offset_max
        self._gaps = gaps or position > 0  # at a position in the middle, the previous offset is not known exactly
        self._gaps_later = gaps
        self._buffer = b""
        self._buffer_at = 0
        self.position = position
        self.next_offset = next_offset
        """The offset after the last valid batch."""
        self.damage = ""

    def __iter__(self) -> Iterator[tuple[int, HeaderFields]]:
        while self.position < self._end:
            fields = self._header()
            if fields is None:
                return
            position = self.position
            self.position = position + fields[LENGTH] + LOG_OVERHEAD
            self.next_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
            self._gaps = self._gaps_later
            yield position, fields

    def batch(self, position: int, fields: HeaderFields) -> bytes:
        """Return the whole bytes of a batch that the walk yielded."""
        at, size = position - self._buffer_at, fields[LENGTH] + LOG_OVERHEAD
        if at >= 0 and at + size <= len(self._buffer):
            return self._buffer[at : at + size]
        return self._disk.read(self._file, size, position)

    def _header(self) -> HeaderFields | None:
        at = self.position - self._buffer_at
        if at + HEADER_SIZE > len(self._buffer):
            chunk = HEADER_CHUNK_BYTES if self._check_from_offset == NEVER_CHECK else CHECK_CHUNK_BYTES
            self._buffer = self._disk.read(self._file, min(chunk, self._end - self.position), self.position)
            self._buffer_at = self.position
            at = 0
            if len(self._buffer) < HEADER_SIZE:
                if any(self._buffer):
                    self.damage = "the file ends within a header"
                return None
        fields: HeaderFields = HEADER.unpack_from(self._buffer, at)
        if fields[LENGTH] == 0 and self._buffer[at : at + HEADER_SIZE] == _ZERO_HEADER:
            return None
        self.damage = self._fault(fields)
        return fields if not self.damage else None

    def _fault(self, fields: HeaderFields) -> str:
        if fields[MAGIC] != CURRENT_MAGIC:
            return f"unknown batch format {fields[MAGIC]}"
        if fields[LENGTH] < HEADER_SIZE - LOG_OVERHEAD:
            return f"a batch of {fields[LENGTH]} bytes is shorter than its header"
        if fields[LENGTH] + LOG_OVERHEAD > self._end - self.position:
            return "the file ends within a batch"
        if fields[BASE_OFFSET] < self.next_offset:
            return f"offset {fields[BASE_OFFSET]} found where {self.next_offset} or more was expected"
        if not self._gaps and fields[BASE_OFFSET] != self.next_offset:
            return f"offset {fields[BASE_OFFSET]} found where {self.next_offset} was expected"
        if fields[LAST_OFFSET_DELTA] < 0 or fields[RECORD_COUNT] < 0:
            return "negative counts in the header"
        if fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] > self._last_offset_max:
            return f"offset {fields[BASE_OFFSET]} is too far above its segment's base offset"
        if fields[BASE_OFFSET] >= self._check_from_offset and self._checksum(fields) != fields[CRC]:
            return "wrong checksum"
        return ""

    def _checksum(self, fields: HeaderFields) -> int:
        """Compute the checksum over the buffered bytes, then in chunks, so that a large batch needs no buffer of its
        size.
        """
        begin = self.position + CRC_COVERS_FROM
        end = self.position + LOG_OVERHEAD + fields[LENGTH]
        buffered = memoryview(self._buffer)[begin - self._buffer_at : end - self._buffer_at]
        crc: int = crc32c(buffered)
        begin += len(buffered)
        while begin < end:
            part = self._disk.read(self._file, min(CHECK_CHUNK_BYTES, end - begin), begin)
            if not part:
                return -1
            crc = crc32c(part, crc)
            begin += len(part)
        return crc


def has_batch_at(disk: Disk, file: FileHandle, position: int, *, first_offset: int, last_offset: int) -> bool:
    """Return whether a batch that begins within these offsets is at `position`, so that a damaged index is not
    trusted.
    """
    header = disk.read(file, HEADER_SIZE, position) if position >= 0 else b""
    if len(header) < HEADER_SIZE:
        return False
    fields: HeaderFields = HEADER.unpack(header)
    return fields[MAGIC] == CURRENT_MAGIC and first_offset <= fields[BASE_OFFSET] <= last_offset
