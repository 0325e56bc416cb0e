"""The logs of replicas as the disks of their brokers have them: lists of batches, followed from step to step."""

import zlib
from bisect import bisect_left
from typing import NamedTuple

from headrace.log.partition_log import PartitionLog
from headrace.sim.disk import VirtualDisk
from headrace.wire.records.header import BASE_OFFSET, HEADER, LAST_OFFSET_DELTA, LEADER_EPOCH, LENGTH, LOG_OVERHEAD


class StoredBatch(NamedTuple):
    base_offset: int
    next_offset: int
    leader_epoch: int
    checksum: int
    """Of all its bytes, those that the leader has stamped too."""


class ReplicaLog:
    """The batches of one replica in one process; `follow` reads what was written since."""

    def __init__(self, disk: VirtualDisk, log: PartitionLog) -> None:
        self.log = log
        self._disk = disk
        self._segments = log.segments
        """A truncation replaces the list."""
        self.batches: list[StoredBatch] = []
        self._bases: list[int] = []
        self.end_offset = -1
        self._position: tuple[int, int] = log.segments[0].base_offset, 0
        """The base offset of a segment, and how many of its bytes were read."""
        self.equal_below = 0
        """Below this offset it was found equal to what is committed."""

    @property
    def is_current(self) -> bool:
        return self.log.segments is self._segments

    def follow(self) -> list[StoredBatch]:
        """Return the batches that were written since the last call."""
        base, done = self._position
        first = len(self.batches)
        for segment in self.log.segments:
            if segment.base_offset < base:
                continue
            position = done if segment.base_offset == base else 0
            self._read(self._disk.content(segment.log.path), position, segment.size)
            self._position = segment.base_offset, segment.size
        self.end_offset = self.log.end_offset
        return self.batches[first:]

    def _read(self, content: memoryview, position: int, end: int) -> None:
        while position < end:
            fields = HEADER.unpack_from(content, position)
            size = fields[LENGTH] + LOG_OVERHEAD
            next_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
            checksum = zlib.crc32(content[position : position + size])
            self.batches.append(StoredBatch(fields[BASE_OFFSET], next_offset, fields[LEADER_EPOCH], checksum))
            self._bases.append(fields[BASE_OFFSET])
            position += size

    def between(self, begin: int, end: int) -> list[StoredBatch]:
        """Return the batches from the one that begins at `begin` to the last one that ends below `end`, or there."""
        first = bisect_left(self._bases, begin)
        last = bisect_left(self._bases, end, first)
        return self.batches[first:last]
