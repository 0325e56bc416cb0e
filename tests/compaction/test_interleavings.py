"""Appends, flushes, retention and compaction of one log, whose helpers begin and end in every order.

The other models let each operation end before the next one begins, which no broker does.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.log.compaction.cleaner import CleanedGroup
from headrace.log.compaction.swap import discard_work, swap_work
from headrace.log.work import Work

from ..log.world import FOLDER, NOW_MS, append, open_log, virtual_disk
from .logs import CONFIG, cleaned_groups, flush, keyed_batch, pairs, planned

KEYS = [b"a", b"b", b"c"]
BOTH = replace(CONFIG, segment_bytes=300, delete=True, retention_bytes=900, file_delete_delay_ms=5)


class InterleavedLog(RuleBasedStateMachine):
    """Work is taken from the log by one rule, run by another and ended by a third."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.log = open_log(virtual_disk(seed), BOTH)
        self.written: list[tuple[bytes, bytes]] = []
        self.groups: list[CleanedGroup] = []
        self.begun: list[Work] = []
        self.ran: list[tuple[Work, object]] = []
        self.wall_ms = NOW_MS
        self.passes = 0

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=4, max_size=12))
    def append(self, keys: list[bytes]) -> None:
        for key in keys:
            value = b"value-%d" % len(self.written)
            append(self.log, keyed_batch((key, value), timestamps=[self.wall_ms]), wall_ms=self.wall_ms)
            self.written.append((key, value))

    @rule(passed_ms=st.integers(1, 20))
    def wait(self, passed_ms: int) -> None:
        self.wall_ms += passed_ms

    @rule()
    def begin_flush(self) -> None:
        self._take(self.log.flush_work())

    @rule(retention_bytes=st.sampled_from([0, 300, 900, -1]), hurry=st.booleans())
    def retention(self, retention_bytes: int, hurry: bool) -> None:
        self.log.configure(replace(BOTH, retention_bytes=retention_bytes))
        self._take(self.log.retirement.work(self.wall_ms, self.log.end_offset, hurry=hurry))

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.log.advance_start(self.log.start_offset + int(share * (self.log.end_offset - self.log.start_offset)))

    @precondition(lambda self: not self.groups and not self.log.being_replaced)
    @rule()
    def clean(self) -> None:
        """A pass begins: what it plans is on the device, and its first exchange is begun."""
        flush(self.log)
        self.passes += 1
        plan = planned(self.log, wall_ms=self.wall_ms, unique=f"u{self.passes}")
        if plan is not None:
            self.groups = list(cleaned_groups(self.log.disk, plan))
            if self.groups:
                self.swap()

    @precondition(lambda self: self.groups)
    @rule()
    def swap(self) -> None:
        group = self.groups.pop(0)
        if group.files is None:
            return
        self._take(swap_work(self.log, group, wall_ms=self.wall_ms) or discard_work(self.log, group))

    def _take(self, work: Work | None) -> None:
        if work is not None:
            self.begun.append(work)

    @precondition(lambda self: self.begun)
    @rule(place=st.integers(0, 5))
    def run(self, place: int) -> None:
        work = self.begun.pop(place % len(self.begun))
        self.ran.append((work, work.run()))

    @precondition(lambda self: self.ran)
    @rule(place=st.integers(0, 5))
    def end(self, place: int) -> None:
        work, result = self.ran.pop(place % len(self.ran))
        work.done(result, None)

    @invariant()
    def readers_see_the_log(self) -> None:
        """Every record that is read is as it was written, and none that compaction must keep is missing."""
        if not hasattr(self, "log"):
            return
        assert not self.log.failed
        found = pairs(self.log)
        assert all(self.written[offset] == (key, value) for offset, key, value in found)
        assert {key: value for _, key, value in found} == dict(self.written[self.log.start_offset :])
        assert self.log.size_bytes == sum(segment.size for segment in self.log.segments)

    def teardown(self) -> None:
        if not hasattr(self, "log"):
            return
        while self.begun or self.ran:
            while self.begun:
                self.run(0)
            while self.ran:
                self.end(0)
        live = sorted(name for name in self.log.disk.list_directory(FOLDER) if name.endswith(".log"))
        assert live == [segment.log.path.rpartition("/")[2] for segment in self.log.segments]
        assert not self.log.has_work
        before, start = pairs(self.log), self.log.start_offset
        end = self.log.end_offset
        self.log.close()
        again = open_log(self.log.disk, BOTH, recovery_point=end, start_offset=start, clean=True, wall_ms=self.wall_ms)
        assert pairs(again) == before
        assert (again.start_offset, again.end_offset) == (start, end)


TestInterleavedLog = InterleavedLog.TestCase
TestInterleavedLog.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
