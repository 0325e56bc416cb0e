"""Walk over the record batches that a leader sent to a follower, and check each of them before it is stored.

The checks need only the header and the checksum; records are not opened. A walk stops at the first batch that is not as
it should be, so that everything before it can be kept; `fault_at` then says what is wrong with it.

`batch_walk.h` is the compiled equivalent, if it was built (`headrace.wire.compiled`); `walk_batches_plainly` is its
reference, and is used elsewhere.
"""

from enum import IntEnum
from typing import NamedTuple

from headrace.wire.checksum import crc32c
from headrace.wire.records.header import (
    BASE_OFFSET,
    CRC,
    CRC_COVERS_FROM,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LENGTH,
    LOG_OVERHEAD,
    MAGIC,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORD_COUNT,
    HeaderFields,
)

LEADER_EPOCH_MAX = (1 << 31) - 2
"""The number above it ends the file of leader epochs."""
OFFSET_MAX = (1 << 63) - 2
"""The offset after it is that of a log's end."""
NO_TIME = -1
"""Timestamp of a batch that compaction emptied."""

BatchPlace = tuple[int, int, int, int]
"""Base offset, last offset, maximum timestamp and size of one batch."""


class BatchFault(IntEnum):
    """Reasons to refuse a batch. Up to `CHECKSUM` the batch itself is damaged, after it the batch does not follow."""

    NONE = 0
    CUT_OFF = 1
    FORMAT = 2
    LENGTH = 3
    TOO_LARGE = 4
    COUNTS = 5
    CHECKSUM = 6
    OVERLAP = 7
    GAP = 8
    EPOCH_WENT_BACK = 9
    EPOCH_AHEAD = 10


class WalkBounds(NamedTuple):
    """Values that the next batch must agree with."""

    next_offset: int
    leader_epoch: int
    """That of the batch before; the next one may not be from an older leader."""
    leader_epoch_max: int = LEADER_EPOCH_MAX
    batch_bytes_max: int = (1 << 31) - 1
    gaps: bool = False
    """True if offsets may be missing before a batch, because compaction removed them."""


Walked = tuple[list[BatchPlace], list[tuple[int, HeaderFields]], int]
"""The batches that were accepted; position and header of those with a producer or a new leader epoch; and the position
after the last accepted batch, which is the end of the buffer if there was no fault.
"""


def walk_batches_plainly(batches: memoryview, bounds: WalkBounds) -> Walked:
    """HOT. Check the batches in a buffer, up to its end or the first batch with a fault."""
    next_offset, epoch, epoch_max, size_max, gaps = bounds
    places: list[BatchPlace] = []
    noted: list[tuple[int, HeaderFields]] = []
    position, end = 0, len(batches)
    unpack = HEADER.unpack_from
    while end - position >= HEADER_SIZE:
        fields: HeaderFields = unpack(batches, position)
        base, size, batch_epoch = fields[BASE_OFFSET], fields[LENGTH] + LOG_OVERHEAD, fields[LEADER_EPOCH]
        delta = fields[LAST_OFFSET_DELTA]
        behind = position + size
        if (
            fields[MAGIC] != CURRENT_MAGIC
            or not HEADER_SIZE <= size <= size_max
            or behind > end
            or not 0 <= fields[RECORD_COUNT] <= delta + 1
            or delta < 0
            or not epoch <= batch_epoch <= epoch_max
            or batch_epoch < 0
            or base > OFFSET_MAX - delta
            or (base != next_offset and (base < next_offset or not gaps))
            or crc32c(batches[position + CRC_COVERS_FROM : behind]) != fields[CRC]
        ):
            break
        next_offset = base + delta + 1
        places.append((base, next_offset - 1, fields[MAX_TIMESTAMP] if fields[RECORD_COUNT] else NO_TIME, size))
        if fields[PRODUCER_ID] >= 0 or batch_epoch > epoch:
            noted.append((position, fields))
            epoch = batch_epoch
        position = behind
    return places, noted, position


def fault_at(batches: memoryview, position: int, bounds: WalkBounds) -> tuple[BatchFault, str]:
    """Return the fault of the batch at which a walk stopped, with its description; NONE for a sound batch."""
    rest = len(batches) - position
    if rest < HEADER_SIZE:
        return BatchFault.CUT_OFF, f"its last {rest} bytes are less than the header of a batch"
    fields: HeaderFields = HEADER.unpack_from(batches, position)
    return (
        _fault_of_bytes(batches[position:], fields, bounds) or _fault_of_place(fields, bounds) or (BatchFault.NONE, "")
    )


def _fault_of_bytes(batch: memoryview, fields: HeaderFields, bounds: WalkBounds) -> tuple[BatchFault, str] | None:
    size, count, delta = fields[LENGTH] + LOG_OVERHEAD, fields[RECORD_COUNT], fields[LAST_OFFSET_DELTA]
    if fields[MAGIC] != CURRENT_MAGIC:
        return BatchFault.FORMAT, f"it has the unknown batch format {fields[MAGIC]}"
    if size < HEADER_SIZE:
        return BatchFault.LENGTH, f"it declares {size} bytes, less than its header needs"
    if size > bounds.batch_bytes_max:
        return (
            BatchFault.TOO_LARGE,
            f"it declares {size} bytes, more than the {bounds.batch_bytes_max} of the largest batch",
        )
    if size > len(batch):
        return BatchFault.CUT_OFF, f"it declares {size} bytes, but only {len(batch)} were sent"
    if delta < 0 or not 0 <= count <= delta + 1 or fields[BASE_OFFSET] > OFFSET_MAX - delta:
        return BatchFault.COUNTS, f"it declares {count} records and {delta + 1} offsets from {fields[BASE_OFFSET]} on"
    if crc32c(batch[CRC_COVERS_FROM:size]) != fields[CRC]:
        return BatchFault.CHECKSUM, "its checksum is wrong"
    return None


def _fault_of_place(fields: HeaderFields, bounds: WalkBounds) -> tuple[BatchFault, str] | None:
    base, epoch = fields[BASE_OFFSET], fields[LEADER_EPOCH]
    if base < bounds.next_offset:
        return BatchFault.OVERLAP, f"it begins at offset {base}, below the next offset {bounds.next_offset}"
    if base > bounds.next_offset and not bounds.gaps:
        return (
            BatchFault.GAP,
            f"it begins at offset {base} instead of {bounds.next_offset}, but no offset may be missing",
        )
    if epoch < max(bounds.leader_epoch, 0):
        return BatchFault.EPOCH_WENT_BACK, f"it has leader epoch {epoch} after {bounds.leader_epoch}"
    if epoch > bounds.leader_epoch_max:
        return BatchFault.EPOCH_AHEAD, f"it has leader epoch {epoch}, above the current {bounds.leader_epoch_max}"
    return None


try:
    from headrace.wire._compiled import walk_batches as walk_batches
except ImportError:
    walk_batches = walk_batches_plainly
