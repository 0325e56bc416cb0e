"""Around an exchange of files: readers with slices, logs that changed since, and when a pass is due."""

from contextlib import suppress
from dataclasses import replace
from errno import EMFILE, ENOSPC

import pytest

from headrace.log.compaction.plan import cleanable
from headrace.log.compaction.swap import discard_work, swap_work

from ..log.world import FOLDER, NOW_MS, append, bytes_of, open_log, virtual_disk
from .logs import CONFIG, cleaned_groups, compact, filled, flush, keyed_batch, pairs, planned

ROWS = [(b"key-%d" % (number % 4), b"value-%d" % number) for number in range(60)]


def test_a_reader_continues_with_the_slice_it_has() -> None:
    log = filled(virtual_disk(), ROWS)
    part = log.read(0, 1 << 20, log.end_offset, True)
    assert part is not None
    before = bytes_of(log.disk, part)
    log.files.pin(part.file)
    compact(log)
    work = log.retirement.work(NOW_MS + 1, log.end_offset)
    assert work is not None
    work.run_inline()
    log.files.close_idle()
    assert not [name for name in log.disk.list_directory(FOLDER) if name.endswith(".deleted")]
    assert bytes_of(log.disk, part) == before
    log.files.unpin(part.file)
    log.files.close_idle()
    assert len(pairs(log)) == 4


def test_reads_within_an_exchange_give_the_old_bytes() -> None:
    """The names change in a helper while the loop goes on: until it hears of the end, it reads what it had open."""
    log = filled(virtual_disk(), ROWS)
    log.roll()
    flush(log)
    before = pairs(log)
    log.files.open_files_max = 0
    plan = planned(log)
    assert plan is not None
    for group in cleaned_groups(log.disk, plan):
        if group.files is None:
            continue
        log.files.close_idle()
        log.files.close_idle()
        work = swap_work(log, group, wall_ms=NOW_MS)
        assert work is not None
        assert log.names_generation % 2 == 1
        result = work.run()
        log.files.close_idle()
        log.files.close_idle()
        assert [row for row in pairs(log) if row[0] >= group.sources[0].base_offset] == [
            row for row in before if row[0] >= group.sources[0].base_offset
        ]
        work.done(result, None)
        assert log.names_generation % 2 == 0
    assert len(pairs(log)) == 4


def test_a_log_that_changed_meanwhile_takes_no_exchange() -> None:
    log = filled(virtual_disk(), ROWS, replace(CONFIG, delete=True, retention_bytes=700))
    log.roll()
    flush(log)
    plan = planned(log)
    assert plan is not None
    groups = list(cleaned_groups(log.disk, plan))
    taken = log.retirement.work(NOW_MS, log.end_offset)
    assert taken is not None
    taken.run_inline()
    before = pairs(log)
    for group in groups[:2]:
        assert swap_work(log, group, wall_ms=NOW_MS) is None
        discard = discard_work(log, group)
        assert discard is not None
        discard.run_inline()
    assert pairs(log) == before
    log.close()
    assert swap_work(log, groups[-1], wall_ms=NOW_MS) is None


def test_a_failing_exchange_fails_the_log_and_the_next_start_finishes_it() -> None:
    disk = virtual_disk()
    log = filled(disk, ROWS)
    log.roll()
    flush(log)
    plan = planned(log)
    assert plan is not None
    group = next(iter(cleaned_groups(disk, plan)))
    disk.faults.fail("rename", path_contains=".log.swap")
    work = swap_work(log, group, wall_ms=NOW_MS)
    assert work is not None
    try:
        work.run_inline()
    except OSError:
        pass
    assert log.failed
    recovered = open_log(disk, CONFIG, recovery_point=60)
    assert len(pairs(recovered)) < 60
    assert {key: value for _, key, value in pairs(recovered)} == dict(ROWS)


def test_a_pass_is_due_by_share_and_by_age() -> None:
    config = replace(CONFIG, max_compaction_lag_ms=1000)
    log = filled(virtual_disk(), ROWS, config)
    log.roll()
    flush(log)
    end = log.end_offset
    found = cleanable(log, clean_offset=0, stable_offset=end, wall_ms=NOW_MS)
    assert (found.dirty_ratio, found.is_overdue, found.clean_below) == (1.0, False, end)
    assert cleanable(log, clean_offset=0, stable_offset=end, wall_ms=NOW_MS + 1001).is_overdue
    clean_offset = compact(log)
    found = cleanable(log, clean_offset=clean_offset, stable_offset=end, wall_ms=NOW_MS + 1001)
    assert (found.dirty_bytes, found.is_overdue) == (0, False)
    append(log, keyed_batch((b"a", b"1"), timestamps=[NOW_MS + 500]))
    log.roll()
    flush(log)
    found = cleanable(log, clean_offset=clean_offset, stable_offset=end + 1, wall_ms=NOW_MS + 1001)
    assert 0 < found.dirty_ratio < 0.5
    assert not found.is_overdue
    log.close()
    again = open_log(log.disk, config, recovery_point=end + 1, clean=True, wall_ms=NOW_MS + 900)
    assert not cleanable(again, clean_offset=clean_offset, stable_offset=end + 1, wall_ms=NOW_MS + 1500).is_overdue
    assert cleanable(again, clean_offset=clean_offset, stable_offset=end + 1, wall_ms=NOW_MS + 1501).is_overdue


def test_a_checkpoint_outside_the_log_means_nothing() -> None:
    log = filled(virtual_disk(), ROWS)
    log.roll()
    flush(log)
    for clean_offset in (-1, 61, 1000):
        found = cleanable(log, clean_offset=clean_offset, stable_offset=60, wall_ms=NOW_MS)
        assert found.dirty_from == 0


@pytest.mark.parametrize("at", range(12))
def test_an_exchange_continues_where_it_stopped(at: int) -> None:
    disk = virtual_disk()
    log = filled(disk, ROWS)
    log.roll()
    flush(log)
    plan = planned(log)
    assert plan is not None
    group = next(iter(cleaned_groups(disk, plan)))
    work = swap_work(log, group, wall_ms=NOW_MS)
    assert work is not None
    disk.faults.fail("rename", code=ENOSPC, skip=at)
    disk.faults.fail("sync_directory", code=EMFILE, skip=at % 4)
    for _ in range(2):
        with suppress(OSError):
            work.run()
    work.done(work.run(), None)
    assert len(pairs(log)) < 60
    assert {key: value for _, key, value in pairs(log)} == dict(ROWS)
    live = sorted(name for name in disk.list_directory(FOLDER) if name.endswith(".log"))
    assert live == [segment.log.path.rpartition("/")[2] for segment in log.segments]
    assert not [name for name in disk.list_directory(FOLDER) if name.endswith((".swap", ".cleaned"))]
