"""Offsets by time and by leader epoch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.config import LogConfig
from headrace.log.errors import CorruptFile
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.partition_log import PartitionLog

from .world import NOW_MS, append, batch_of, open_log, virtual_disk

SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100, retention_ms=-1)


def found(log: PartitionLog, timestamp_ms: int, below: int | None = None) -> tuple[int, int] | None:
    result = log.offset_at_time(timestamp_ms, log.end_offset if below is None else below)()
    return result[:2] if result is not None else None


def test_the_first_record_at_or_after_a_time_not_its_batch() -> None:
    log = open_log(virtual_disk())
    append(log, batch_of(b"a", b"b", b"c", timestamps=[100, 200, 300]), epoch=4)
    assert found(log, 150) == (1, 200)
    assert found(log, 200) == (1, 200)
    assert found(log, 0) == (0, 100)
    assert found(log, 301) is None
    result = log.offset_at_time(250, 3)()
    assert result is not None
    assert result.leader_epoch == 4


def test_what_is_not_below_the_bound_is_not_found() -> None:
    log = open_log(virtual_disk())
    append(log, batch_of(b"a", timestamps=[100]), batch_of(b"b", timestamps=[200]))
    assert found(log, 150, below=1) is None
    assert found(log, 150, below=2) == (1, 200)


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_compressed_batches_are_opened(compression: int) -> None:
    log = open_log(virtual_disk())
    append(log, batch_of(b"a", b"b", timestamps=[100, 200], compression=compression))
    assert found(log, 101) == (1, 200)


@given(
    times=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=3), min_size=1, max_size=25),
    start=st.integers(0, 30),
    reopen=st.booleans(),
)
def test_against_a_list(times: list[list[int]], start: int, reopen: bool) -> None:
    disk = virtual_disk()
    log = open_log(disk, SMALL)
    flat: list[int] = []
    for batch in times:
        append(log, batch_of(*([b"v" * 30] * len(batch)), timestamps=[NOW_MS + time for time in batch]))
        flat += batch
    log.advance_start(min(start, log.end_offset))
    if reopen:
        log.close()
        log = open_log(disk, SMALL, clean=True, start_offset=min(start, len(flat)))
    kept = [(offset, NOW_MS + time) for offset, time in enumerate(flat) if offset >= log.start_offset]
    for wanted in range(NOW_MS - 1, NOW_MS + 62, 7):
        assert found(log, wanted) == next((pair for pair in kept if pair[1] >= wanted), None)
    newest = log.max_timestamp_offset()()
    if not kept:
        assert newest is None
    else:
        top = max(time for _, time in kept)
        assert newest is not None
        assert newest[:2] == next(pair for pair in kept if pair[1] == top)


def test_a_search_begun_before_retention_still_answers() -> None:
    disk = virtual_disk()
    log = open_log(disk, SMALL)
    for number in range(20):
        append(log, batch_of(bytes(100), timestamps=[NOW_MS + number]))
    flush = log.flush_work()
    assert flush is not None
    flush.run_inline()
    search = log.offset_at_time(NOW_MS + 2, log.end_offset)
    log.configure(LogConfig(segment_bytes=500, retention_ms=1))
    work = log.retirement.work(NOW_MS + 100_000, log.end_offset)
    assert work is not None
    work.run_inline()
    result = search()
    assert result is not None
    assert result.offset == 2


def test_newest_of_an_empty_log_is_nothing() -> None:
    log = open_log(virtual_disk())
    assert log.max_timestamp_offset()() is None
    assert found(log, 0) is None


# Leader epochs


def test_where_an_epoch_ended() -> None:
    log = open_log(virtual_disk())
    assert log.epoch_end(0) == (-1, -1)
    append(log, batch_of(b"a", b"b"), epoch=2)
    append(log, batch_of(b"c"), epoch=5)
    assert log.epoch_end(5) == (5, 3)
    assert log.epoch_end(2) == (2, 2)
    assert log.epoch_end(4) == (2, 2)
    assert log.epoch_end(1) == (1, 0)
    assert log.epoch_end(6) == (-1, -1)
    assert log.epoch_end(-1) == (-1, -1)


def test_an_epoch_without_batches_is_replaced_by_the_next() -> None:
    log = open_log(virtual_disk())
    append(log, batch_of(b"a"), epoch=0)
    log.begin_epoch(1)
    log.begin_epoch(2)
    append(log, batch_of(b"b"), epoch=2)
    assert (log.epochs.epochs, log.epochs.starts) == ([0, 2], [0, 1])
    assert log.epochs.epoch_at(0) == 0
    assert log.epochs.epoch_at(1) == 2


def test_epochs_survive_a_stop_and_a_kill() -> None:
    for clean in (True, False):
        disk = virtual_disk()
        log = open_log(disk)
        for epoch in (1, 3, 7):
            append(log, batch_of(b"x"), epoch=epoch)
        if clean:
            log.close()
        else:
            disk.kill()
        again = open_log(disk, clean=clean, recovery_point=3 if clean else 0)
        assert (again.epochs.epochs, again.epochs.starts) == ([1, 3, 7], [0, 1, 2])


def test_epochs_below_the_start_shrink_to_it() -> None:
    epochs = LeaderEpochs()
    for epoch, start in ((0, 0), (1, 10), (2, 20)):
        epochs.assign(epoch, start)
    epochs.truncate_before(15)
    assert (epochs.epochs, epochs.starts) == ([1, 2], [15, 20])
    epochs.truncate_from(20)
    assert (epochs.epochs, epochs.starts, epochs.latest) == ([1], [15], 1)


@given(st.binary(max_size=60))
def test_any_bytes_are_epochs_or_refused(content: bytes) -> None:
    try:
        epochs = LeaderEpochs.decode(content)
    except CorruptFile:
        return
    assert LeaderEpochs.decode(epochs.encode()).epochs == epochs.epochs
