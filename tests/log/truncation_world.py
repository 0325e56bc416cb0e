"""Leaders, their replicas and what a truncation must leave of them, and the ends of a process in the middle of it."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from headrace.log.config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.sim.disk import VirtualDisk
from headrace.wire.records.header import HEADER

from .replica_world import (
    SMALL,
    Writer,
    check_equal,
    check_indexes,
    sent,
    split,
)
from .world import (
    FOLDER,
    NOW_MS,
    open_log,
    read_all,
    virtual_disk,
)

LARGE = replace(SMALL, segment_bytes=1 << 20, snapshot_interval_bytes=1 << 20, index_interval_bytes=50)
"""The end of the log and its indexes are in the segment that is cut, and a flush leaves the indexes alone."""


class Crash(Exception):
    """The process ends at an operation of the disk."""


def history(seed: int, *, leader_epoch: int = 0, turns: int = 12) -> PartitionLog:
    """The log of a leader that wrote some epochs."""
    log = open_log(virtual_disk(seed), SMALL)
    writer = Writer(Random(seed))
    for step in range(3):
        log.begin_epoch(leader_epoch + 2 * step)
        writer.write(log, leader_epoch + 2 * step, turns // 3)
    return log


def forked(leader: PartitionLog, offset: int, seed: int, *, leader_epoch: int, turns: int = 6) -> PartitionLog:
    """Another leader that had the same batches below the offset, and went on by itself."""
    log = replica_of(leader, below=offset)
    random = Random(seed)
    writer = Writer(random, value=1000 * random.randrange(1, 3))  # its times may be those of what was dropped
    writer.follow(log)
    log.begin_epoch(leader_epoch)
    writer.write(log, leader_epoch, turns)
    return log


def replica_of(
    leader: PartitionLog, *, below: int = 1 << 62, disk: VirtualDisk | None = None, config: LogConfig = SMALL
) -> PartitionLog:
    """A follower that never had anything else than the batches that end below the offset."""
    log = open_log(new_disk(99) if disk is None else disk, config)
    while log.end_offset < leader.end_offset:
        batches = split(sent(leader, log.end_offset, max_bytes=3000))
        kept = [batch for batch in batches if _end(batch) <= below]
        log.replicated.append(kept, NOW_MS)
        if len(kept) < len(batches):
            break
    return log


def _end(batch: memoryview) -> int:
    fields = HEADER.unpack_from(batch)
    end: int = fields[0] + fields[6] + 1
    return end


def new_disk(seed: int) -> VirtualDisk:
    disk = virtual_disk(seed)
    disk.make_directory(FOLDER)
    disk.sync_directory("data")
    disk.sync_directory("")
    return disk


def check_same(found: PartitionLog, expected: PartitionLog) -> None:
    check_equal(found, expected)
    check_indexes(found)
    assert read_all(found) == read_all(expected)
    assert found.recovery_point <= found.synced_offset <= found.end_offset


def ends(disk: VirtualDisk, step: int, call: Callable[[], object]) -> bool:
    """Call it; return False if it was ended before its operation on the disk with this number."""
    left = step

    def count(_operation: str, _path: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash

    disk.on_operation = count
    try:
        call()
    except Crash:
        return False
    finally:
        disk.on_operation = None
    return True
