from dataclasses import replace

import pytest

from headrace.log.compaction.key_map import ENTRY_BYTES
from headrace.log.inspect import verify
from headrace.log.partition_log import PartitionLog
from headrace.wire.records.header import HEADER, RECORD_COUNT, checksum
from headrace.wire.records.reader import check_batch

from ..log.world import FOLDER, NOW_MS, append, fields_of, open_log, virtual_disk
from .logs import CONFIG, all_batches, compact, filled, flush, keyed_batch, marker, pairs, planned, read_records


def rows(count: int, keys: int) -> list[tuple[bytes, bytes]]:
    return [(b"key-%d" % (number % keys), b"value-%d" % number) for number in range(count)]


@pytest.mark.parametrize("per_batch", [1, 3, 7])
@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_the_last_record_of_each_key_stays_at_its_offset(per_batch: int, compression: int) -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    given = rows(60, 7)
    for begin in range(0, 60, per_batch):
        append(log, keyed_batch(*given[begin : begin + per_batch], compression=compression))
    before = log.size_bytes
    assert compact(log) == 60
    assert pairs(log) == [(offset, *given[offset]) for offset in range(53, 60)]
    assert log.end_offset == 60
    assert log.size_bytes < before
    assert log.size_bytes == sum(segment.size for segment in log.segments)
    for batch in all_batches(log):
        check_batch(batch)
    assert verify(disk, FOLDER).is_whole
    assert not verify(disk, FOLDER).findings


def test_a_pass_over_a_clean_log_writes_nothing() -> None:
    disk = virtual_disk()
    log = filled(disk, rows(40, 5), per_batch=3)
    compact(log)
    compact(log, roll=False)  # now the small segments are one
    before, segments = all_batches(log), list(log.segments)
    compact(log, roll=False)
    assert all_batches(log) == before
    assert log.segments == segments
    assert not [name for name in disk.list_directory(FOLDER) if "cleaned" in name or "swap" in name]


def test_small_segments_become_one() -> None:
    log = filled(virtual_disk(), rows(100, 4))
    log.roll()
    counts = [len(log.segments)]
    for _ in range(3):
        compact(log)
        counts.append(len(log.segments))
    assert counts[0] > 8
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 2
    assert log.bases[0] == 0


def test_the_active_segment_is_never_cleaned() -> None:
    log = filled(virtual_disk(), [(b"k", b"1"), (b"k", b"2")])
    compact(log, roll=False)
    assert pairs(log) == [(0, b"k", b"1"), (1, b"k", b"2")]


def test_nothing_above_the_stable_offset_is_cleaned() -> None:
    log = filled(virtual_disk(), rows(60, 3))
    log.roll()
    bases = log.bases
    stable = bases[2] + 1
    assert compact(log, stable_offset=stable) == bases[2]
    assert [offset for offset, _, _ in pairs(log) if offset >= bases[2]] == list(range(bases[2], 60))
    assert len([offset for offset, _, _ in pairs(log) if offset < bases[2]]) == 3


def test_records_without_a_key_go() -> None:
    log = filled(virtual_disk(), [(None, b"1"), (b"k", b"2"), (None, b"3"), (b"j", b"4")])
    compact(log)
    assert pairs(log) == [(1, b"k", b"2"), (3, b"j", b"4")]


def test_long_keys_are_distinguished() -> None:
    long_keys = [bytes([number]) * 300 for number in range(3)]
    log = filled(virtual_disk(), [(key, b"%d" % turn) for turn in range(4) for key in long_keys])
    compact(log)
    assert [(key, value) for _, key, value in pairs(log)] == [(key, b"3") for key in long_keys]


def test_a_tombstone_stays_for_its_time_and_then_goes() -> None:
    log = filled(virtual_disk(), [(b"k", b"1"), (b"j", b"2"), (b"k", None), (b"i", b"3")], per_batch=2)
    end = compact(log, wall_ms=NOW_MS)
    assert pairs(log) == [(1, b"j", b"2"), (2, b"k", None), (3, b"i", b"3")]
    assert [record.timestamp for record in read_records(log)] == [NOW_MS] * 3
    compact(log, clean_offset=end, wall_ms=NOW_MS + 999)
    assert (2, b"k", None) in pairs(log)
    compact(log, clean_offset=end, wall_ms=NOW_MS + 1000)
    assert pairs(log) == [(1, b"j", b"2"), (3, b"i", b"3")]


