"""Decide on the loop, from state in memory, which segments of a log may be cleaned and whether they should be.

Only whole closed segments are cleaned: those that are on disk, below the last stable offset, and older than the minimum
compaction lag. They should be cleaned when enough of the log is dirty or the maximum lag has passed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headrace.wire.records.header import HEADER, HEADER_SIZE, MAX_TIMESTAMP

from ..config import DAY_MS, NEVER
from ..segment import Segment
from .records import inflated_bytes_max

if TYPE_CHECKING:
    from ..partition_log import PartitionLog


class SourceSegment(NamedTuple):
    """A segment as it was when the cleaning was planned."""

    base_offset: int
    end_offset: int
    size: int
    index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """Everything a cleaning needs to know; it may run in another process."""

    folder: str
    unique: str
    """Part of the names of the files it writes, so that no other cleaning writes the same files."""
    segments: tuple[SourceSegment, ...]
    later_segments: tuple[SourceSegment, ...]
    """Segments that are not cleaned but may hold the markers of cleaned transactions and producers' last batches."""
    dirty_from: int
    now_ms: int
    delete_retention_ms: int
    key_map_bytes_max: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    producer_expiration_ms: int
    inflated_bytes_max: int
    """Batches whose records decompress to more than this are kept unchanged."""


class Cleanable(NamedTuple):
    """The clean part of a log, and the part that could be cleaned."""

    dirty_from: int
    """Below this offset every key has one record."""
    clean_below: int
    """Base offset of the first segment that must not be cleaned yet."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """Part of the log is older than the maximum compaction lag."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def cleanable(log: "PartitionLog", *, clean_offset: int, stable_offset: int, wall_ms: int) -> Cleanable:
    """Measure the cleanable part. `clean_offset` comes from the checkpoint and is ignored if it lies outside the
    log.
    """
    dirty_from = clean_offset if log.start_offset <= clean_offset <= log.end_offset else log.start_offset
    clean_bytes = dirty_bytes = 0
    clean_below = log.segments[0].base_offset
    too_new_ms, overdue_ms = log.config.min_compaction_lag_ms, log.config.max_compaction_lag_ms
    is_overdue = False
    for segment in log.segments:
        if not _may_be_cleaned(log, segment, stable_offset):
            break
        if segment.next_offset > dirty_from:
            if too_new_ms > 0 and wall_ms - _newest_ms(segment) < too_new_ms:
                break
            dirty_bytes += segment.size
            is_overdue = is_overdue or (overdue_ms < NEVER and wall_ms - _oldest_ms(log, segment) > overdue_ms)
        else:
            clean_bytes += segment.size
        clean_below = segment.next_offset
    return Cleanable(dirty_from, clean_below, clean_bytes, dirty_bytes, is_overdue)


def make_plan(
    log: "PartitionLog",
    found: Cleanable,
    *,
    unique: str,
    wall_ms: int,
    key_map_bytes_max: int,
    producer_expiration_ms: int = DAY_MS,
) -> CleaningPlan | None:
    """Plan a cleaning; None if there is no segment to clean."""
    config = log.config
    sources = tuple(_source(segment) for segment in log.segments if segment.next_offset <= found.clean_below)
    if not sources:
        return None
    return CleaningPlan(
        folder=log.path,
        unique=unique,
        segments=sources,
        later_segments=tuple(_source(segment) for segment in log.segments[len(sources) :]),
        dirty_from=found.dirty_from,
        now_ms=wall_ms,
        delete_retention_ms=config.delete_retention_ms,
        key_map_bytes_max=key_map_bytes_max,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        producer_expiration_ms=producer_expiration_ms,
        inflated_bytes_max=inflated_bytes_max(config.max_message_bytes),
    )


def source_segments(log: "PartitionLog", sources: Iterable[SourceSegment]) -> list[Segment] | None:
    """Return the log's segments that match these planned ones; None if any is gone or has changed."""
    by_base = {segment.base_offset: segment for segment in log.segments[:-1]}
    found = [by_base.get(source.base_offset) for source in sources]
    segments = [segment for segment in found if segment is not None]
    same = all(segment.size == source.size for segment, source in zip(segments, sources, strict=False))
    return segments if same and len(segments) == len(found) else None


def _may_be_cleaned(log: "PartitionLog", segment: Segment, stable_offset: int) -> bool:
    limit = min(stable_offset, log.recovery_point)
    is_closed = segment is not log.active and log.is_flushed(segment) and not segment.transactions.is_unsynced
    return is_closed and segment.next_offset <= limit and segment.size > 0


def _source(segment: Segment) -> SourceSegment:
    return SourceSegment(
        base_offset=segment.base_offset,
        end_offset=segment.next_offset,
        size=segment.size,
        index_bytes=max(segment.index.stored_bytes, segment.time_index.stored_bytes),
    )


def _newest_ms(segment: Segment) -> int:
    return segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms


def _oldest_ms(log: "PartitionLog", segment: Segment) -> int:
    """Return the time of the first batch; read from disk once if opening the log did not read it."""
    if segment.first_timestamp < 0:
        header = log.disk.read(log.files.handle(segment.log), HEADER_SIZE, 0)
        found: int = HEADER.unpack_from(header)[MAX_TIMESTAMP]
        segment.first_timestamp = found if found >= 0 else segment.created_ms
    return segment.first_timestamp
