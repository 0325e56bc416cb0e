"""Appending, reading, rolling and reopening one partition's log."""

import os
from errno import EDQUOT, EMFILE, ENOSPC

import pytest

from headrace.log.config import LogConfig
from headrace.log.errors import OffsetOutsideLog, WrongTopicId
from headrace.log.partition_log import PartitionLog
from headrace.log.producers import APPEND
from headrace.model.ids import TopicId
from headrace.wire.records.reader import batches, check_batch

from .world import (
    FOLDER,
    NOW_MS,
    PARTITION,
    append,
    batch_of,
    bytes_of,
    fields_of,
    open_log,
    read_all,
    truncate,
    values_of,
    virtual_disk,
)

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def test_offsets_follow_one_another_over_batches_and_turns() -> None:
    log = open_log(virtual_disk())
    assert append(log, batch_of(b"a", b"b"), batch_of(b"c")) == [0, 2]
    assert append(log, batch_of(b"d")) == [3]
    assert log.end_offset == 4
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


def test_a_batch_is_stamped_in_place_and_its_checksum_still_holds() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    append(log, batch_of(b"a"), epoch=3)
    append(log, batch_of(b"b"), epoch=7)
    part = log.read(1, 1000, log.end_offset, True)
    assert part is not None
    fields = check_batch(bytes_of(disk, part))
    assert (fields[0], fields[2]) == (1, 7)


def test_staged_batches_are_not_readable_before_the_write() -> None:
    log = open_log(virtual_disk())
    batch = batch_of(b"a")
    log.stage(memoryview(batch), check_batch(batch), 0, NOW_MS)
    assert log.staged
    assert log.staged_end_offset == 1
    assert log.end_offset == 0
    assert log.read(0, 1000, 0, True) is None
    log.write_staged()
    assert not log.staged
    assert read_all(log) == [(0, b"a")]


def test_more_buffers_than_the_system_takes_and_short_writes() -> None:
    disk = virtual_disk()
    disk.faults.short_writes_one_in = 2
    log = open_log(disk)
    for _ in range(3):
        append(log, *(batch_of(b"%d" % number) for number in range(3 * disk.iov_max + 1)))
    assert len(read_all(log)) == log.end_offset == 3 * (3 * disk.iov_max + 1)


def test_a_read_gives_the_whole_batch_around_an_offset_in_its_middle() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    append(log, batch_of(b"a", b"b", b"c"), batch_of(b"d"))
    assert [at for at, _ in values_of(disk, log.read(1, 10_000, 4, True))] == [0, 1, 2, 3]


@pytest.mark.parametrize("segment_bytes", [1 << 20, 500])
def test_a_read_stops_below_the_bound_and_at_a_batch(segment_bytes: int) -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100))
    for number in range(20):
        append(log, batch_of(b"v%d" % number, b"w"))
    seen = []
    offset = 0
    while (part := log.read(offset, 200, 22, True)) is not None:
        seen += [at for at, _ in values_of(disk, part) if at >= offset]
        offset = seen[-1] + 1
    assert seen == list(range(22))


@pytest.mark.parametrize("recent", [True, False])
def test_max_bytes_is_kept_but_for_the_first_batch_when_asked(recent: bool) -> None:
    disk = virtual_disk()
    log = open_log(disk)
    append(log, batch_of(b"x" * 5000), batch_of(b"y"), batch_of(b"z"))
    if not recent:
        log.close()
        log = open_log(disk, clean=True, recovery_point=3)
    assert log.read(0, 100, 3, False) is None
    whole = log.read(0, 100, 3, True)
    assert whole is not None
    assert [at for at, _ in values_of(disk, whole)] == [0]
    small = log.read(1, 80, 3, False)
    assert [at for at, _ in values_of(disk, small)] == [1]
    assert log.read(1, 1, 3, False) is None
    assert [at for at, _ in values_of(disk, log.read(0, 10_000, 3, False))] == [0, 1, 2]


def test_offsets_outside_the_log_are_refused() -> None:
    log = open_log(virtual_disk())
    append(log, batch_of(b"a"))
    assert log.read(1, 100, 1, True) is None
    with pytest.raises(OffsetOutsideLog):
        log.read(2, 100, 1, True)
    log.advance_start(1)
    with pytest.raises(OffsetOutsideLog):
        log.read(0, 100, 1, True)


