"""Random appends, passes, restarts, kills and power cuts, against a list of all that was ever written."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.log.compaction.cleaner import CleanedGroup, clean
from headrace.log.compaction.key_map import ENTRY_BYTES
from headrace.log.compaction.swap import swap_work
from headrace.log.inspect import verify
from headrace.log.partition_log import PartitionLog
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.world import CutOff

from ..log.world import FOLDER, NOW_MS, append, fields_of, open_log, virtual_disk
from .logs import CONFIG, all_batches, flush, keyed_batch, pairs, planned, read_records

pytestmark = pytest.mark.slow

KEYS = [b"a", b"b", b"c", b"d" * 60, b"e"]
PRODUCERS = [1, 2, 3]
MODEL_CONFIG = replace(CONFIG, segment_bytes=500, delete_retention_ms=50)

values = st.one_of(st.none(), st.binary(max_size=30))
rows = st.lists(st.tuples(st.sampled_from(KEYS), values), min_size=1, max_size=4)
turns = st.lists(rows, min_size=1, max_size=8)


class CompactedLog(RuleBasedStateMachine):
    """Everything appended is synced before it is counted, so that a power cut takes none of it."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.disk: VirtualDisk = virtual_disk(seed)
        self.log: PartitionLog = open_log(self.disk, MODEL_CONFIG)
        flush(self.log)
        self.disk.sync_directory("data")
        self.disk.sync_directory("")
        self.written: list[tuple[bytes, bytes | None]] = []
        self.sequences: dict[int, int] = {}
        self.clean_offset = 0
        self.touched_to = 0
        """Offset that a pass may have reached, also one that was cut off."""
        self.wall_ms = NOW_MS
        self.passes = 0

    @rule(
        given=turns,
        producer=st.sampled_from([-1, *PRODUCERS]),
        compression=st.sampled_from([0, 2, 3, 4]),
        late=st.booleans(),
    )
    def append(
        self, given: list[list[tuple[bytes, bytes | None]]], producer: int, compression: int, late: bool
    ) -> None:
        for records in given:
            sequence = self.sequences.get(producer, 0)
            batch = keyed_batch(
                *records,
                timestamps=[self.wall_ms - (7 if late else 0) + place for place in range(len(records))],
                producer_id=producer,
                producer_epoch=-1 if producer < 0 else 0,
                base_sequence=-1 if producer < 0 else sequence,
                compression=compression,
            )
            append(self.log, batch, wall_ms=self.wall_ms)
            self.written += records
            if producer >= 0:
                self.sequences[producer] = sequence + len(records)
        flush(self.log)

    def roll(self) -> None:
        if self.log.active.size:
            self.log.roll()
            flush(self.log)

    @rule(passed_ms=st.integers(1, 100))
    def wait(self, passed_ms: int) -> None:
        self.wall_ms += passed_ms

    @rule(keys_max=st.sampled_from([1, 2, 100]), segment_bytes=st.sampled_from([500, 2000]), roll_before=st.booleans())
    def compact(self, keys_max: int, segment_bytes: int, roll_before: bool) -> None:
        if roll_before:
            self.roll()
        self.log.configure(replace(MODEL_CONFIG, segment_bytes=segment_bytes))
        self.run_pass(keys_max)
        self.log.configure(MODEL_CONFIG)

    @rule(calls=st.integers(0, 90), power=st.booleans(), draw=st.integers(0, 10_000))
    def end_within_a_pass(self, calls: int, power: bool, draw: int) -> None:
        self.roll()
        left = calls

        def count(operation: str, _path: str) -> None:
            nonlocal left
            if operation in ("read", "open"):
                return
            if left == 0:
                raise CutOff
            left -= 1

        self.disk.on_operation = count
        try:
            self.run_pass(100)
        except CutOff:
            pass
        self.restart(power=power, draw=draw)

    @rule(power=st.booleans(), draw=st.integers(0, 10_000), snapshots=st.booleans())
    def crash(self, power: bool, draw: int, snapshots: bool) -> None:
        self.restart(power=power, draw=draw, snapshots=snapshots)

    def run_pass(self, keys_max: int) -> None:
        plan = planned(
            self.log,
            clean_offset=self.clean_offset,
            wall_ms=self.wall_ms,
            key_map_bytes_max=keys_max * ENTRY_BYTES,
            unique=f"u{self.passes}",
        )
        self.passes += 1
        if plan is None:
            return
        self.touched_to = plan.segments[-1].end_offset
        cleaned_to = self.clean_offset
        for result in clean(self.disk, plan):
            if isinstance(result, CleanedGroup):
                work = swap_work(self.log, result, wall_ms=self.wall_ms)
                if work is not None:
                    work.run_inline()
                cleaned_to = result.cleaned_to
        self.clean_offset = cleaned_to

    def restart(self, *, power: bool, draw: int, snapshots: bool = True) -> None:
        self.disk.on_operation = None
        recovery_point = self.log.recovery_point if draw % 2 else 0
        if power:
            self.disk.crash(SeededEntropy(draw))
        else:
            self.disk.kill()
        if not snapshots:
            for name in self.disk.list_directory(FOLDER):
                if name.endswith(".snapshot"):
                    self.disk.unlink(f"{FOLDER}/{name}")
        self.log = open_log(self.disk, MODEL_CONFIG, recovery_point=recovery_point, wall_ms=self.wall_ms)
        flush(self.log)
        self.disk.sync_directory("data")

    @invariant()
    def records_are_what_was_written_at_their_offsets(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.end_offset == len(self.written)
        found = pairs(self.log)
        assert [(key, value) for _, key, value in found] == [self.written[offset] for offset, _, _ in found]
        assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})
        current = dict(self.written)
        left = {key: value for _, key, value in found}
        for key, value in current.items():
            assert left.get(key) == value, "the last value of a key is there; a deletion may have been forgotten"
        untouched = list(range(self.touched_to, len(self.written)))
        assert [offset for offset, _, _ in found if offset >= self.touched_to] == untouched

    @invariant()
    def the_clean_part_has_one_record_of_a_key(self) -> None:
        if hasattr(self, "log"):
            keys = [key for offset, key, _ in pairs(self.log) if offset < self.clean_offset]
            assert len(keys) == len(set(keys))

    @invariant()
    def producers_continue_where_they_were(self) -> None:
        if hasattr(self, "log"):
            described = {p.producer_id: p.last_sequence + 1 for p in self.log.producers.describe()}
            assert described == self.sequences
            for producer, sequence in self.sequences.items():
                follows = keyed_batch((b"k", b"v"), producer_id=producer, producer_epoch=0, base_sequence=sequence)
                assert self.log.producers.admit(fields_of(follows)) == -1

    @invariant()
    def readers_begin_anywhere_and_the_files_are_whole(self) -> None:
        if hasattr(self, "log"):
            offsets = [offset for offset, _, _ in pairs(self.log)]
            for begin in range(0, len(self.written) + 1, 3):
                small = [record.offset for record in read_records(self.log, begin=begin, max_bytes=90)]
                assert small == [offset for offset in offsets if offset >= begin]
            newest = max((record.timestamp for record in read_records(self.log)), default=None)
            found = self.log.max_timestamp_offset()()
            assert (found.timestamp if found is not None else None) == newest
            assert all(len(batch) >= 61 for batch in all_batches(self.log))
            remedies = {finding.text for finding in verify(self.disk, FOLDER).findings}
            assert not remedies


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
