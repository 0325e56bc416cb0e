"""Flushing and preallocating: work for helpers, and what it leaves behind."""

from contextlib import suppress
from errno import EMFILE, ENOSPC

import pytest

from headrace.log.config import LogConfig
from headrace.log.flush import GROWTH_FIRST_BYTES, Flusher
from headrace.log.partition_log import PartitionLog
from headrace.ports.disk import DataSync
from headrace.sim.entropy import SeededEntropy
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.markers import Marker, control_batch

from .world import (
    FOLDER,
    HOUR_MS,
    NOW_MS,
    append,
    batch_of,
    fields_of,
    filled,
    open_log,
    read_all,
    run,
    truncate,
    virtual_disk,
)


def busy(log: PartitionLog) -> PartitionLog:
    """The log as it is when all it holds was appended lately."""
    log.appended_bytes -= log.size_bytes
    log.preallocation.work()
    log.appended_bytes += log.size_bytes
    return log


def test_a_flush_moves_the_recovery_point_when_it_is_done_and_calls_back() -> None:
    log = filled(virtual_disk(), LogConfig(), batches=3)
    told: list[int] = []
    log.on_flushed = told.append
    work = log.flush_work()
    assert work is not None
    assert log.flush_work() is None, "one at a time"
    work.run()
    append(log, batch_of(b"later"))
    assert log.recovery_point == 0
    work.done(None, None)
    assert log.recovery_point == 3
    assert told == [3]
    run(log.flush_work())
    assert log.recovery_point == 4
    assert log.flush_work() is None


@pytest.mark.parametrize("more", [0, 1])
def test_much_is_synced_before_the_flush_that_writes_a_snapshot(more: int) -> None:
    disk = virtual_disk()
    log = filled(disk, LogConfig(snapshot_interval_bytes=GROWTH_FIRST_BYTES), batches=1)
    run(log.flush_work())
    told: list[int] = []
    log.on_flushed = told.append
    for _ in range(5):
        append(log, batch_of(bytes(1 << 20)))
    growth = log.flush_work()
    assert growth is not None
    assert isinstance(growth.run, DataSync)
    for _ in range(more):
        append(log, batch_of(b"meanwhile"))
    assert not log.flush_due(NOW_MS), "one at a time"
    run(growth)
    assert (told, log.recovery_point, log.active.index.stored) == ([6], 6, 0)
    assert log.flush_due(NOW_MS)
    run(log.flush_work())
    assert log.recovery_point == 6 + more
    assert f"{6 + more:020d}.snapshot" in disk.list_directory(FOLDER)
    assert log.active.index.stored == 4 + more
    assert not log.flush_due(NOW_MS)
    assert log.flush_work() is None


