"""Names of segments that one process made and the next one synced: a kill, a flush, then a power cut."""

import pytest

from headrace.log.config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.model.ids import TopicId, TopicPartition
from headrace.sim.clock import WALL_START_MS
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace
from headrace.sim.world import CutOff
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import HEADER

pytestmark = pytest.mark.usefixtures("virtual_world_only")
FOLDER = "data/orders-0"
CONFIG = LogConfig(segment_bytes=1_000, preallocate=False)
BATCHES = 10


def opened(disk):
    log = PartitionLog.open(
        disk,
        FOLDER,
        TopicPartition("orders", 0),
        TopicId(bytes(range(16))),
        CONFIG,
        recovery_point=0,
        start_offset=0,
        clean_shutdown=False,
        wall_ms=WALL_START_MS,
    )
    disk.sync_directory("data")
    return log


def append(log):
    batch = memoryview(build_batch([NewRecord(WALL_START_MS, None, bytes(300))]))
    log.stage(batch, HEADER.unpack_from(batch), 0, WALL_START_MS)
    log.write_staged()


def flush(log):
    work = log.flush_work()
    assert work is not None
    work.run_inline()


@pytest.mark.parametrize("seed", range(10))
def test_segments_made_by_a_killed_process_are_durable_after_a_flush_of_the_next(seed):
    disk = VirtualDisk(SeededEntropy(seed), Trace())
    disk.make_directory("data")
    disk.sync_directory("")
    log = opened(disk)
    append(log)
    flush(log)
    for _ in range(BATCHES):
        append(log)
    assert len(log.segments) > 2
    disk.kill()
    log = opened(disk)
    flush(log)
    assert log.recovery_point == BATCHES + 1
    disk.crash(SeededEntropy(seed))
    assert opened(disk).end_offset == BATCHES + 1


@pytest.mark.parametrize("seed", range(16))
def test_a_power_cut_while_retention_renames_brings_no_segment_back_without_those_behind_it(seed):
    disk = VirtualDisk(SeededEntropy(seed), Trace())
    disk.make_directory("data")
    disk.sync_directory("")
    log = opened(disk)
    for _ in range(BATCHES):
        append(log)
    flush(log)
    log.advance_start(BATCHES - 2)
    work = log.retirement.work(WALL_START_MS, BATCHES)
    calls = 3 + seed

    def cut_off(_operation, _path):
        nonlocal calls
        calls -= 1
        if not calls:
            raise CutOff

    disk.on_operation = cut_off
    with pytest.raises(CutOff):
        work.run()
    disk.on_operation = None
    disk.crash(SeededEntropy(seed))
    assert opened(disk).end_offset == BATCHES
