"""The log against a plain list, with kills, power cuts, clean stops, flushes, retention and deletion of records."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.log.config import LogConfig
from headrace.log.errors import SequenceRejected
from headrace.log.producers import APPEND
from headrace.log.work import Work
from headrace.sim.entropy import SeededEntropy

from .world import NOW_MS, append, batch_of, fields_of, open_log, read_all, virtual_disk

pytestmark = pytest.mark.slow

PRODUCERS = 2
Batch = tuple[int, list[bytes], int, int]
"""Base offset, values, producer and base sequence of one appended batch."""


class LogMachine(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 2**32),
        segment_bytes=st.sampled_from([300, 2000, 20_000]),
        interval=st.sampled_from([0, 200, 4096]),
        short_writes=st.sampled_from([0, 3]),
    )
    def begin(self, seed: int, segment_bytes: int, interval: int, short_writes: int) -> None:
        self.entropy = SeededEntropy(seed)
        self.disk = virtual_disk(seed)
        self.disk.faults.short_writes_one_in = short_writes
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            preallocation_bytes_min=512,
            preallocation_bytes_max=8192,
            snapshot_interval_bytes=1500,
            unclean_tail_bytes_max=4000,
            retention_ms=-1,
            file_delete_delay_ms=1000,
        )
        self.disk.make_directory("data")
        self.disk.sync_directory("")
        self.batches: list[Batch] = []
        self.sequences = [0] * PRODUCERS
        self.recovery_point = 0
        self.start_offset = 0
        self.checkpointed_start = 0
        self.checkpointed_recovery_point = 0
        self.wall_ms = NOW_MS
        self.work: list[Work] = []
        self.value = 0
        self.open(clean=False)

    def open(self, *, clean: bool) -> None:
        self.log = open_log(
            self.disk,
            self.config,
            recovery_point=self.checkpointed_recovery_point,
            start_offset=self.checkpointed_start,
            clean=clean,
            wall_ms=self.wall_ms,
        )
        self.disk.sync_directory("data")
        self.log.on_flushed = self.flushed

    def flushed(self, end_offset: int) -> None:
        self.recovery_point = end_offset

    def expected(self) -> list[tuple[int, bytes]]:
        every = [(base + at, value) for base, values, _, _ in self.batches for at, value in enumerate(values)]
        return [(offset, value) for offset, value in every if offset >= self.log.start_offset]

    @rule(sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 400), st.integers(-1, PRODUCERS - 1)), max_size=6))
    def append_turn(self, sizes: list[tuple[int, int, int]]) -> None:
        turn = []
        for count, size, producer in sizes:
            values = []
            for _ in range(count):
                self.value += 1
                values.append(b"%d:" % self.value + bytes(size))
            base_sequence = self.sequences[producer] if producer >= 0 else -1
            batch = batch_of(
                *values,
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                base_sequence=base_sequence,
                timestamps=[self.wall_ms + self.value] * count,
            )
            if producer >= 0:
                self.sequences[producer] += count
            turn.append((batch, values, producer, base_sequence))
        offsets = append(self.log, *(batch for batch, *_ in turn), wall_ms=self.wall_ms)
        self.batches += [(offset, *rest) for offset, (_, *rest) in zip(offsets, turn, strict=True)]  # type: ignore[misc]

    @rule(how=st.sampled_from(["flush", "preallocate", "retain"]))
    def begin_work(self, how: str) -> None:
        work = {
            "flush": self.log.flush_work,
            "preallocate": self.log.preallocation.work,
            "retain": lambda: self.log.retirement.work(self.wall_ms, self.log.end_offset),
        }[how]()
        if work is not None:
            self.work.append(work)

    @precondition(lambda self: self.work)
    @rule(finish=st.booleans())
    def run_work(self, finish: bool) -> None:
        work = self.work.pop(0)
        work.run()
        if finish:
            work.done(None, None)
        else:
            self.kill()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        starts = [base for base, *_ in self.batches] or [0]
        self.log.advance_start(max(starts[int(share * (len(starts) - 1))], self.log.start_offset))
        self.start_offset = self.log.start_offset

    @rule()
    def checkpoint(self) -> None:
        self.checkpointed_start = self.log.start_offset
        self.checkpointed_recovery_point = self.log.recovery_point

    @rule(passed_ms=st.sampled_from([10, 2000]))
    def pass_time(self, passed_ms: int) -> None:
        self.wall_ms += passed_ms
        self.log.files.close_idle()

    @rule()
    def stop_and_start(self) -> None:
        while self.work:
            self.work.pop(0).run_inline()
        self.log.close()
        self.checkpoint()
        self.open(clean=True)
        assert self.log.recovered.cut_bytes == 0
        self.check_producers()

    @rule()
    def kill(self) -> None:
        """kill -9: everything written is still in the page cache."""
        self.work.clear()
        self.disk.kill()
        self.open(clean=False)
        assert self.log.end_offset == (self.batches[-1][0] + len(self.batches[-1][1]) if self.batches else 0)
        self.check_producers()

    @rule()
    def lose_power(self) -> None:
        """Whatever was not flushed may be gone, from some batch on; nothing else may."""
        self.work.clear()
        self.disk.crash(self.entropy)
        self.open(clean=False)
        assert self.log.end_offset >= self.recovery_point
        self.batches = [batch for batch in self.batches if batch[0] < self.log.end_offset]
        for producer in range(PRODUCERS):
            own = [(sequence, values) for _, values, owner, sequence in self.batches if owner == producer]
            self.sequences[producer] = own[-1][0] + len(own[-1][1]) if own else 0
        self.check_producers()

    def check_producers(self) -> None:
        """The last five batches of each producer are known, older ones and gaps are refused, the next is taken."""
        kept = [batch for batch in self.batches if batch[0] >= self.log.bases[0]]
        for producer in range(PRODUCERS):
            own = [batch for batch in kept if batch[2] == producer]
            for base, values, _, sequence in own[-5:]:
                assert self.log.producers.admit(self._fields(producer, sequence, len(values))) == base
            if own:
                following = self.sequences[producer]
                assert self.log.producers.admit(self._fields(producer, following, 1)) == APPEND
                try:
                    self.log.producers.admit(self._fields(producer, following + 1, 1))
                    raise AssertionError("a gap was admitted")
                except SequenceRejected:
                    pass

    def _fields(self, producer: int, sequence: int, count: int):  # type: ignore[no-untyped-def]
        return fields_of(batch_of(*([b""] * count), producer_id=producer, producer_epoch=0, base_sequence=sequence))

    @invariant()
    def the_log_is_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        expected = self.expected()
        assert read_all(self.log, max_bytes=700) == expected
        middle = (self.log.start_offset + self.log.end_offset) // 2
        assert read_all(self.log, begin=middle) == [pair for pair in expected if pair[0] >= middle]
        assert self.log.size_bytes == sum(segment.size for segment in self.log.segments)


LogMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestLog = LogMachine.TestCase