@pytest.mark.parametrize("event", ["nothing", "roll", "epoch", "truncation", "put off", "snapshot"])
def test_the_short_flush_does_what_the_long_one_does(event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sync of a log that only grew is a tuned form; the one that looks at everything is its oracle."""

    def history() -> tuple[object, ...]:
        disk = virtual_disk()
        log = filled(disk, LogConfig(snapshot_interval_bytes=4096, segment_bytes=1 << 20), batches=3)
        told: list[int] = []
        log.on_flushed = told.append
        for _ in range(3):
            run(log.flush_work())
            append(log, batch_of(b"more"))
        if event == "roll":
            log.roll()
        elif event == "epoch":
            log.begin_epoch(7)
        elif event == "truncation":
            work = log.flush_work()
            assert work is not None
            work.run_inline()
            truncate(log, 4)
        elif event == "put off":
            log.begin_epoch(8)
            disk.faults.fail("open", code=EMFILE, path_contains="leader-epoch")
            with suppress(OSError):
                run(log.flush_work())
        elif event == "snapshot":
            append(log, batch_of(bytes(5000)))
        append(log, batch_of(b"end"))
        for _ in range(2):
            if (work := log.flush_work()) is not None:
                work.run_inline()
        on_disk = sorted(disk.list_directory(FOLDER))
        return log.recovery_point, log.synced_offset, told, on_disk, log.flush_due(NOW_MS + HOUR_MS)

    tuned = history()
    monkeypatch.setattr(Flusher, "_only_grew", lambda self: False)
    assert tuned == history()


def test_a_failed_flush_fails_the_log_and_moves_nothing() -> None:
    disk = virtual_disk()
    log = filled(disk, LogConfig(), batches=3)
    failures: list[BaseException] = []
    log.on_failed = failures.append
    disk.faults.fail("data_sync")
    work = log.flush_work()
    assert work is not None
    with pytest.raises(OSError, match="error"):
        work.run_inline()
    assert log.failed
    assert len(failures) == 1
    assert log.recovery_point == 0
    assert log.flush_work() is None


@pytest.mark.parametrize("code", [ENOSPC, EMFILE])
@pytest.mark.parametrize(
    ("operation", "path", "durable"),
    [
        ("open", ".snapshot.tmp", True),
        ("write_vector", "leader-epoch-checkpoint", True),
        ("rename", ".snapshot.tmp", True),
        ("data_sync", ".snapshot.tmp", True),
        ("sync_directory", FOLDER, False),
        ("open", f"{0:020d}.log", False),
        ("write_vector", ".timeindex", False),
    ],
)
def test_a_flush_without_room_is_tried_again_and_the_recovery_point_waits(
    operation: str, path: str, durable: bool, code: int
) -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=1000, snapshot_interval_bytes=1, flush_messages=1, index_interval_bytes=0)
    log = filled(disk, config, batches=12)
    told: list[int] = []
    log.on_flushed = told.append
    log.files.open_files_max = 0
    for _ in range(4):
        log.files.close_idle()
    disk.faults.fail(operation, code=code, path_contains=path)
    work = log.flush_work()
    if work is not None:
        work.run_inline()
    assert not log.failed
    assert (log.recovery_point, told) == (0, [12] if durable else [])
    assert not log.flush_due(NOW_MS), "it rests first"
    assert not [name for name in disk.list_directory(FOLDER) if name.endswith(".tmp")]
    assert log.flush_due(NOW_MS + 500)
    run(log.flush_work())
    assert (log.recovery_point, told[-1]) == (12, 12)
    assert not log.flush_due(NOW_MS + 500)
    snapshots = [int(name[:20]) for name in disk.list_directory(FOLDER) if name.endswith(".snapshot")]
    assert snapshots == [*log.bases[1:], 12]
    for folder in ("", "data"):
        disk.sync_directory(folder)
    disk.crash(SeededEntropy(1))
    assert len(read_all(open_log(disk, recovery_point=12))) == 12


def test_snapshots_of_former_ends_are_replaced_also_after_one_was_put_off() -> None:
    disk = virtual_disk()
    log = filled(disk, LogConfig(snapshot_interval_bytes=1), batches=1)
    for number in range(1, 6):
        if number % 2:
            disk.faults.fail("sync_directory", code=ENOSPC)
        append(log, batch_of(b"x"))
        run(log.flush_work())
    assert [name for name in disk.list_directory(FOLDER) if name.endswith(".snapshot")].__len__() <= 3
    run(log.flush_work())
    assert [name for name in disk.list_directory(FOLDER) if name.endswith(".snapshot")] == [f"{6:020d}.snapshot"]


def test_a_clock_that_was_set_back_delays_a_flush_by_no_more_than_its_interval() -> None:
    log = filled(virtual_disk(), LogConfig(flush_ms=1000), batches=1)
    assert not log.flush_due(NOW_MS)
    assert not log.flush_due(NOW_MS - HOUR_MS)
    assert log.flush_due(NOW_MS - HOUR_MS + 1000)


@pytest.mark.parametrize(
    ("config", "due"),
    [
        (LogConfig(), False),
        (LogConfig(flush_messages=1), True),
        (LogConfig(flush_messages=4), False),
        (LogConfig(unclean_tail_bytes_max=200), True),
    ],
)
def test_when_a_flush_is_due(config: LogConfig, due: bool) -> None:
    assert filled(virtual_disk(), config, batches=3).flush_due(NOW_MS) is due


def test_a_flush_is_due_some_time_after_the_first_unflushed_append() -> None:
    log = filled(virtual_disk(), LogConfig(flush_ms=1000), batches=1)
    assert not log.flush_due(NOW_MS)
    assert not log.flush_due(NOW_MS + 999)
    assert log.flush_due(NOW_MS + 1000)
    run(log.flush_work())
    assert not log.flush_due(NOW_MS + 5000)


def test_a_sealed_segment_asks_for_a_flush_that_cuts_it_and_writes_a_snapshot() -> None:
    disk = virtual_disk()
    log = filled(disk, LogConfig(segment_bytes=2000, preallocation_bytes_min=512), batches=8)
    run(busy(log).preallocation.work())
    assert disk.file_size(log.segments[0].log.path) > log.segments[0].size
    append(log, batch_of(bytes(1000)))
    assert len(log.segments) == 2
    assert log.flush_due(NOW_MS)
    run(log.flush_work())
    assert disk.file_size(log.segments[0].log.path) == log.segments[0].size
    assert f"{log.bases[1]:020d}.snapshot" in disk.list_directory(FOLDER)
    assert not log.flush_due(NOW_MS)


def test_a_clean_close_cuts_what_a_flush_under_way_was_to_cut() -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=2000, preallocation_bytes_min=512)
    log = filled(disk, config, batches=8)
    run(busy(log).preallocation.work())
    run(log.flush_work())
    append(log, batch_of(bytes(1000)))
    assert log.flush_work() is not None  # no helper ever comes to it
    log.close()
    assert disk.file_size(log.segments[0].log.path) == log.segments[0].size
    disk.kill()
    again = open_log(disk, config, recovery_point=log.end_offset, clean=True)
    assert (again.end_offset, again.bases) == (log.end_offset, log.bases)


@pytest.mark.parametrize("seed", range(8))
def test_a_clean_close_syncs_what_a_flush_under_way_was_to_sync(seed: int) -> None:
    """Here an index of aborted transactions, which is not read again below the snapshot of a clean close."""
    disk = virtual_disk(seed)
    log = open_log(disk)
    for folder in ("", "data"):
        disk.sync_directory(folder)
    record = NewRecord(NOW_MS, None, b"x")
    append(log, build_batch([record], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    marker = control_batch(producer_id=7, producer_epoch=0, commit=False, coordinator_epoch=0, timestamp=NOW_MS)
    log.transactions.stage_marker(memoryview(marker), fields_of(marker), Marker(False, 0), 0, NOW_MS)
    log.write_staged()
    assert log.flush_work() is not None  # no helper ever comes to it
    log.close()
    disk.crash(SeededEntropy(seed))
    again = open_log(disk, recovery_point=2, clean=True)
    assert [entry.producer_id for entry in again.segments[0].transactions.since(0)] == [7]


def test_a_segment_is_not_cut_while_it_is_being_lengthened() -> None:
    disk = virtual_disk()
    log = filled(disk, LogConfig(segment_bytes=2000, preallocation_bytes_min=512), batches=8)
    lengthening = busy(log).preallocation.work()
    assert lengthening is not None
    append(log, batch_of(bytes(1000)))
    assert log.flush_work() is None
    run(lengthening)
    run(log.flush_work())
    assert disk.file_size(log.segments[0].log.path) == log.segments[0].size


def test_a_truncated_log_is_not_flushed_until_the_truncation_is_done() -> None:
    log = filled(virtual_disk(), LogConfig(flush_messages=1), batches=6)
    assert log.flush_due(NOW_MS)
    work = log.truncation.work(2)
    assert work is not None
    assert not log.flush_due(NOW_MS)
    assert log.flush_work() is None
    work.run_inline()
    run(log.flush_work())
    assert (log.recovery_point, log.end_offset) == (2, 2)


# Preallocation


def test_idle_segments_reserve_nothing_and_busy_ones_as_much_as_they_take() -> None:
    disk = virtual_disk()
    config = LogConfig(preallocation_bytes_min=4096, preallocation_bytes_max=16384)
    log = filled(disk, config, batches=0)
    ahead = []
    for number in range(80):
        append(log, batch_of(bytes(1000)))
        work = log.preallocation.work()
        if work is not None:
            assert number >= 4
            assert log.preallocation.work() is None
            work.run_inline()
            ahead.append(disk.file_size(log.active.log.path) - log.active.size)
    assert ahead[0] == 4 * len(batch_of(bytes(1000)))
    assert ahead[-1] == 16384
    assert [at for at, _ in read_all(log)] == list(range(80))
    log.close()
    assert disk.file_size(log.active.log.path) == log.active.size


def test_a_slow_log_reserves_nothing() -> None:
    log = filled(virtual_disk(), LogConfig(preallocation_bytes_min=4096), batches=0)
    for number in range(50):
        append(log, batch_of(bytes(1000)), wall_ms=NOW_MS + 5000 * number)
        assert log.preallocation.work() is None


def test_preallocation_never_exceeds_the_segment_and_can_be_turned_off() -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=6000, preallocation_bytes_min=512)
    log = filled(disk, config, batches=20)
    run(busy(log).preallocation.work())
    assert disk.file_size(log.active.log.path) == 6000
    assert busy(filled(disk, LogConfig(preallocate=False, preallocation_bytes_min=1))).preallocation.work() is None


def test_a_device_too_full_to_reserve_is_not_a_failure() -> None:
    disk = virtual_disk()
    log = filled(disk, LogConfig(preallocation_bytes_min=512))
    disk.faults.fail("allocate", code=28)
    work = busy(log).preallocation.work()
    assert work is not None
    with pytest.raises(OSError, match="space"):
        work.run_inline()
    assert not log.failed
    append(log, batch_of(b"more"))
