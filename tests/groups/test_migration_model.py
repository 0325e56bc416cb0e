"""Groups that move between the two protocols with live members, as a model: anything in any order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.model.errors import ErrorCode
from tests.groups.mixed import MixedHarness

ALL = list(range(6))

CLASSIC = st.sampled_from(["a", "b", "s"])
CONSUMERS = st.sampled_from(["c", "d", "z"])
INSTANCES = {"s": "static", "z": "static"}


class Migration(RuleBasedStateMachine):
    """Clients of both kinds come, live, leave and die in any order; what they believe to read is never read twice."""

    def __init__(self):
        super().__init__()
        self.harness = MixedHarness(session_timeout_ms_min=1)

    def _known(self, name):
        group = self.harness.consumer_group or self.harness.group
        return group is not None and self.harness.member(name).member_id in group.members

    def _forget(self, name):
        member = self.harness.member(name)
        member.member_id, member.generation = "", -1
        self.harness.held[name] = ()

    @rule(name=CLASSIC)
    def come(self, name):
        if not self._known(name):
            self._forget(name)
        self.harness.come(name, instance_id=INSTANCES.get(name))

    @rule(name=CLASSIC)
    def live(self, name):
        self._live(name)

    def _live(self, name):
        error = self.harness.live(name)
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.harness.held[name] = ()
        return error

    @rule(name=CLASSIC)
    def collect(self, name):
        self.harness.collect(name)

    @rule(name=CLASSIC)
    def leave(self, name):
        self.harness.leave(name)
        self._forget(name)

    @rule(name=CONSUMERS)
    def beat(self, name):
        result = self.harness.beat(name, instance_id=INSTANCES.get(name))
        if result.error is not ErrorCode.NONE:
            consumer = self.harness.consumer(name)
            consumer.epoch, consumer.owned = 0, ()

    @rule(name=CONSUMERS)
    def leave_consumers(self, name):
        self.harness.beat(name, epoch=-1)
        consumer = self.harness.consumer(name)
        consumer.epoch, consumer.owned = 0, ()

    @rule(duration_ms=st.sampled_from([1_000, 6_000, 20_000, 60_000]))
    def wait(self, duration_ms):
        """A member that is silent for too long is out, and stops reading at the same time, as good clients do."""
        self.harness.wait(duration_ms)
        self._notice()

    @rule()
    def restart(self):
        self.harness.restart()
        self._notice()

    def _notice(self):
        consumers = self.harness.consumer_group
        for name in ("a", "b", "s"):
            if not self._known(name):
                self._forget(name)
        for name in ("c", "d", "z"):
            if consumers is None or name not in consumers.members:
                consumer = self.harness.consumer(name)
                consumer.epoch, consumer.owned = 0, ()

    @invariant()
    def nothing_is_read_twice(self):
        self._notice()
        parts = [part for partitions in self.harness.reads().values() for part in partitions]
        assert len(parts) == len(set(parts)), self.harness.reads()

    @invariant()
    def waiting_members_wait_for_something(self):
        if self.harness.kind is not None:
            assert self.harness.machine.next_deadline_ms() is not None

    def teardown(self):
        """Left alone, good clients of either kind reach a state in which everything is read."""
        classic = [name for name in ("a", "b", "s") if self._known(name)]
        consumers = [name for name in ("c", "d", "z") if self.harness.consumer(name).epoch > 0]
        if not classic and not consumers:
            return
        for name in classic:
            self.come(name)
        for _ in range(12):
            for name in classic:
                if self._live(name) is ErrorCode.UNKNOWN_MEMBER_ID:
                    self.come(name)
            for name in consumers:
                self.beat(name)
            self.harness.wait(100)
        present = self.harness.consumer_group or self.harness.group
        if len(present.members) == len({*classic, *consumers}):
            parts = [part for partitions in self.harness.reads().values() for part in partitions]
            assert sorted(parts) == ALL, (self.harness.reads(), classic, consumers)


TestMigration = pytest.mark.slow(Migration.TestCase)
TestMigration.settings = settings(max_examples=60, stateful_step_count=30)
