"""Retention, deletion and truncation: what goes, when, and what must still be known of it."""

from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC

import pytest

from headrace.log.config import LogConfig
from headrace.log.errors import OffsetOutsideLog
from headrace.log.open_files import OpenFiles
from headrace.log.partition_log import PartitionLog
from headrace.sim.entropy import SeededEntropy

from .world import (
    FOLDER,
    HOUR_MS,
    NOW_MS,
    append,
    batch_of,
    bytes_of,
    fields_of,
    filled,
    open_log,
    read_all,
    run,
    truncate,
    virtual_disk,
)

# Retention

SEGMENTS = LogConfig(segment_bytes=600, retention_ms=-1)


def with_retention(**changes: int) -> Callable[[PartitionLog], None]:
    def configure(log: PartitionLog) -> None:
        values = {"segment_bytes": 600, "retention_ms": -1, **changes}
        log.configure(LogConfig(**values))  # type: ignore[arg-type]

    return configure


def test_retention_by_time_takes_whole_old_segments() -> None:
    disk = virtual_disk()
    log = filled(disk, SEGMENTS)
    run(log.flush_work())
    bases = log.bases
    assert len(bases) == 4
    newest_of_second = log.segments[1].max_timestamp
    with_retention(retention_ms=HOUR_MS)(log)
    assert log.retirement.work(NOW_MS + HOUR_MS, log.end_offset) is None
    run(log.retirement.work(newest_of_second + HOUR_MS + 1, log.end_offset))
    assert log.bases == bases[2:]
    assert log.start_offset == bases[2]
    assert [at for at, _ in read_all(log)] == list(range(bases[2], 12))
    assert log.size_bytes == sum(segment.size for segment in log.segments)


def test_retention_by_time_takes_the_active_segment_too_and_begins_another() -> None:
    log = filled(virtual_disk(), SEGMENTS)
    run(log.flush_work())
    with_retention(retention_ms=HOUR_MS)(log)
    run(log.retirement.work(NOW_MS + 2 * HOUR_MS, log.end_offset))
    assert log.bases == [12]
    assert log.start_offset == log.end_offset == 12
    assert log.size_bytes == 0
    assert log.retirement.work(NOW_MS + 9 * HOUR_MS, log.end_offset) is not None  # unlinks what was renamed
    assert append(log, batch_of(b"next")) == [12]


def test_retention_by_size_keeps_at_least_that_much() -> None:
    log = filled(virtual_disk(), SEGMENTS)
    run(log.flush_work())
    sizes = [segment.size for segment in log.segments]
    with_retention(retention_bytes=sum(sizes) - sizes[0] - sizes[1] + 1)(log)
    run(log.retirement.work(NOW_MS, log.end_offset))
    assert len(log.segments) == 3
    assert log.size_bytes == sum(sizes[1:])


def test_nothing_above_the_high_watermark_goes() -> None:
    log = filled(virtual_disk(), SEGMENTS)
    run(log.flush_work())
    with_retention(retention_ms=1)(log)
    run(log.retirement.work(NOW_MS + HOUR_MS, log.bases[1]))
    assert len(log.segments) == 3
    assert log.retirement.work(NOW_MS + HOUR_MS, log.bases[0]) is None


def test_what_is_not_on_the_device_yet_is_not_taken() -> None:
    """Until its new name is, a power cut would leave a gap before what is synced behind it."""
    log = filled(virtual_disk(), LogConfig(segment_bytes=500, retention_bytes=500, file_delete_delay_ms=0))
    segments = len(log.segments)
    assert segments > 3
    assert log.retirement.work(NOW_MS, log.end_offset) is None
    flush = log.flush_work()
    assert flush is not None
    append(log, batch_of(bytes(600)))  # into a segment of its own
    flush.run_inline()
    with_retention(retention_ms=HOUR_MS)(log)
    run(log.retirement.work(NOW_MS + 2 * HOUR_MS, log.end_offset))
    assert log.start_offset == 12
    assert log.end_offset == 13


def test_a_compacted_topic_keeps_its_segments() -> None:
    log = filled(virtual_disk(), SEGMENTS)
    log.configure(LogConfig(segment_bytes=600, retention_ms=1, delete=False, compact=True))
    assert log.retirement.work(NOW_MS + HOUR_MS, log.end_offset) is None


def test_deleted_records_are_gone_at_once_and_their_segments_with_the_next_retention() -> None:
    log = filled(virtual_disk(), SEGMENTS)
    run(log.flush_work())
    log.advance_start(log.bases[2] + 1)
    assert [at for at, _ in read_all(log)] == list(range(log.start_offset, 12))
    run(log.retirement.work(NOW_MS, log.end_offset))
    assert len(log.segments) == 2
    assert log.start_offset == log.bases[0] + 1
    with pytest.raises(OffsetOutsideLog):
        log.advance_start(13)
    log.advance_start(0)
    assert log.start_offset == log.bases[0] + 1


