"""Helpers of the log's tests: batches, a virtual disk, and a log opened the way the broker does."""

from headrace.log.config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.uptime import DirectoryUptime
from headrace.log.work import Work
from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.disk import Disk, FileRange
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import HEADER, HeaderFields
from headrace.wire.records.reader import batches, records

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = TopicId(bytes(range(16)))
FOLDER = "data/orders-0"
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def virtual_disk(seed: int = 1) -> VirtualDisk:
    return VirtualDisk(SeededEntropy(seed), Trace())


def batch_of(
    *values: bytes,
    timestamps: list[int] | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compression: int = 0,
) -> bytearray:
    times = timestamps or [NOW_MS] * len(values)
    return build_batch(
        [NewRecord(time, None, value) for time, value in zip(times, values, strict=True)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        compression=compression,
    )


def fields_of(batch: bytearray) -> HeaderFields:
    fields: HeaderFields = HEADER.unpack_from(batch)
    return fields


def open_log(
    disk: Disk,
    config: LogConfig | None = None,
    *,
    folder: str = FOLDER,
    recovery_point: int = 0,
    start_offset: int = 0,
    clean: bool = False,
    wall_ms: int = NOW_MS,
    uptime: DirectoryUptime | None = None,
) -> PartitionLog:
    return PartitionLog.open(
        disk,
        folder,
        PARTITION,
        TOPIC_ID,
        config or LogConfig(),
        recovery_point=recovery_point,
        start_offset=start_offset,
        clean_shutdown=clean,
        wall_ms=wall_ms,
        uptime=uptime,
    )


def append(log: PartitionLog, *batches_given: bytearray, epoch: int = 0, wall_ms: int = NOW_MS) -> list[int]:
    """One turn: all batches staged, then one write; their base offsets."""
    offsets = [log.stage(memoryview(batch), fields_of(batch), epoch, wall_ms) for batch in batches_given]
    log.write_staged()
    return offsets


def bytes_of(disk: Disk, part: FileRange) -> bytes:
    return disk.read(part.file, part.length, part.position)


def values_of(disk: Disk, part: FileRange | None) -> list[tuple[int, bytes]]:
    """Offset and value of every record in a slice, which must hold whole batches only."""
    if part is None:
        return []
    return [(r.offset, r.value or b"") for batch in batches(bytes_of(disk, part)) for r in records(batch)]


def read_all(log: PartitionLog, *, max_bytes: int = 1 << 20, begin: int | None = None) -> list[tuple[int, bytes]]:
    """Return what a consumer sees that reads from the start (or `begin`) to the end."""
    found: list[tuple[int, bytes]] = []
    offset = log.start_offset if begin is None else begin
    while True:
        part = log.read(offset, max_bytes, log.end_offset, True)
        if part is None:
            return found
        values = values_of(log.disk, part)
        assert values, "a slice holds at least one batch"
        assert values[-1][0] >= offset, "a slice reaches the offset it was asked for"
        found += [(at, value) for at, value in values if at >= offset]
        offset = values[-1][0] + 1


def filled(disk: VirtualDisk, config: LogConfig, batches: int = 12, size: int = 100) -> PartitionLog:
    log = open_log(disk, config)
    for number in range(batches):
        append(log, batch_of(b"%02d" % number + bytes(size), timestamps=[NOW_MS + number]))
    return log


def run(work: Work | None) -> None:
    assert work is not None
    work.run_inline()


def truncate(log: PartitionLog, offset: int) -> None:
    """Truncate the log in place, if there is anything to drop."""
    if (work := log.truncation.work(offset)) is not None:
        work.run_inline()
