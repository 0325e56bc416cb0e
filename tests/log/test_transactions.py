"""Transactions in the log, case by case: the last stable offset, snapshots, expiry, the index file and its damage."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log import names, producer_snapshot, transaction_index
from headrace.log.config import LogConfig
from headrace.log.dump import dump
from headrace.log.errors import CorruptFile, DamagedLog
from headrace.log.inspect import Remedy, repair, verify
from headrace.log.open_files import OpenFiles
from headrace.log.transaction_index import AbortedTransaction, TransactionIndex, decode, encode
from headrace.log.uptime import DirectoryUptime
from headrace.model.errors import ErrorCode

from .test_recovery import content_of
from .transactions_world import data_batch, index_of, stage_data, stage_marker
from .world import FOLDER, NOW_MS, append, batch_of, open_log, truncate, virtual_disk

DAY_MS = 86_400_000


def test_the_last_stable_offset_waits_for_the_first_open_transaction_and_for_a_committed_marker() -> None:
    log = open_log(virtual_disk())
    stage_data(log, data_batch(b"a", producer_id=1, sequence=0))
    stage_data(log, data_batch(b"b", producer_id=2, sequence=0))
    log.write_staged()
    assert log.producers.first_unstable_offset(2) == 0
    assert stage_marker(log, 1, commit=True) == 2
    log.write_staged()
    assert log.producers.first_unstable_offset(2) == 0, "the marker is not committed yet"
    assert log.producers.first_unstable_offset(3) == 1
    stage_marker(log, 2, commit=False)
    log.write_staged()
    assert log.producers.first_unstable_offset(3) == 1
    assert log.producers.first_unstable_offset(4) is None
    assert not log.producers.has_transactions


def test_a_marker_without_a_transaction_holds_nothing_up() -> None:
    log = open_log(virtual_disk())
    stage_marker(log, 1, epoch=4, commit=False)
    log.write_staged()
    assert log.producers.first_unstable_offset(0) is None
    assert index_of(log) == []
    assert log.producers.describe()[0].producer_epoch == 4


def test_a_marker_that_is_taken_back_leaves_the_transaction_open_in_its_old_epoch() -> None:
    log = open_log(virtual_disk())
    stage_data(log, data_batch(b"a", producer_id=1, sequence=0))
    log.write_staged()
    stage_marker(log, 1, epoch=1, commit=False, coordinator_epoch=3)
    stage_data(log, data_batch(b"b", producer_id=1, epoch=1, sequence=0))
    stage_marker(log, 1, epoch=2, commit=True, coordinator_epoch=3)
    log.disk.faults.fail("write_vector", code=28)  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="space"):
        log.write_staged()
    [state] = log.producers.describe()
    assert (state.producer_epoch, state.coordinator_epoch, state.current_transaction_start_offset) == (0, -1, 0)
    assert log.producers.open == {1: 0}
    assert log.transactions.staged == []
    refusal = log.producers.refusal_of_marker(1, 1, coordinator_epoch=3, transaction_version=2)
    assert refusal is ErrorCode.NONE, "the coordinator sends it again"


def test_an_open_transaction_is_never_forgotten() -> None:
    uptime = DirectoryUptime()
    log = open_log(virtual_disk(), uptime=uptime)
    stage_data(log, data_batch(b"a", producer_id=1, sequence=0))
    stage_data(log, data_batch(b"b", producer_id=2, sequence=0, transactional=False))
    log.write_staged()
    uptime.ms = 10 * DAY_MS
    assert log.producers.expire(NOW_MS + 10 * DAY_MS, DAY_MS) == 1
    assert log.producers.open == {1: 0}
    stage_marker(log, 1, commit=True)
    log.write_staged()
    uptime.ms = 20 * DAY_MS
    assert log.producers.expire(NOW_MS + 20 * DAY_MS, DAY_MS) == 1


def test_a_snapshot_keeps_where_transactions_began_and_leaves_out_what_is_behind_it() -> None:
    log = open_log(virtual_disk())
    for number in range(8):
        stage_data(log, data_batch(b"a", producer_id=1, sequence=number))
    stage_data(log, data_batch(b"b", producer_id=2, sequence=0))
    stage_marker(log, 1, commit=False)
    for below, began in ((10, {2: 8}), (9, {1: 0, 2: 8}), (8, {1: 0}), (2, {1: 0}), (0, {})):
        content = producer_snapshot.encode(log.producers.freeze(below), below=below)
        assert producer_snapshot.decode(content).open == began, below


def test_retention_and_truncation_take_the_index_with_its_segment() -> None:
    disk = virtual_disk()
    config = LogConfig(segment_bytes=200, retention_bytes=0, file_delete_delay_ms=1000)
    log = open_log(disk, config)
    for number in range(6):
        stage_data(log, data_batch(b"x" * 60, producer_id=1, sequence=number))
        stage_marker(log, 1, commit=False)
        log.write_staged()
    work = log.flush_work()
    assert work is not None
    work.run_inline()
    there = [name for name in disk.list_directory(FOLDER) if name.endswith(names.TRANSACTION_INDEX)]
    assert len(there) >= 3
    truncate(log, log.bases[-1])
    last = names.segment_stem(FOLDER, log.bases[-1]) + names.TRANSACTION_INDEX
    taken = log.retirement.work(NOW_MS, log.end_offset)
    assert taken is not None
    taken.run_inline()
    found = disk.list_directory(FOLDER)
    assert [name for name in found if name.endswith(names.TRANSACTION_INDEX)] in ([], [last.rpartition("/")[2]])
    assert any(name.endswith(names.TRANSACTION_INDEX + names.DELETED) for name in found)
    later = log.retirement.work(NOW_MS + 2000, log.end_offset)
    assert later is not None
    later.run_inline()
    assert not any(name.endswith(names.DELETED) for name in disk.list_directory(FOLDER))


def test_a_log_without_aborted_transactions_has_no_such_file() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    append(log, batch_of(b"plain"))
    stage_data(log, data_batch(b"a", producer_id=1, sequence=0))
    stage_marker(log, 1, commit=True)
    log.close()
    assert not any(name.endswith(names.TRANSACTION_INDEX) for name in disk.list_directory(FOLDER))


def test_the_file_is_kafkas_and_the_dump_reads_it() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    stage_data(log, data_batch(b"a", producer_id=1, sequence=0))
    stage_data(log, data_batch(b"b", producer_id=2, sequence=0))
    stage_marker(log, 2, commit=False)
    stage_marker(log, 1, commit=False)
    log.close()
    path = f"{FOLDER}/{0:020d}.txnindex"
    file = disk.open(path)
    content = disk.read(file, 1000, 0)
    numbers = [(0, 2, 1, 2, 0), (0, 1, 0, 3, 4)]
    assert content == b"".join(
        version.to_bytes(2, "big") + b"".join(number.to_bytes(8, "big") for number in rest)
        for version, *rest in numbers
    )
    found = list(dump(disk, path))
    assert [tuple(entry.values.values()) for entry in found] == [(2, 1, 2, 0), (1, 0, 3, 4)]
    assert [entry.kind for entry in found] == ["aborted-transaction"] * 2


def test_many_aborted_transactions_are_searched_in_the_file() -> None:
    files = OpenFiles(virtual_disk())
    files.disk.make_directory("data")
    index = TransactionIndex(files, "data/x.txnindex")
    entries = [AbortedTransaction(7, 3 * n, 3 * n + 2, 3 * n + 3) for n in range(1300)]
    for entry in entries:
        index.append(entry)
    assert index.stored == 1024, "the newest wait in memory"
    for offset in (0, 1, 2, 3, 1500, 3071, 3074, 3075, 3899, 3902, 5000):
        assert list(index.since(offset)) == [entry for entry in entries if entry.last_offset >= offset]
    index.keep_below(3080)
    assert list(index.since(0)) == [entry for entry in entries if entry.last_offset < 3080]
    index.keep_below(100)
    assert list(index.since(0)) == [entry for entry in entries if entry.last_offset < 100]


transactions = st.lists(
    st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 100), st.integers(1, 100), st.integers(0, 100)), max_size=8
)


@given(transactions, st.data())
def test_no_damage_is_taken_for_other_entries_than_could_have_been(
    drawn: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    entries, marker, stable = [], 0, 0
    for producer_id, begin, length, rest in drawn:
        first = marker + begin
        marker = first + length
        stable = max(stable, marker + 1 - rest)
        entries.append(AbortedTransaction(producer_id, first, marker, stable))
    content = encode(entries)
    assert decode(content) == entries
    if not content:
        return
    size = data.draw(st.integers(0, len(content) - 1))
    if size % 34:
        with pytest.raises(CorruptFile):
            decode(content[:size])
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    turned = bytearray(content)
    turned[bit // 8] ^= 1 << bit % 8
    try:
        found = decode(bytes(turned))
    except CorruptFile:
        return
    assert len(found) == len(entries)
    assert all(0 <= entry.first_offset < entry.last_offset for entry in found)
    assert all(earlier.last_offset < later.last_offset for earlier, later in pairwise(found))


def test_a_file_that_shrinks_under_a_reader_is_damage_and_no_answer() -> None:
    files = OpenFiles(virtual_disk())
    files.disk.make_directory("data")
    index = TransactionIndex(files, "data/x.txnindex")
    for n in range(4):
        index.append(AbortedTransaction(7, 3 * n, 3 * n + 2, 3 * n + 3))
    index.spill()
    files.disk.truncate(files.handle(index.file), 2 * transaction_index.ENTRY.size)
    with pytest.raises(DamagedLog, match="ends before"):
        list(index.since(0))


def test_an_index_is_rebuilt_from_the_snapshot_before_its_segment() -> None:
    """The transaction began in the segment before: only the snapshot at the begin of this one knows where."""
    disk = virtual_disk()
    log = open_log(disk)
    for number in range(3):
        stage_data(log, data_batch(b"a", producer_id=1, sequence=number))
        stage_data(log, data_batch(b"b", producer_id=2, sequence=number))
        log.write_staged()
        log.roll()
        stage_marker(log, 1, commit=False)
        stage_marker(log, 2, commit=number != 1)
        log.write_staged()
        work = log.flush_work()
        assert work is not None
        work.run_inline()
    before, opened = index_of(log), dict(log.producers.open)
    assert [entry.first_offset for entry in before] == [0, 4, 5, 8]
    damaged = log.segments[2].transactions.file.path
    log.close()
    file = disk.open(damaged)
    disk.truncate(file, 3)
    disk.close(file)
    log = open_log(disk, recovery_point=log.recovery_point, clean=True)
    assert log.recovered.indexes_rebuilt == 1
    assert (index_of(log), log.producers.open) == (before, opened)
    log.close(clean=False)
    again = open_log(disk, recovery_point=log.recovery_point, clean=True)
    assert (again.recovered.indexes_rebuilt, index_of(again)) == (0, before)


def test_verify_finds_a_damaged_index_and_repair_writes_it_again() -> None:
    disk = virtual_disk()
    log = open_log(disk)
    stage_data(log, data_batch(b"a", producer_id=1, sequence=0))
    log.write_staged()
    log.roll()
    stage_marker(log, 1, commit=False)
    stage_data(log, data_batch(b"b", producer_id=1, sequence=1))
    stage_marker(log, 1, commit=False)
    log.write_staged()
    entries, path = index_of(log), log.active.transactions.file.path
    log.close()
    assert verify(disk, FOLDER).is_whole
    for damage in (encode(entries)[:-1], encode([entries[0]._replace(producer_id=5)])):
        file = disk.open(path)
        disk.truncate(file, 0)
        disk.write_vector(file, [damage], 0)
        disk.close(file)
        [finding] = verify(disk, FOLDER).findings
        assert (finding.path, finding.remedy) == (path, Remedy.REBUILD)
        assert repair(disk, FOLDER, dry_run=False).is_whole
        assert verify(disk, FOLDER).is_whole
        assert decode(content_of(disk, path)) == entries
