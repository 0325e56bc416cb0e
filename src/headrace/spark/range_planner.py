"""Plan the offset ranges of a batch from offset vectors alone: the same arguments give the same plan."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from headrace.model.ids import TopicPartition
from headrace.spark.offset_vectors import OffsetVector


class OffsetRange(NamedTuple):
    partition: TopicPartition
    begin: int
    end: int


def ranges_between(starts: OffsetVector, ends: OffsetVector) -> list[OffsetRange]:
    """Return the ranges between the two vectors, by partition; empty where a start is after its end."""
    return [OffsetRange(each, starts[each], ends[each]) for each in sorted(ends) if starts[each] < ends[each]]


def split_ranges(
    ranges: Iterable[OffsetRange], *, partitions_min: int | None, records_max: int | None
) -> list[OffsetRange]:
    """Split ranges into pieces of about equal size, with a record limit per piece and a least number of pieces."""
    whole = list(ranges)
    if records_max is not None:
        whole = [piece for each in whole for piece in _cut(each, -(-(each.end - each.begin) // records_max))]
    if partitions_min is None or not whole or len(whole) >= partitions_min:
        return whole
    total = sum(each.end - each.begin for each in whole)
    pieces: list[OffsetRange] = []
    for each in whole:
        size = each.end - each.begin
        share = -(-size * partitions_min // total)
        pieces += _cut(each, min(size, max(1, share)))
    return pieces


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    size = whole.end - whole.begin
    marks = [whole.begin + size * each // count for each in range(count + 1)]
    return [OffsetRange(whole.partition, *pair) for pair in pairwise(marks)]


def limited(starts: OffsetVector, ends: OffsetVector, *, offsets_max: int) -> dict[TopicPartition, int]:
    """Limit the total distance to the ends; each partition gets its share of the waiting offsets.

    A share is at least one offset, so the sum may exceed the limit by the number of partitions.
    """
    sizes = {each: max(0, ends[each] - starts[each]) for each in ends}
    total = sum(sizes.values())
    if total <= offsets_max:
        return dict(ends)
    reduced: dict[TopicPartition, int] = {}
    for partition, size in sizes.items():
        share = offsets_max * size // total
        # Without this, a partition with few waiting offsets would be starved for ever.
        share = max(share, 1 if size else 0)
        reduced[partition] = min(ends[partition], starts[partition] + share) if size else ends[partition]
    return reduced


def offsets_within(
    starts: OffsetVector, ends: OffsetVector, bytes_per_offset: Mapping[TopicPartition, float], *, bytes_max: int
) -> dict[TopicPartition, int]:
    """Limit the total bytes to the ends, by the average size of an offset in each partition."""
    sizes = {each: max(0, ends[each] - starts[each]) * bytes_per_offset.get(each, 0.0) for each in ends}
    total = sum(sizes.values())
    if total <= bytes_max:
        return dict(ends)
    reduced: dict[TopicPartition, int] = {}
    for partition, end in ends.items():
        waiting = max(0, end - starts[partition])
        share = max(int(waiting * bytes_max / total), 1 if waiting else 0)
        reduced[partition] = min(end, starts[partition] + share) if waiting else end
    return reduced


def count_between(starts: OffsetVector, ends: OffsetVector) -> int:
    return sum(max(0, ends[each] - starts[each]) for each in ends if each in starts)
