"""The files of a partition at one moment, described for a job that reads them without the broker."""

from itertools import islice
from typing import NamedTuple

from headrace.broker.partitions.reader import READ_COMMITTED
from headrace.broker.partitions.replica import Replica
from headrace.log import names
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.log.segment import Segment
from headrace.model.errors import ErrorCode

ENTRIES_PER_PARTITION_MAX = 50_000
"""Segments and aborted transactions of one partition that a scan may use. With more, the job has to fetch."""


class HeldSegment(NamedTuple):
    base_offset: int
    end_offset: int
    size_bytes: int
    """Bytes of the complete batches below the end of the scan; the file may be longer."""
    max_timestamp: int
    is_closed: bool
    segment: Segment

    @property
    def file_name(self) -> str:
        return f"{self.base_offset:020d}{names.LOG}"


class HeldPartition(NamedTuple):
    topic: str
    partition: int
    topic_id: bytes
    directory: LogDirectory
    log: PartitionLog
    leader_epoch: int
    start_offset: int
    end_offset: int
    high_watermark: int
    last_stable_offset: int
    leader_epochs: tuple[tuple[int, int], ...]
    segments: tuple[HeldSegment, ...]
    aborted: tuple[tuple[int, int, int], ...]
    """(producer id, first offset, offset of the marker) of each."""
    names_generation: int

    @property
    def entries(self) -> int:
        return len(self.segments) + len(self.aborted)

    def file_names(self) -> list[str]:
        """Return the names of all files that a reader may open."""
        found = [names.PARTITION_METADATA]
        for held in self.segments:
            found.append(held.file_name)
            if held.is_closed:
                found.append(f"{held.base_offset:020d}{names.INDEX}")
        return found

    def kept_bytes(self) -> int:
        """Return the bytes in files that are deleted from the log and exist only for the scan."""
        there = set() if self.log.closed else set(map(id, self.log.segments))
        return sum(held.segment.size for held in self.segments if id(held.segment) not in there)


def look_at(partition: Replica, directory: LogDirectory, isolation_level: int) -> HeldPartition | ErrorCode:
    """Describe the partition as it is now, up to the end that the isolation level may read."""
    log, role = partition.log, partition.role
    if any(segment.damaged for segment in log.segments) or log.failed:
        return ErrorCode.KAFKA_STORAGE_ERROR
    is_committed = isolation_level == READ_COMMITTED
    end = int(role.last_stable_offset if is_committed else role.high_watermark)
    wanted = [
        segment
        for segment in log.segments
        if segment.size and segment.next_offset > log.start_offset and segment.base_offset < end
    ]
    aborted = _aborted(log, end) if is_committed else ()
    if len(wanted) + len(aborted) > ENTRIES_PER_PARTITION_MAX:
        return ErrorCode.POLICY_VIOLATION
    return HeldPartition(
        partition.topic,
        partition.index,
        partition.topic_id,
        directory,
        log,
        role.leader_epoch,
        log.start_offset,
        end,
        int(role.high_watermark),
        int(role.last_stable_offset),
        tuple(zip(log.epochs.epochs, log.epochs.starts, strict=True)),
        tuple(_held(log, segment, end) for segment in wanted),
        aborted,
        log.names_generation,
    )


def _held(log: PartitionLog, segment: Segment, end: int) -> HeldSegment:
    size = segment.size
    if segment.next_offset > end:
        found = segment.find(end)
        size = segment.size if found is None else found[0]
    end_offset = min(segment.next_offset, end)
    is_closed = segment is not log.active
    return HeldSegment(segment.base_offset, end_offset, size, segment.max_timestamp, is_closed, segment)


def _aborted(log: PartitionLog, end: int) -> tuple[tuple[int, int, int], ...]:
    """Return the aborted transactions with records below `end`. Their markers may be above it."""
    found = (
        (entry.producer_id, entry.first_offset, entry.last_offset)
        for segment in log.segments
        if len(segment.transactions)
        for entry in segment.transactions.since(log.start_offset)
        if entry.first_offset < end
    )
    return tuple(islice(found, ENTRIES_PER_PARTITION_MAX + 1))
