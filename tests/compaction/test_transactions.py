"""Compaction of logs with transactions: readers of committed ones see the last value of every key, and no other."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.log import names
from headrace.log.partition_log import PartitionLog
from headrace.sim.disk import VirtualDisk
from headrace.wire.records.header import HEADER
from headrace.wire.records.markers import is_marker

from ..log.transactions_world import index_of, read_committed, stage_data, stage_marker
from ..log.world import FOLDER, NOW_MS, open_log, virtual_disk
from .logs import CONFIG, all_batches, compact, flush, keyed_batch

PRODUCERS = 3
LONG_AFTER_MS = 10 * 86_400_000


class Written:
    """A log, and the plain truth about what was committed to it."""

    def __init__(self, disk: VirtualDisk) -> None:
        self.disk = disk
        self.log = open_log(disk, CONFIG)
        self.committed: set[bytes] = set()
        """Values, each of which is written once."""
        self.pending: dict[int, list[bytes]] = {}
        self.order: list[tuple[int, bytes, bytes]] = []
        """Offset, key and value of every record."""
        self.sequences = [0] * PRODUCERS

    def write(self, producer: int, key: bytes) -> None:
        value = b"%d-%d" % (producer, len(self.order)) + bytes(60)
        batch = keyed_batch(
            (key, value),
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            transactional=True,
        )
        self.sequences[producer] += 1
        offset = stage_data(self.log, batch)
        self.log.write_staged()
        self.order.append((offset, key, value))
        self.pending.setdefault(producer, []).append(value)

    def end(self, producer: int, *, commit: bool) -> None:
        stage_marker(self.log, producer, commit=commit)
        self.log.write_staged()
        values = self.pending.pop(producer, [])
        if commit:
            self.committed.update(values)

    def stable(self) -> int:
        first = self.log.producers.first_unstable_offset(self.log.end_offset)
        return self.log.end_offset if first is None else first

    def seen(self, max_bytes: int = 1 << 20) -> dict[bytes, bytes]:
        """The last value of each key, as a reader of committed transactions finds it."""
        found = read_committed(self.log, self.stable(), begin=self.log.start_offset, max_bytes=max_bytes)
        keys = {offset: key for offset, key, _value in self.order}
        return {keys[offset]: value for offset, value in found}

    def expected(self) -> dict[bytes, bytes]:
        stable = self.stable()
        return {key: value for offset, key, value in self.order if offset < stable and value in self.committed}


def played(steps: list[tuple[int, str, int]]) -> Written:
    written = Written(virtual_disk())
    for producer, does, key in steps:
        if does == "write":
            written.write(producer, b"key-%d" % key)
        else:
            written.end(producer, commit=does == "commit")
    return written


STEPS = st.lists(
    st.tuples(
        st.integers(0, PRODUCERS - 1),
        st.sampled_from(["write", "write", "write", "commit", "abort"]),
        st.integers(0, 4),
    ),
    min_size=8,
    max_size=60,
)


@given(STEPS, st.integers(1, 3), st.sampled_from([4 << 10, 1 << 20]), st.booleans())
@settings(max_examples=60)
def test_readers_of_committed_transactions_see_the_last_values(
    steps: list[tuple[int, str, int]], passes: int, key_map_bytes: int, late: bool
) -> None:
    written = played(steps)
    expected, opened = written.expected(), dict(written.log.producers.open)
    assert written.seen() == expected
    cleaned_to = 0
    for number in range(passes):
        wall_ms = NOW_MS + number * 2000 * (1 if not late else LONG_AFTER_MS)
        cleaned_to = compact(
            written.log,
            clean_offset=cleaned_to,
            stable_offset=written.stable(),
            wall_ms=wall_ms,
            key_map_bytes_max=key_map_bytes,
        )
        assert cleaned_to <= written.stable()
        for max_bytes in (1, 500, 1 << 20):
            assert written.seen(max_bytes) == expected
        index_of(written.log)
    for clean in (True, False):
        written.log.close() if clean else written.disk.kill()
        for name in written.disk.list_directory(FOLDER):
            if not clean and name.endswith(names.SNAPSHOT):
                written.disk.unlink(f"{FOLDER}/{name}")
        written.log = open_log(
            written.disk, CONFIG, recovery_point=written.log.recovery_point if clean else 0, clean=clean
        )
        assert written.seen() == expected
        assert written.log.producers.open == opened


def markers(log: PartitionLog) -> list[int]:
    return [fields[0] for batch in all_batches(log) if is_marker(fields := HEADER.unpack_from(batch)) and fields[12]]


def test_a_marker_stays_until_its_data_is_gone_and_its_time_is_over_and_its_entry_with_it() -> None:
    written = Written(virtual_disk())
    for number in range(8):
        written.write(1, b"key-%d" % (number % 2))
        written.write(2, b"key-%d" % (number % 2))
        written.end(1, commit=False)
        written.end(2, commit=True)
    written.write(1, b"last")
    written.end(1, commit=True)
    aborted = [entry.last_offset for entry in index_of(written.log)]
    assert len(aborted) == 8
    cleaned_to = compact(written.log)
    assert set(aborted) <= set(markers(written.log)), "the data went in this pass only"
    assert [entry.last_offset for entry in index_of(written.log)] == aborted
    files = [name for name in written.disk.list_directory(FOLDER) if name.endswith(names.TRANSACTION_INDEX)]
    assert files
    cleaned_to = compact(written.log, clean_offset=cleaned_to)
    kept = set(markers(written.log))
    assert set(aborted[:-1]) <= kept, "from this pass on their time runs"
    compact(written.log, clean_offset=cleaned_to, wall_ms=NOW_MS + CONFIG.delete_retention_ms + 1)
    kept = set(markers(written.log))
    assert [entry.last_offset for entry in index_of(written.log)] == [offset for offset in aborted if offset in kept]
    assert len(kept & set(aborted)) < 4, "those stay of which the header of a batch is left, at a segment's end"


def test_an_open_transaction_is_not_cleaned() -> None:
    written = Written(virtual_disk())
    for number in range(10):
        written.write(1, b"key")
        written.end(1, commit=True)
        if number == 5:
            written.write(2, b"key")
    written.log.roll()
    flush(written.log)
    stable = written.stable()
    before = [batch for batch in all_batches(written.log) if HEADER.unpack_from(batch)[0] >= stable]
    assert compact(written.log, roll=False, stable_offset=stable) <= stable
    assert [batch for batch in all_batches(written.log) if HEADER.unpack_from(batch)[0] >= stable] == before