def test_segments_roll_by_size_and_a_reader_walks_through_them() -> None:
    disk = virtual_disk()
    log = open_log(disk, SMALL)
    for number in range(40):
        append(log, batch_of(b"%03d" % number * 10))
    assert len(log.segments) > 3
    assert all(segment.size <= 1000 for segment in log.segments)
    assert [at for at, _ in read_all(log)] == list(range(40))
    assert f"{log.bases[1]:020d}.log" in disk.list_directory(FOLDER)


def test_one_turn_may_span_several_segments() -> None:
    log = open_log(virtual_disk(), SMALL)
    append(log, *(batch_of(b"%03d" % number * 20) for number in range(40)))
    assert len(log.segments) > 4
    assert all(0 < segment.size <= 1000 for segment in log.segments)
    assert [at for at, _ in read_all(log)] == list(range(40))


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    log = open_log(virtual_disk(), SMALL)
    append(log, batch_of(b"a"), batch_of(b"x" * 3000), batch_of(b"b"))
    assert log.bases == [0, 1, 2]
    assert [at for at, _ in read_all(log)] == [0, 1, 2]


def test_a_segment_rolls_when_a_batch_is_newer_than_its_first_by_segment_ms() -> None:
    log = open_log(virtual_disk(), LogConfig(segment_ms=1000))
    append(log, batch_of(b"a", timestamps=[NOW_MS]))
    append(log, batch_of(b"b", timestamps=[NOW_MS + 1000]))
    assert log.bases == [0]
    append(log, batch_of(b"c", timestamps=[NOW_MS + 1001]))
    assert log.bases == [0, 2]


def test_a_segment_rolls_when_its_index_is_full() -> None:
    log = open_log(virtual_disk(), LogConfig(segment_index_bytes=8 * 3, index_interval_bytes=1))
    for number in range(20):
        append(log, batch_of(b"%d" % number))
    assert len(log.segments) > 3
    assert [at for at, _ in read_all(log)] == list(range(20))


def test_append_time_is_stamped_with_a_new_checksum() -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(append_time=True))
    append(log, batch_of(b"a", b"b", timestamps=[1, 2]), wall_ms=NOW_MS + 5)
    part = log.read(0, 1000, 2, True)
    assert part is not None
    (batch,) = batches(bytes_of(disk, part))
    fields = check_batch(batch)
    assert fields[5] & 8
    assert fields[8] == NOW_MS + 5
    assert log.active.max_timestamp == NOW_MS + 5


@pytest.mark.parametrize("config", [LogConfig(), SMALL])
def test_a_closed_log_opens_as_it_was(config: LogConfig) -> None:
    disk = virtual_disk()
    log = open_log(disk, config)
    for number in range(30):
        append(log, batch_of(b"%d" % number, timestamps=[NOW_MS + number]), epoch=number // 10)
    before = read_all(log)
    log.close()
    again = open_log(disk, config, recovery_point=30, clean=True)
    assert read_all(again) == before
    assert again.end_offset == again.recovery_point == 30
    assert again.bases == log.bases
    assert again.epochs.epochs == [0, 1, 2]
    assert again.active.max_timestamp == NOW_MS + 29
    assert again.recovered.batches_replayed == 0
    append(again, batch_of(b"more"), epoch=3)
    assert read_all(again) == [*before, (30, b"more")]


def test_a_folder_of_another_topic_is_refused() -> None:
    disk = virtual_disk()
    open_log(disk).close()
    with pytest.raises(WrongTopicId):
        PartitionLog.open(
            disk,
            FOLDER,
            PARTITION,
            TopicId(bytes(16 * [9])),
            LogConfig(),
            recovery_point=0,
            start_offset=0,
            clean_shutdown=True,
            wall_ms=NOW_MS,
        )


def test_a_failed_write_makes_the_log_failed_and_a_reopened_one_is_whole() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    append(log, batch_of(b"a"))
    disk.faults.fail("write_vector", path_contains=".log")
    with pytest.raises(OSError, match="error"):
        append(log, batch_of(b"b"))
    assert log.failed
    assert log.end_offset == 1
    log.close(clean=False)
    again = open_log(disk)
    assert read_all(again) == [(0, b"a")]
    append(again, batch_of(b"c"))
    assert read_all(again) == [(0, b"a"), (1, b"c")]


def late_batch(sequence: int) -> bytearray:
    return batch_of(b"late", producer_id=1, producer_epoch=0, base_sequence=sequence, timestamps=[NOW_MS + 9])


@pytest.mark.parametrize("code", [ENOSPC, EDQUOT, EMFILE])
def test_what_does_not_fit_is_taken_back_and_the_log_continues(code: int) -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(index_interval_bytes=0))
    for number in range(20):
        append(log, batch_of(b"x", producer_id=1, producer_epoch=0, base_sequence=number), epoch=1)
    before, size = read_all(log), log.active.size
    disk.faults.fail("write_vector", code=code, path_contains=".log")
    late, stranger = late_batch(20), batch_of(b"s", producer_id=2, producer_epoch=0, base_sequence=7)
    with pytest.raises(OSError, match=os.strerror(code)):
        append(log, late, stranger, epoch=2)
    assert not log.failed
    assert (log.end_offset, log.staged_end_offset, log.active.size) == (20, 20, size)
    assert disk.file_size(log.active.log.path) == size
    assert read_all(log) == before
    assert log.epochs.end_of(1, log.end_offset) == (1, 20)
    assert log.active.max_timestamp == NOW_MS
    assert log.producers.admit(check_batch(late)) == APPEND
    assert log.producers.get(2) is None
    assert log.producers.admit(fields_of(batch_of(b"", producer_id=1, producer_epoch=0, base_sequence=19))) == 19
    assert append(log, late, stranger, epoch=2) == [20, 21]
    assert read_all(log) == [*before, (20, b"late"), (21, b"s")]
    disk.kill()
    assert open_log(disk, LogConfig(index_interval_bytes=0)).end_offset == 22


