"""Read a closed segment again and verify that it still holds what was written.

A segment is read in pieces, each of them work for a helper thread, so that the caller controls the speed. A damaged
batch is skipped if a valid header follows it; otherwise the rest of the segment counts as damaged.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headrace.ports.disk import Disk, FileHandle
from headrace.wire.records.header import CURRENT_MAGIC, HEADER, HEADER_SIZE, LENGTH, LOG_OVERHEAD, MAGIC

from .segment import Segment
from .walk import BatchWalk
from .work import Work

PIECE_BYTES = 256 << 10
"""Least bytes that one piece reads; the last batch of a piece is read whole."""
DAMAGES_MAX = 16
"""Damaged batches of a segment that are listed separately; beyond this number the whole segment counts as damaged."""


class Damage(NamedTuple):
    position: int
    end: int
    text: str


class SegmentScrub:
    """One pass over a segment or a part of it. Call `piece` until `finished`, or `close` to stop early."""

    def __init__(
        self,
        disk: Disk,
        segment: Segment,
        *,
        gaps: bool,
        next_base_offset: int | None = None,
        begin: int = 0,
        end: int | None = None,
        base_offset: int | None = None,
    ) -> None:
        """The batch at position `begin` has the base offset or a higher one. `next_base_offset` is where the segment
        must end; None if that is not to be checked.
        """
        self._disk = disk
        self._path = segment.log.path
        self._from = begin
        self._size = segment.size if end is None else end
        self._base_offset = segment.base_offset if base_offset is None else base_offset
        self._end_offset = next_base_offset
        self._gaps = gaps
        self._file: FileHandle | None = None
        self._walk: BatchWalk | None = None
        self._batches: Iterator[object] = iter(())
        self.segment = segment
        self.bytes_read = 0
        self.finished = False
        self.damages: list[Damage] = []

    def piece(self) -> Work:
        def scrub_piece() -> int:
            before = self._position
            self._read_on(before + PIECE_BYTES)
            if self._position >= self._size:
                self.close()
            return self._position - before

        def done(read: int | None, error: BaseException | None) -> None:
            self.bytes_read += read or 0
            self.finished = error is not None or self._position >= self._size
            if self.finished:
                self.close()

        return Work(scrub_piece, done)

    def close(self) -> None:
        if self._file is not None:
            self._disk.close(self._file)
            self._file = None

    @property
    def _position(self) -> int:
        return self._walk.position if self._walk is not None else self._from

    def _read_on(self, goal: int) -> None:
        if self._walk is None:
            self._file = self._disk.open(self._path, writable=False)
            self._begin(self._from, self._base_offset)
        while self._position < min(goal, self._size):
            if next(self._batches, None) is None and not self._step_over():
                return
        walk = self._walk
        assert walk is not None
        is_whole = walk.position == self._size and not self._gaps and not self.damages
        if is_whole and self._end_offset not in (None, walk.next_offset):
            text = f"it ends at offset {walk.next_offset}, but the next segment begins at {self._end_offset}"
            self.damages.append(Damage(self._size, self._size, text))

    def _begin(self, position: int, next_offset: int) -> None:
        assert self._file is not None
        self._walk = BatchWalk(
            self._disk,
            self._file,
            position=position,
            end=self._size,
            next_offset=next_offset,
            check_from_offset=0,
            gaps=self._gaps or bool(self.damages),
        )
        self._batches = iter(self._walk)

    def _step_over(self) -> bool:
        """Note the damage at which the walk stopped and continue after it; return False at the end of the segment."""
        walk = self._walk
        assert walk is not None
        position, end = walk.position, self._end_of_batch(walk.position)
        if len(self.damages) == DAMAGES_MAX:
            end = self._size
        self.damages.append(Damage(position, end, walk.damage or "zeros where a batch should be"))
        self._begin(end, walk.next_offset)
        return end < self._size

    def _end_of_batch(self, position: int) -> int:
        """Return the end of the damaged batch if another header or the segment's end follows; otherwise the segment's
        end.
        """
        fields = self._header(position)
        if fields is None or fields[MAGIC] != CURRENT_MAGIC or fields[LENGTH] <= HEADER_SIZE - LOG_OVERHEAD:
            return self._size
        end = position + fields[LENGTH] + LOG_OVERHEAD
        following = self._header(end) if end < self._size else None
        plausible = end == self._size or (following is not None and following[MAGIC] == CURRENT_MAGIC)
        return end if plausible else self._size

    def _header(self, position: int) -> tuple[int, ...] | None:
        assert self._file is not None
        content = self._disk.read(self._file, HEADER_SIZE, position)
        return HEADER.unpack(content) if len(content) == HEADER_SIZE else None
