"""Any order of events: the log tells the live state after each, nothing has two owners, strangers commit nothing."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.core.groups import classic_responses
from headrace.core.groups.commands import SyncResult
from headrace.core.groups.states import GroupState
from headrace.model.errors import ErrorCode
from tests.groups.harness import Harness

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a", "b", "c", "s", "z"])
STATIC = {"s", "z"}
PROTOCOLS = st.sampled_from(
    [(("range", b""),), (("range", b"new"),), (("sticky", b""), ("range", b"")), (("range", b""), ("sticky", b"x"))]
)
WAITS_MS = st.sampled_from([1, 500, 3_000, 6_000, 10_000, 60_000, 300_000])
PARTITIONS = 6


class GroupMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.harness = Harness(initial_rebalance_delay_ms=1_000, offset_retention_ms=200_000)
        self.owners = {}
        """Of (generation, partition), as the answers to members say."""

    def see(self):
        """Note the answers to members; two of one generation never hear of the same partition."""
        for ticket, response in self.harness.take_outcomes():
            if isinstance(response, SyncResult) and response.error is ErrorCode.NONE:
                generation = self.harness.member(ticket.name).generation
                for partition in response.assignment:
                    owner = self.owners.setdefault((generation, partition), ticket.name)
                    assert owner == ticket.name, f"{partition} of generation {generation} has two owners"

    @rule(name=NAMES, protocols=PROTOCOLS, required=st.booleans(), skip=st.booleans())
    def join(self, name, protocols, required, skip):
        instance_id = name if name in STATIC else None
        self.harness.join(name, protocols=protocols, required=required, skip=skip, instance_id=instance_id)
        self.see()

    @rule(names=st.lists(NAMES, min_size=1, max_size=4, unique=True))
    def agree(self, names):
        """These members do all that a good client does, so that later events find a group that works."""
        for _ in range(2):
            for name in names:
                if self.harness.member(name).generation < 0 or self.late(name):
                    self.join(name, (("range", b""),), required=False, skip=True)
            self.wait(1_000)
        for name in sorted(names, key=lambda each: not self.harness.member(each).leads):
            self.sync(name, stale=0)

    def late(self, name):
        group, member_id = self.harness.group, self.harness.member(name).member_id
        return group is None or member_id not in group.members or group.state is GroupState.PREPARING_REBALANCE

    @rule(name=NAMES)
    def forget_own_id(self, name):
        """The client starts again."""
        self.harness.member(name).member_id = ""
        self.harness.member(name).generation = -1

    @rule(name=NAMES, stale=st.integers(0, 3))
    def sync(self, name, stale):
        member, group = self.harness.member(name), self.harness.group
        assignments: dict[Any, Any] = {}
        if member.leads and group is not None:
            names = [each for each in "abcsz" if self.harness.member(each).member_id in group.members]
            for partition in range(PARTITIONS):
                if names:
                    each = names[partition % len(names)]
                    assignments[each] = assignments.get(each, b"") + bytes([partition])
        self.harness.sync(name, assignments, generation=member.generation - (stale == 3))
        self.see()

    @rule(name=NAMES)
    def heartbeat(self, name):
        self.harness.heartbeat(name)
        self.see()

    @rule(names=st.lists(NAMES, min_size=1, max_size=3, unique=True))
    def leave(self, names):
        self.harness.leave(*names)
        self.see()

    @rule(name=NAMES, offset=st.integers(0, 100), stale=st.booleans(), partition=st.integers(0, 2))
    def commit(self, name, offset, stale, partition):
        member, group = self.harness.member(name), self.harness.group
        generation = member.generation - stale
        before = self.harness.fetch()
        lives = group is not None and member.member_id in group.members and generation == group.generation
        allowed = lives and group.state is not GroupState.COMPLETING_REBALANCE
        if generation < 0:
            allowed = group is None or group.state is GroupState.EMPTY or allowed
        fenced = group is not None and group.static_members.get(name, member.member_id) != member.member_id
        self.harness.commit(name, {("t", partition): offset}, generation=generation)
        error = self.harness.last("commit")[0]
        assert (error is ErrorCode.NONE) == allowed
        assert not (fenced and generation >= 0 and error is ErrorCode.NONE)
        after = {**before, ("t", partition): offset} if allowed else before
        assert self.harness.fetch() == after
        self.see()

    @rule(offset=st.integers(0, 100))
    def commit_without_membership(self, offset):
        empty = self.harness.group is None or self.harness.group.state is GroupState.EMPTY
        self.harness.commit("", {("u", 0): offset})
        assert (self.harness.last("commit")[0] is ErrorCode.NONE) == empty
        self.see()

    @rule(duration_ms=WAITS_MS)
    def wait(self, duration_ms):
        self.harness.wait(duration_ms)
        self.see()

    @rule()
    def delete(self):
        self.harness.delete_group()
        if self.harness.last("delete") is ErrorCode.NONE:
            assert self.harness.group is None
            assert self.harness.fetch() == {}
        self.see()

    @rule()
    def delete_offsets(self):
        self.harness.delete_offsets(("t", 0), ("t", 1), ("u", 0))
        self.see()

    @rule()
    def restart(self):
        """Forget what was not committed: no member has heard of it."""
        recorded = self.harness.group.recorded if self.harness.group is not None else None
        generation = recorded.generation if recorded is not None else 0
        self.harness.restart()
        assert all(key[0] <= generation for key in self.owners)

    @invariant()
    def the_group_with_members_can_continue(self):
        """Every wait is for something that has a deadline."""
        group = self.harness.group
        if group is None:
            self.owners.clear()  # it was deleted or has expired: generations begin again
        if group is not None and group.members:
            assert self.harness.machine.next_deadline_ms() is not None


class TellingMachine(GroupMachine):
    """Large groups: one member is answered per turn, and everything else may happen in between."""

    def __init__(self):
        self.told_per_turn, classic_responses.MEMBER_RESPONSES_PER_TURN = classic_responses.MEMBER_RESPONSES_PER_TURN, 1
        super().__init__()

    def teardown(self):
        classic_responses.MEMBER_RESPONSES_PER_TURN = self.told_per_turn


TestTellingModel = TellingMachine.TestCase
TestTellingModel.settings = settings(max_examples=60, stateful_step_count=40)
TestGroupModel = GroupMachine.TestCase
TestGroupModel.settings = settings(max_examples=60, stateful_step_count=40)