def test_segments_are_renamed_first_and_unlinked_after_the_delay_while_readers_continue() -> None:
    disk = virtual_disk()
    log = filled(disk, SEGMENTS)
    run(log.flush_work())
    part = log.read(0, 1000, log.end_offset, True)
    assert part is not None
    before = bytes_of(disk, part)
    log.files.pin(part.file)
    with_retention(retention_ms=HOUR_MS)(log)
    now_ms = NOW_MS + 2 * HOUR_MS
    run(log.retirement.work(now_ms, log.end_offset))
    log.files.close_idle()
    assert f"{0:020d}.log.deleted" in disk.list_directory(FOLDER)
    assert f"{0:020d}.log" not in disk.list_directory(FOLDER)
    assert bytes_of(disk, part) == before
    assert log.retirement.work(now_ms + 59_999, log.end_offset) is None
    run(log.retirement.work(now_ms + 60_000, log.end_offset))
    log.files.close_idle()
    assert not [name for name in disk.list_directory(FOLDER) if name.endswith(".deleted")]
    assert bytes_of(disk, part) == before, "a pinned slice outlives even the unlinking"
    log.files.unpin(part.file)
    log.files.close_idle()
    with pytest.raises(OSError, match="descriptor"):
        bytes_of(disk, part)


# Open files


def test_a_bounded_set_of_files_stays_open() -> None:
    disk = virtual_disk()
    log = filled(disk, LogConfig(segment_bytes=150), batches=60)
    files: OpenFiles = log.files
    files.open_files_max = 10
    for _ in range(3):
        assert len(read_all(log)) == 60
        for _ in range(8):
            files.close_idle()
        assert len(files) <= 10
    kept = log.read(0, 100, 60, True)
    assert kept is not None
    files.pin(kept.file)
    assert len(read_all(log)) == 60
    for _ in range(20):
        files.close_idle()
    assert bytes_of(disk, kept)
    files.unpin(kept.file)


# Truncation


def test_truncation_takes_batches_segments_epochs_and_producers_back() -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(segment_bytes=600))
    for number in range(12):
        batch = batch_of(bytes(100), producer_id=5, producer_epoch=0, base_sequence=number)
        append(log, batch, epoch=number // 4)
    truncate(log, 6)
    assert log.end_offset == 6
    assert log.epochs.epochs == [0, 1]
    assert log.epoch_end(1) == (1, 6)
    (description,) = log.producers.describe()
    assert description.last_sequence == 5
    assert append(log, batch_of(b"new"), epoch=3) == [6]
    assert [at for at, _ in read_all(log)] == list(range(7))
    disk.kill()
    again = open_log(disk, LogConfig(segment_bytes=600))
    assert [at for at, _ in read_all(again)] == list(range(7))


@pytest.mark.parametrize("seed", range(12))
def test_a_log_that_retention_emptied_keeps_its_place_through_a_power_cut(seed: int) -> None:
    """The segment that takes over is there by name before the old ones go."""
    disk = virtual_disk(seed)
    config = LogConfig(retention_ms=HOUR_MS)
    log = filled(disk, config, batches=4)
    for folder in ("", "data"):
        disk.sync_directory(folder)
    run(log.flush_work())
    work = log.retirement.work(NOW_MS + 2 * HOUR_MS, 4)
    assert work is not None
    done = 0

    def cut(operation: str, path: str) -> None:
        nonlocal done
        done += 1
        if done > seed:
            raise KeyboardInterrupt

    disk.on_operation = cut
    with suppress(KeyboardInterrupt):
        work.run()
    disk.on_operation = None
    disk.crash(SeededEntropy(seed))
    again = open_log(disk, config, recovery_point=4)
    assert again.end_offset == 4
    assert append(again, batch_of(b"next")) == [4]


@pytest.mark.parametrize("room", [True, False])
def test_what_retention_takes_away_is_still_known_of_its_producers(room: bool) -> None:
    disk = virtual_disk()
    log = open_log(disk, SEGMENTS)
    sent = [batch_of(b"x" * 200, producer_id=7, producer_epoch=0, base_sequence=number) for number in range(6)]
    for content in sent:
        append(log, content)
    assert len(log.bases) > 1
    run(log.flush_work())
    with_retention(retention_ms=HOUR_MS)(log)
    if not room:
        disk.faults.fail("write_vector", code=ENOSPC, path_contains=".snapshot")
    run(log.retirement.work(NOW_MS + 2 * HOUR_MS, log.end_offset))
    assert log.bases == [6]
    if not room:
        run(log.flush_work())  # which writes it when there is room
    disk.kill()
    again = open_log(disk, SEGMENTS)
    assert again.end_offset == 6
    assert again.producers.admit(fields_of(sent[-1])) == 5


def test_a_snapshot_is_not_written_by_two() -> None:
    """The flush under way writes it, so retention waits."""
    log = filled(virtual_disk(), SEGMENTS)
    flush = log.flush_work()
    assert flush is not None
    with_retention(retention_bytes=0)(log)
    assert log.retirement.work(NOW_MS, log.end_offset) is None
    flush.run_inline()
    run(log.retirement.work(NOW_MS, log.end_offset))
    assert len(log.bases) == 1