def test_setting_a_horizon_keeps_every_timestamp() -> None:
    log = open_log(virtual_disk(), CONFIG)
    times = [NOW_MS - 5, NOW_MS + 70_000, NOW_MS - 1_000_000_000, NOW_MS]
    given = [(b"a", b"1"), (b"b", None), (b"c", b"x" * 200), (b"d", None)]
    append(log, keyed_batch(*given, timestamps=times, compression=3))
    compact(log, wall_ms=NOW_MS + 50)
    assert [(r.key, r.value, r.timestamp) for r in read_records(log)] == [
        (key, value, time) for (key, value), time in zip(given, times, strict=True)
    ]
    (batch, *_) = all_batches(log)
    fields = HEADER.unpack_from(batch)
    assert fields[5] & 0x40
    assert fields[7] == NOW_MS + 50 + CONFIG.delete_retention_ms
    assert fields[8] == NOW_MS + 70_000


def test_the_newest_time_is_that_of_the_records_left() -> None:
    log = open_log(virtual_disk(), CONFIG)
    append(log, keyed_batch((b"a", b"1"), (b"b", b"2"), timestamps=[NOW_MS + 500, NOW_MS]))
    append(log, keyed_batch((b"a", b"3"), timestamps=[NOW_MS + 1]))
    compact(log)
    assert [HEADER.unpack_from(batch)[8] for batch in all_batches(log)] == [NOW_MS, NOW_MS + 1]
    found = log.max_timestamp_offset()()
    assert found is not None
    assert (found.offset, found.timestamp) == (2, NOW_MS + 1)


def test_an_emptied_batch_has_no_time_for_readers() -> None:
    log = open_log(virtual_disk(), CONFIG)
    append(log, keyed_batch((b"a", b"1"), timestamps=[NOW_MS + 900], producer_id=5, producer_epoch=0, base_sequence=0))
    append(log, keyed_batch((b"a", b"2"), timestamps=[NOW_MS]))
    compact(log)
    assert [HEADER.unpack_from(batch)[RECORD_COUNT] for batch in all_batches(log)] == [0, 1]
    found = log.max_timestamp_offset()()
    assert found is not None
    assert found.offset == 1
    again = open_log(log.disk, CONFIG, recovery_point=2, clean=False)
    found = again.max_timestamp_offset()()
    assert found is not None
    assert found.offset == 1
    assert again.offset_at_time(NOW_MS + 1, 10)() is None


def test_the_last_sequence_of_every_producer_survives_without_snapshots() -> None:
    disk = virtual_disk()
    log = open_log(disk, CONFIG)
    for sequence in range(30):
        for producer in (7, 8):
            append(log, keyed_batch((b"k", b"v"), producer_id=producer, producer_epoch=2, base_sequence=sequence))
    append(log, keyed_batch((b"k", b"last")))
    compact(log)
    assert [value for _, _, value in pairs(log)] == [b"last"]
    log.close()
    for name in disk.list_directory(FOLDER):
        if name.endswith(".snapshot"):
            disk.unlink(f"{FOLDER}/{name}")
    again = open_log(disk, CONFIG, recovery_point=0, clean=False)
    described = {p.producer_id: (p.producer_epoch, p.last_sequence) for p in again.producers.describe()}
    assert described == {7: (2, 29), 8: (2, 29)}
    follows = keyed_batch((b"k", b"v"), producer_id=7, producer_epoch=2, base_sequence=30)
    assert again.producers.admit(fields_of(follows)) == -1


def test_every_segment_still_ends_where_the_next_begins() -> None:
    log = filled(virtual_disk(), [*rows(60, 60), *rows(60, 60)], replace(CONFIG, segment_bytes=900))
    compact(log)
    for segment, after in zip(log.segments, log.segments[1:], strict=False):
        assert segment.next_offset == after.base_offset
    again = open_log(log.disk, CONFIG, recovery_point=0)
    assert again.end_offset == log.end_offset
    assert pairs(again) == pairs(log)


def test_when_the_map_is_full_the_next_pass_continues() -> None:
    log = filled(virtual_disk(), rows(90, 30))
    bytes_max = 10 * ENTRY_BYTES
    passes, clean_offset = 0, 0
    log.roll()
    while clean_offset < 90:
        after = compact(log, roll=False, clean_offset=clean_offset, key_map_bytes_max=bytes_max)
        assert after > clean_offset
        clean_offset, passes = after, passes + 1
    assert passes == 9
    assert [offset for offset, _, _ in pairs(log)] == list(range(60, 90))


def test_the_longest_lag_and_the_shortest_lag() -> None:
    log = filled(virtual_disk(), rows(60, 3), replace(CONFIG, min_compaction_lag_ms=100))
    log.roll()
    flush(log)
    assert planned(log, wall_ms=NOW_MS + 99) is None
    assert planned(log, wall_ms=NOW_MS + 100) is not None


