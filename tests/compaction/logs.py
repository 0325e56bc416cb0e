"""Helpers of the tests of compaction: keyed batches, a log of small segments, and one pass from plan to swap."""

from collections.abc import Iterable, Iterator

from headrace.log.compaction.cleaner import CleanedGroup, clean
from headrace.log.compaction.plan import CleaningPlan, cleanable, make_plan
from headrace.log.compaction.swap import swap_work
from headrace.log.config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.ports.disk import Disk
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import HEADER, HeaderFields
from headrace.wire.records.reader import Record, batches, is_control, records

from ..log.world import NOW_MS, append, bytes_of, open_log

KEY_MAP_BYTES = 1 << 20
CONFIG = LogConfig(
    compact=True,
    delete=False,
    segment_bytes=600,
    index_interval_bytes=150,
    preallocate=False,
    file_delete_delay_ms=0,
    delete_retention_ms=1000,
)

Pair = tuple[bytes | None, bytes | None]


def keyed_batch(
    *pairs: Pair,
    timestamps: list[int] | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compression: int = 0,
    transactional: bool = False,
) -> bytearray:
    times = timestamps or [NOW_MS] * len(pairs)
    return build_batch(
        [NewRecord(time, key, value) for time, (key, value) in zip(times, pairs, strict=True)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        compression=compression,
        transactional=transactional,
    )


def marker(producer_id: int, *, commit: bool, producer_epoch: int = 0) -> bytearray:
    """The control batch that ends a transaction."""
    key = b"\x00\x00" + (b"\x00\x01" if commit else b"\x00\x00")
    return build_batch(
        [NewRecord(NOW_MS, key, b"\x00\x00\x00\x00\x00\x00")],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def flush(log: PartitionLog) -> None:
    work = log.flush_work()
    if work is not None:
        work.run_inline()


def planned(
    log: PartitionLog,
    *,
    clean_offset: int = 0,
    stable_offset: int | None = None,
    wall_ms: int = NOW_MS,
    key_map_bytes_max: int = KEY_MAP_BYTES,
    unique: str = "u",
) -> CleaningPlan | None:
    stable = log.end_offset if stable_offset is None else stable_offset
    found = cleanable(log, clean_offset=clean_offset, stable_offset=stable, wall_ms=wall_ms)
    return make_plan(log, found, unique=unique, wall_ms=wall_ms, key_map_bytes_max=key_map_bytes_max)


def cleaned_groups(disk: Disk, plan: CleaningPlan) -> Iterator[CleanedGroup]:
    for result in clean(disk, plan):
        if isinstance(result, CleanedGroup):
            yield result


def compact(
    log: PartitionLog,
    *,
    roll: bool = True,
    clean_offset: int = 0,
    stable_offset: int | None = None,
    wall_ms: int = NOW_MS,
    key_map_bytes_max: int = KEY_MAP_BYTES,
) -> int:
    """One whole pass in place; up to where the log is clean then."""
    if roll and log.active.size:
        log.roll()
    flush(log)
    plan = planned(
        log,
        clean_offset=clean_offset,
        stable_offset=stable_offset,
        wall_ms=wall_ms,
        key_map_bytes_max=key_map_bytes_max,
    )
    if plan is None:
        return clean_offset
    cleaned_to = clean_offset
    for group in cleaned_groups(log.disk, plan):
        work = swap_work(log, group, wall_ms=wall_ms)
        assert (work is None) == (group.files is None)
        if work is not None:
            work.run_inline()
        cleaned_to = group.cleaned_to
    return cleaned_to


def slices(log: PartitionLog, *, max_bytes: int = 1 << 20, begin: int | None = None) -> Iterator[bytes]:
    """Yield the records of fetches from `begin` to the end, each beginning behind the last batch of the one before."""
    offset = log.start_offset if begin is None else begin
    while True:
        part = log.read(offset, max_bytes, log.end_offset, True)
        if part is None:
            return
        content = bytes_of(log.disk, part)
        yield content
        *_, last = batches(content)
        fields: HeaderFields = HEADER.unpack_from(last)
        after = fields[0] + fields[6] + 1
        assert after > offset, "a reader gets further with every slice"
        offset = after


def all_batches(log: PartitionLog, *, max_bytes: int = 1 << 20) -> list[bytes]:
    return [bytes(batch) for content in slices(log, max_bytes=max_bytes) for batch in batches(content)]


def read_records(log: PartitionLog, *, max_bytes: int = 1 << 20, begin: int | None = None) -> list[Record]:
    """Return what a consumer is given."""
    first = log.start_offset if begin is None else begin
    return [
        record
        for content in slices(log, max_bytes=max_bytes, begin=begin)
        for batch in batches(content)
        if not is_control(batch)
        for record in records(batch)
        if record.offset >= first
    ]


def pairs(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_records(log)]


def filled(disk: Disk, given: Iterable[Pair], config: LogConfig = CONFIG, *, per_batch: int = 1) -> PartitionLog:
    log = open_log(disk, config)
    rows = list(given)
    for begin in range(0, len(rows), per_batch):
        append(log, keyed_batch(*rows[begin : begin + per_batch]))
    return log