def test_index_entries_that_find_no_room_wait_in_memory() -> None:
    disk = virtual_disk()
    config = LogConfig(index_interval_bytes=0)
    log = open_log(disk, config)
    disk.faults.fail("write_vector", code=ENOSPC, path_contains=".index", times=60)
    for number in range(550):
        append(log, batch_of(b"x%d" % number))
    assert log.active.index.stored == 0
    for number in range(550, 600):
        append(log, batch_of(b"x%d" % number))
    assert log.active.index.stored > 550
    assert [value for _, value in read_all(log)] == [b"x%d" % number for number in range(600)]
    assert read_all(log, max_bytes=1, begin=30)[0] == (30, b"x30")
    log.close()
    again = open_log(disk, config, recovery_point=600, clean=True)
    assert again.recovered.indexes_rebuilt == 0
    assert again.end_offset == 600


@pytest.mark.parametrize("fails", [".log", ".index", ".timeindex"])
def test_a_segment_that_cannot_be_begun_leaves_nothing_behind(fails: str) -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=1000)
    log = open_log(disk, config)
    append(log, batch_of(bytes(800)))
    before = disk.list_directory(log.path)
    disk.faults.fail("open", code=ENOSPC, path_contains=f"{1:020d}{fails}")
    with pytest.raises(OSError, match="space"):
        append(log, batch_of(bytes(800)))
    assert disk.list_directory(log.path) == before
    append(log, batch_of(b"small"))
    append(log, batch_of(bytes(800)))
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    disk.kill()
    assert len(read_all(open_log(disk, config))) == 3


def test_of_a_turn_that_spans_segments_what_got_in_stays() -> None:
    disk = virtual_disk()
    log = open_log(disk, LogConfig(segment_bytes=1000))
    disk.faults.fail("write_vector", code=ENOSPC, path_contains=f"{1:020d}.log")
    turn = [batch_of(bytes(800), producer_id=1, producer_epoch=0, base_sequence=number) for number in range(3)]
    with pytest.raises(OSError, match="space"):
        append(log, *turn)
    assert (log.end_offset, log.failed) == (1, False)
    assert log.producers.admit(fields_of(turn[0])) == 0
    assert log.producers.admit(fields_of(turn[1])) == APPEND
    assert append(log, *turn[1:]) == [1, 2]
    assert [offset for offset, _ in read_all(log)] == [0, 1, 2]


def test_truncation_keeps_the_newest_time_of_what_is_left() -> None:
    log = open_log(virtual_disk(), LogConfig())
    for number in range(5):
        append(log, batch_of(b"x", timestamps=[NOW_MS + number]))
    truncate(log, 3)
    assert (log.active.max_timestamp, log.active.max_timestamp_offset) == (NOW_MS + 2, 2)
    found = log.offset_at_time(NOW_MS + 2, 3)()
    assert found is not None
    assert found.offset == 2
