"""Record batches of offset commits that differ only in their offsets, their leader epochs and the time."""

from collections.abc import Sequence
from itertools import pairwise
from struct import Struct

from headrace.core.groups.records import CommittedOffset, GroupRecords, OffsetRecord
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import (
    BASE_TIMESTAMP_AT,
    CRC_AT,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LENGTH,
    HeaderFields,
    checksum,
)

_NUMBERS_BYTES, _TIME_BYTES = 8 + 4, 8
"""The sizes of an offset with the leader epoch that follows it, and of the commit time."""
_TIMESTAMPS = Struct(">qq")
_CRC = Struct(">I")
_FORMAT = GroupRecords()

CommitTarget = tuple[str, int, str]
"""A topic, a partition and the metadata of its offset."""


class OffsetCommitBatch:
    """A record batch for one group and some partitions, built once; each commit writes its numbers into a copy."""

    __slots__ = ("_batch", "_between", "_layout", "_length", "_numbers_at")

    def __init__(self, group: str, targets: Sequence[CommitTarget]) -> None:
        # Two batches whose numbers have no bit in common differ exactly where the numbers are.
        batch, other = (_built(group, targets, number) for number in (0, -1))
        runs = differing_runs(batch[HEADER_SIZE:], other[HEADER_SIZE:])
        assert [end - begin for begin, end in runs] == [_NUMBERS_BYTES, _TIME_BYTES] * len(targets)
        self._batch = bytes(batch)
        self._length: int = HEADER.unpack_from(batch)[LENGTH]
        self._numbers_at = HEADER_SIZE + runs[0][0]
        self._between = [bytes(batch[HEADER_SIZE + a[1] : HEADER_SIZE + b[0]]) for a, b in pairwise(runs)]
        fields = (f"{'q' if number % 2 else 'qi'}{len(text)}s" for number, text in enumerate(self._between))
        self._layout = Struct(">" + "".join(fields) + "q")

    def of(self, offsets: Sequence[int], leader_epochs: Sequence[int], wall_ms: int) -> bytearray:
        """HOT. Return the batch with these numbers."""
        batch = bytearray(self._batch)
        if len(offsets) == 1:
            self._layout.pack_into(batch, self._numbers_at, offsets[0], leader_epochs[0], self._between[0], wall_ms)
        else:
            between = iter(self._between)
            values: list[int | bytes] = []
            for offset, epoch in zip(offsets, leader_epochs, strict=True):
                values += (offset, epoch, next(between), wall_ms, next(between, b""))
            self._layout.pack_into(batch, self._numbers_at, *values[:-1])
        _TIMESTAMPS.pack_into(batch, BASE_TIMESTAMP_AT, wall_ms, wall_ms)
        _CRC.pack_into(batch, CRC_AT, checksum(batch))
        return batch

    def header(self, count: int, wall_ms: int) -> HeaderFields:
        """HOT. Return the header fields of the batch, except for the checksum."""
        return (0, self._length, -1, CURRENT_MAGIC, 0, 0, count - 1, wall_ms, wall_ms, -1, -1, -1, count)


def _built(group: str, targets: Sequence[CommitTarget], number: int) -> bytearray:
    builder = BatchBuilder()
    for topic, partition, metadata in targets:
        committed = CommittedOffset(number, number, metadata, number)
        builder.append(0, *_FORMAT.encode(OffsetRecord(group, topic, partition, committed)))
    return builder.build()


def differing_runs(one: Buffer, other: Buffer) -> list[tuple[int, int]]:
    """Return begin and end of each run of bytes in which two buffers of the same length differ."""
    differ = [a != b for a, b in zip(one, other, strict=True)]
    begins = [at for at, (before, here) in enumerate(pairwise([False, *differ])) if here and not before]
    ends = [at for at, (here, behind) in enumerate(pairwise([*differ, False]), 1) if here and not behind]
    return list(zip(begins, ends, strict=True))