def test_aborted_records_replace_nothing_and_go() -> None:
    log = open_log(virtual_disk(), CONFIG)
    append(log, keyed_batch((b"a", b"1"), (b"b", b"1")))
    append(log, transaction_batch(9, 0, (b"a", b"aborted"), (b"c", b"aborted")))
    append(log, marker(9, commit=False))
    append(log, transaction_batch(9, 2, (b"b", b"committed")))
    append(log, marker(9, commit=True))
    compact(log)
    assert pairs(log) == [(0, b"a", b"1"), (5, b"b", b"committed")]


def transaction_batch(producer: int, sequence: int, *given: tuple[bytes, bytes]) -> bytearray:
    return keyed_batch(*given, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_a_marker_above_what_is_cleaned_decides_too() -> None:
    log = open_log(virtual_disk(), CONFIG)
    append(log, keyed_batch((b"a", b"1")))
    append(log, transaction_batch(9, 0, (b"a", b"aborted")))
    log.roll()
    append(log, transaction_batch(8, 0, (b"x", b"open")))
    append(log, marker(9, commit=False))
    assert compact(log, roll=False, stable_offset=2) == 2
    assert (0, b"a", b"1") in pairs(log)
    assert (1, b"a", b"aborted") not in pairs(log)


def test_a_marker_goes_when_its_transaction_is_empty_and_its_time_is_over() -> None:
    log = open_log(virtual_disk(), CONFIG)
    append(log, transaction_batch(9, 0, (b"a", b"1")))
    append(log, marker(9, commit=True))
    append(log, keyed_batch((b"a", b"2"), producer_id=9, producer_epoch=0, base_sequence=1))
    append(log, keyed_batch((b"z", b"end")))
    end = compact(log)
    assert controls(log) == 1  # its batch went only now
    compact(log, clean_offset=end)
    assert controls(log) == 1  # from now on its time runs
    compact(log, clean_offset=end, wall_ms=NOW_MS + CONFIG.delete_retention_ms)
    assert controls(log) == 0
    assert pairs(log) == [(2, b"a", b"2"), (3, b"z", b"end")]


def controls(log: PartitionLog) -> int:
    return sum(1 for batch in all_batches(log) if HEADER.unpack_from(batch)[5] & 0x20)


def test_a_batch_that_cannot_be_opened_is_kept() -> None:
    log = open_log(virtual_disk(), CONFIG)
    append(log, keyed_batch((b"a", b"1")))
    odd = keyed_batch((b"a", b"2"), (b"b", b"3"))
    odd[61] = 0x7F  # a record that declares a length it does not have
    odd[17:21] = checksum(odd).to_bytes(4, "big")
    append(log, odd)
    append(log, keyed_batch((b"c", b"4")))
    compact(log)
    assert [HEADER.unpack_from(batch)[0] for batch in all_batches(log)] == [0, 1, 3]


def test_a_batch_that_becomes_too_large_is_kept() -> None:
    log = open_log(virtual_disk(), replace(CONFIG, max_message_bytes=100))
    append(log, keyed_batch((b"a", bytes(5000)), compression=4))
    append(log, keyed_batch((b"a", b"small")))
    append(log, keyed_batch((b"a", b"last")))
    compact(log)
    assert [offset for offset, _, _ in pairs(log)] == [0, 2]


def test_a_tombstone_behind_a_batch_that_cannot_be_opened_stays() -> None:
    """Without it the record in that batch would be the last of its key again."""
    log = open_log(virtual_disk(), replace(CONFIG, max_message_bytes=100))
    append(log, keyed_batch((b"a", bytes(5000)), compression=4))
    append(log, keyed_batch((b"a", None)))
    append(log, keyed_batch((b"z", b"end")))
    end = compact(log)
    compact(log, clean_offset=end, wall_ms=NOW_MS + 10 * CONFIG.delete_retention_ms)
    assert (1, b"a", None) in pairs(log)


def test_reads_in_a_gap_give_the_next_batch() -> None:
    log = filled(virtual_disk(), [(b"k%d" % (number % 2), b"v" * 30) for number in range(100)])
    append(log, keyed_batch((b"z", b"1")))
    compact(log)
    left = [offset for offset, _, _ in pairs(log)]
    for begin in range(101):
        expected = [offset for offset in left if offset >= begin]
        assert [record.offset for record in read_records(log, begin=begin, max_bytes=100)] == expected
