"""Transactions in the log against a plain list, with kills, power cuts, full disks, truncation and damaged indexes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.log.config import LogConfig
from headrace.log.work import Work
from headrace.sim.entropy import SeededEntropy
from headrace.sim.faults import DISK_FULL

from .transactions_world import Entry, NaiveLog, data_batch, index_of, read_committed, stage_data, stage_marker
from .world import open_log, truncate, virtual_disk

PRODUCERS = 3
Step = tuple[int, str, int]
"""Producer, what it does, and how many bytes its record has."""

STEPS = st.lists(
    st.tuples(
        st.integers(0, PRODUCERS - 1),
        st.sampled_from(["write", "write", "plain", "commit", "abort"]),
        st.integers(0, 200),
    ),
    min_size=1,
    max_size=6,
)


class TransactionsMachine(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 2**32),
        segment_bytes=st.sampled_from([250, 700, 20_000]),
        interval=st.sampled_from([0, 300]),
        snapshot_interval=st.sampled_from([0, 800, 1 << 30]),
    )
    def begin(self, seed: int, segment_bytes: int, interval: int, snapshot_interval: int) -> None:
        self.entropy = SeededEntropy(seed)
        self.disk = virtual_disk(seed)
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            preallocate=False,
            snapshot_interval_bytes=snapshot_interval,
            unclean_tail_bytes_max=2000,
            retention_ms=-1,
        )
        self.disk.make_directory("data")
        self.disk.sync_directory("")
        self.naive = NaiveLog()
        self.sequences = [0] * PRODUCERS
        self.flushed_offset = self.checkpointed = 0
        self.work: list[Work] = []
        self.value = 0
        self.exact = True
        """Until a turn was taken back: what older batches it had pushed out, memory forgets and the log does not."""
        self.open(clean=False)

    def open(self, *, clean: bool) -> None:
        self.work.clear()
        self.log = open_log(self.disk, self.config, recovery_point=self.checkpointed, clean=clean)
        self.disk.sync_directory("data")
        self.log.on_flushed = self.flushed

    def flushed(self, end_offset: int) -> None:
        self.flushed_offset = end_offset

    def stage(self, producer: int, does: str, size: int) -> Entry:
        if does in ("commit", "abort"):
            offset = stage_marker(self.log, producer, commit=does == "commit")
            return Entry(offset, 1, producer, True, does == "commit", ())
        within = does == "write"
        self.value += 1
        value = b"%d:" % self.value + bytes(size)
        batch = data_batch(value, producer_id=producer, sequence=self.sequences[producer], transactional=within)
        self.sequences[producer] += 1
        return Entry(stage_data(self.log, batch), 1, producer, within, None, (value,))

    @rule(steps=STEPS)
    def append_turn(self, steps: list[Step]) -> None:
        staged = self.staged(steps)
        self.log.write_staged()
        self.naive.entries += staged

    def staged(self, steps: list[Step]) -> list[Entry]:
        """A producer within a transaction writes nothing outside of it: the leader refuses that."""
        began = set(self.naive.open())
        entries = []
        for producer, does, size in steps:
            if does == "plain" and producer in began:
                continue
            if does == "write":
                began.add(producer)
            elif does != "plain":
                began.discard(producer)
            entries.append(self.stage(producer, does, size))
        return entries

    @rule(steps=STEPS, written=st.integers(0, 1))
    def find_no_room(self, steps: list[Step], written: int) -> None:
        """An append that the device has no room for leaves no trace; a segment before it may have had some."""
        staged = self.staged(steps)
        self.disk.faults.fail("write_vector", code=DISK_FULL, path_contains=".log", skip=written)
        try:
            self.log.write_staged()
        except OSError:
            self.exact = False
        finally:
            self.disk.faults.heal()
        self.naive.entries += [entry for entry in staged if entry.offset < self.log.end_offset]

    @rule()
    def flush(self) -> None:
        work = self.log.flush_work()
        if work is not None:
            work.run_inline()

    @rule()
    def checkpoint(self) -> None:
        self.checkpointed = self.log.recovery_point

    @rule()
    def roll(self) -> None:
        if self.log.active.size:
            self.log.roll()

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        if self.naive.entries:
            offset = self.naive.entries[int(share * (len(self.naive.entries) - 1))].offset
            truncate(self.log, offset)
            self.naive.cut(offset)
            self.flushed_offset = min(self.flushed_offset, offset)

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.checkpointed = self.log.recovery_point
        self.open(clean=True)

    @rule()
    def kill(self) -> None:
        before = sorted(self.log.producers.describe())
        self.disk.kill()
        self.open(clean=False)
        if self.exact:
            assert sorted(self.log.producers.describe()) == before

    @rule()
    def lose_power(self) -> None:
        self.disk.crash(self.entropy)
        self.open(clean=False)
        assert self.log.end_offset >= self.flushed_offset
        self.naive.cut(self.log.end_offset)
        # Names that were not synced may be gone, and the log then begins with a later segment.
        self.naive.entries = [entry for entry in self.naive.entries if entry.offset >= self.log.start_offset]

    @precondition(lambda self: any(segment.transactions.exists for segment in self.log.segments))
    @rule(data=st.data(), clean=st.booleans())
    def damage_an_index(self, data: st.DataObject, clean: bool) -> None:
        """Cut within an entry, or with a bit of it turned that makes it impossible: it is rewritten."""
        if clean:
            self.log.close()
            self.checkpointed = self.log.recovery_point
        self.disk.kill()
        segments = [segment for segment in self.log.segments if segment.transactions.exists]
        segment = data.draw(st.sampled_from(segments))
        file = self.disk.open(segment.transactions.file.path)
        size = self.disk.size(file)
        if size:
            if data.draw(st.booleans()):
                self.disk.truncate(file, data.draw(st.integers(0, size // 34 - 1)) * 34 + data.draw(st.integers(1, 33)))
            else:
                entry = data.draw(st.integers(0, size // 34 - 1)) * 34
                place = entry + data.draw(st.sampled_from([0, 2, 10, 18, 26]))  # a sign, or the version
                byte = self.disk.read(file, 1, place)[0]
                self.disk.write_vector(file, [bytes([byte | 0x80])], place)
            self.disk.data_sync(file)
        self.disk.close(file)
        self.open(clean=clean)

    @invariant()
    def the_log_is_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        log, naive = self.log, self.naive
        assert not naive.entries or log.end_offset == naive.end_offset
        assert log.producers.open == naive.open()
        assert list(log.producers.open.values()) == sorted(log.producers.open.values())
        assert index_of(log) == naive.aborted()
        end = log.end_offset
        first = log.producers.first_unstable_offset(end)
        stable = end if first is None else min(first, end)
        assert stable == naive.last_stable_offset(end)
        for max_bytes in (1, 400, 1 << 20):
            middle = (log.start_offset + stable) // 2
            assert read_committed(log, stable, begin=middle, max_bytes=max_bytes) == naive.committed(stable, middle)


TransactionsMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=25)
TestTransactions = pytest.mark.slow(TransactionsMachine.TestCase)
