"""Offsets that transactions commit: pending until the marker, dropped by an abort, and the same from the log."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.core.groups import offset_requests
from headrace.core.groups.states import GroupState
from headrace.model.errors import ErrorCode
from tests.groups.consumers import ConsumerHarness
from tests.groups.harness import GROUP, Harness

NONE = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
T0, T1 = ("t", 0), ("t", 1)


class TestVisibility:
    def test_an_offset_counts_when_its_transaction_commits(self):
        harness = Harness()
        harness.commit("", {T0: 5})
        harness.commit("", {T0: 9, T1: 3}, producer=7)
        assert harness.fetch([T0, T1]) == {T0: 5, T1: None}
        assert harness.fetch([T0, T1], stable=True) == {T0: UNSTABLE, T1: UNSTABLE}
        assert harness.fetch(stable=True) == {T0: UNSTABLE}, "what has never been committed is not in the list of all"
        harness.end_transaction(7, commit=True)
        assert harness.fetch([T0, T1], stable=True) == {T0: 9, T1: 3}

    def test_an_abort_leaves_what_was_there(self):
        harness = Harness()
        harness.commit("", {T0: 5})
        harness.commit("", {T0: 9, T1: 3}, producer=7)
        harness.end_transaction(7, commit=False)
        assert harness.fetch([T0, T1], stable=True) == {T0: 5, T1: None}

    def test_a_group_of_which_only_an_aborted_transaction_knew_is_none(self):
        harness = Harness()
        harness.commit("", {T0: 9}, producer=7)
        assert harness.group.state is GroupState.EMPTY
        harness.end_transaction(7, commit=False)
        assert harness.group is None

    def test_a_marker_of_another_producer_ends_nothing(self):
        harness = Harness()
        harness.commit("", {T0: 9}, producer=7)
        harness.end_transaction(8, commit=True)
        assert harness.fetch([T0], stable=True) == {T0: UNSTABLE}

    def test_the_last_of_one_transaction_counts(self):
        harness = Harness()
        harness.commit("", {T0: 9}, producer=7)
        harness.commit("", {T0: 4}, producer=7)
        harness.end_transaction(7, commit=True)
        assert harness.fetch() == {T0: 4}


class TestOrder:
    """The newest record counts, whenever its transaction ends: a compacted log would tell no other story."""

    def test_a_plain_commit_overtakes_a_transaction(self):
        harness = Harness()
        harness.commit("", {T0: 9}, producer=7)
        harness.commit("", {T0: 2})
        assert harness.fetch([T0], stable=True) == {T0: UNSTABLE}, "it is still open"
        harness.end_transaction(7, commit=True)
        assert harness.fetch([T0], stable=True) == {T0: 2}

    def test_of_two_transactions_the_one_that_wrote_last_counts(self):
        harness = Harness()
        harness.commit("", {T0: 1}, producer=7)
        harness.commit("", {T0: 2}, producer=8)
        harness.end_transaction(8, commit=True)
        harness.end_transaction(7, commit=True)
        assert harness.fetch() == {T0: 2}

    def test_an_aborted_one_overtakes_nothing(self):
        harness = Harness()
        harness.commit("", {T0: 1}, producer=7)
        harness.commit("", {T0: 2}, producer=8)
        harness.end_transaction(8, commit=False)
        harness.end_transaction(7, commit=True)
        assert harness.fetch() == {T0: 1}


class TestDeletion:
    def test_an_expired_offset_stays_while_a_transaction_has_staged_another(self):
        harness = Harness(offset_retention_ms=60_000, offset_check_interval_ms=10_000)
        harness.commit("", {T0: 5, T1: 6})
        harness.commit("", {T0: 9}, producer=7)
        harness.wait(100_000)
        assert harness.fetch() == {T0: 5}
        harness.end_transaction(7, commit=False)
        harness.wait(20_000)
        assert harness.fetch() == {}
        assert harness.group is None

    def test_a_consumer_group_with_staged_offsets_is_kept(self):
        harness = ConsumerHarness(offset_retention_ms=60_000, offset_check_interval_ms=10_000)
        harness.beat("a")
        harness.beat("a", epoch=-1)
        harness.commit("", {T0: 9}, producer=7)
        harness.wait(100_000)
        assert harness.consumer_group is not None
        harness.end_transaction(7, commit=False)
        harness.wait(20_000)
        assert harness.consumer_group is None

    def test_deleted_offsets_are_deleted_from_transactions_too(self):
        harness = Harness()
        harness.commit("", {T0: 9, T1: 8}, producer=7)
        assert harness.delete_offsets(T0) == (NONE, (NONE,))
        harness.end_transaction(7, commit=True)
        assert harness.fetch() == {T1: 8}

    def test_a_deleted_group_takes_its_staged_offsets_along(self):
        harness = Harness()
        harness.commit("", {T0: 9}, producer=7)
        assert harness.delete_group() is NONE
        assert harness.group is None
        harness.end_transaction(7, commit=True)
        assert harness.fetch() == {}
        assert harness.group is None

    def test_a_deleted_topic_takes_its_staged_offsets_along(self):
        harness = Harness()
        harness.commit("", {T0: 9, ("u", 0): 3}, producer=7)
        groups = harness.machine.tables.groups_with_offsets()
        assert (groups, harness.machine.tables.topics_with_offsets()) == ([GROUP], {"t", "u"})
        harness.forget_topics(["t"], groups)
        harness.end_transaction(7, commit=True)
        assert harness.fetch() == {("u", 0): 3}

    def test_there_is_a_limit(self, monkeypatch):
        monkeypatch.setattr(offset_requests, "PENDING_OFFSETS_MAX", 2)
        harness = Harness()
        harness.commit("", {T0: 1, T1: 2, ("t", 2): 3}, producer=7)
        assert harness.last("commit") == [NONE, NONE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE]
        harness.commit("", {("t", 2): 3})
        assert harness.last("commit") == [NONE]


class TestMembership:
    @pytest.fixture
    def harness(self):
        harness = Harness(initial_rebalance_delay_ms=0)
        harness.join("a", required=False)
        harness.sync("a", {"a": b""})
        return harness

    def test_a_member_says_who_it_is(self, harness):
        harness.commit("a", {T0: 5}, producer=7)
        assert harness.last("commit") == [NONE]
        harness.commit("a", {T0: 5}, producer=7, generation=0)
        assert harness.last("commit") == [ErrorCode.ILLEGAL_GENERATION]
        harness.member("b").generation, harness.member("b").member_id = 1, "stranger"
        harness.commit("b", {T0: 5}, producer=7)
        assert harness.last("commit") == [ErrorCode.UNKNOWN_MEMBER_ID]

    def test_old_clients_do_not_say(self, harness):
        harness.commit("", {T0: 5}, producer=7)
        assert harness.last("commit") == [NONE]
        harness.commit("", {T0: 5})
        assert harness.last("commit") == [ErrorCode.UNKNOWN_MEMBER_ID], "without a transaction they must"

    def test_a_rebalance_does_not_stop_a_transaction(self, harness):
        harness.join("b", required=False)
        harness.join("a")
        assert harness.group.state is GroupState.COMPLETING_REBALANCE
        harness.commit("a", {T0: 5})
        assert harness.last("commit") == [ErrorCode.REBALANCE_IN_PROGRESS]
        harness.commit("a", {T0: 5}, producer=7)
        assert harness.last("commit") == [NONE]

    def test_of_a_static_member_that_was_replaced(self):
        harness = Harness(initial_rebalance_delay_ms=0)
        harness.join("a", required=False, instance_id="i")
        harness.sync("a", {"a": b""})
        old = harness.member("a").member_id
        harness.join("a", member_id="")
        harness.member("a").member_id = old
        harness.commit("a", {T0: 5}, producer=7)
        assert harness.last("commit") == [ErrorCode.FENCED_INSTANCE_ID]

    def test_of_a_group_that_is_not_there(self):
        harness = Harness()
        harness.member("a").generation, harness.member("a").member_id = 3, "a-1"
        harness.commit("a", {T0: 5}, producer=7)
        assert harness.last("commit") == [ErrorCode.ILLEGAL_GENERATION]

    def test_of_the_new_protocol(self):
        harness = ConsumerHarness()
        harness.beat("a")
        harness.member("a").member_id, harness.member("a").generation = "a", harness.consumer("a").epoch
        harness.commit("a", {T0: 5}, producer=7)
        assert harness.last("commit") == [NONE]
        harness.commit("a", {T0: 5}, producer=7, generation=0)
        assert harness.last("commit") == [ErrorCode.ILLEGAL_GENERATION]
        harness.end_transaction(7, commit=True)
        assert harness.fetch([T0], stable=True) == {T0: 5}

    def test_old_clients_do_not_say_to_the_new_protocol_either(self):
        """A producer that knows no KIP-447 beside a consumer of KIP-848: the producer's epoch fences it."""
        harness = ConsumerHarness()
        harness.beat("a")
        harness.commit("", {T0: 5}, producer=7)
        assert harness.last("commit") == [NONE]
        harness.commit("", {T0: 6})
        assert harness.last("commit") == [ErrorCode.UNKNOWN_MEMBER_ID], "without a transaction they must"
        harness.member("b").member_id = "stranger"
        harness.commit("b", {T0: 7}, producer=7)
        assert harness.last("commit") == [ErrorCode.UNKNOWN_MEMBER_ID], "what is said is looked at"
        harness.end_transaction(7, commit=True)
        assert harness.fetch([T0], stable=True) == {T0: 5}


PRODUCERS = st.integers(1, 3)
GROUPS = st.sampled_from(["g", "h"])
PARTS = st.sampled_from([("t", 0), ("t", 1), ("u", 0)])


class TransactionalOffsets(RuleBasedStateMachine):
    """Against Kafka's rule, told by the offset of each record; the log tells the same after every step."""

    def __init__(self):
        super().__init__()
        self.harness = Harness(offset_retention_ms=200_000, offset_check_interval_ms=50_000)
        self.written = 0
        self.committed = {}
        self.staged = {}

    def _write(self, group, part, offset):
        self.written += 1
        return {(group, part): (self.written, offset)}

    def _delete(self, *keys):
        for key in keys:
            self.committed.pop(key, None)
            for staged in self.staged.values():
                staged.pop(key, None)

    @rule(group=GROUPS, part=PARTS, offset=st.integers(0, 99))
    def commit(self, group, part, offset):
        self.harness.commit("", {part: offset}, group=group)
        self.committed.update(self._write(group, part, offset))

    @rule(producer=PRODUCERS, group=GROUPS, parts=st.lists(PARTS, min_size=1, unique=True), offset=st.integers(0, 99))
    def commit_in_transaction(self, producer, group, parts, offset):
        self.harness.commit("", dict.fromkeys(parts, offset), group=group, producer=producer)
        for part in parts:
            self.staged.setdefault(producer, {}).update(self._write(group, part, offset))

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end(self, producer, commit):
        self.harness.end_transaction(producer, commit=commit)
        for key, found in self.staged.pop(producer, {}).items():
            if commit:
                self.committed[key] = max(found, self.committed.get(key, found))

    @rule(group=GROUPS, parts=st.lists(PARTS, min_size=1, unique=True))
    def delete_offsets(self, group, parts):
        self.harness.delete_offsets(*parts, group=group)
        self._delete(*((group, part) for part in parts))

    @rule(group=GROUPS)
    def delete_group(self, group):
        self.harness.delete_group(group)
        keys = [*self.committed, *(key for staged in self.staged.values() for key in staged)]
        self._delete(*(key for key in keys if key[0] == group))

    @rule(duration_ms=st.sampled_from([1, 60_000, 300_000]))
    def wait(self, duration_ms):
        self.harness.wait(duration_ms)
        staged = {key for staged in self.staged.values() for key in staged}
        for key in [key for key in self.committed if key not in staged]:
            if key[1] not in self.harness.fetch(group=key[0]):
                assert duration_ms > 1, "an offset that is not old has expired"
                del self.committed[key]

    @rule()
    def restart(self):
        self.harness.restart()

    @invariant()
    def reads_are_right(self):
        staged = {key for of_producer in self.staged.values() for key in of_producer}
        for group in ("g", "h"):
            assert self.harness.fetch(group=group) == {
                part: offset for (owner, part), (_, offset) in self.committed.items() if owner == group
            }
            for part, offset in self.harness.fetch([("t", 0), ("t", 1), ("u", 0)], group=group, stable=True).items():
                assert (offset is UNSTABLE) == ((group, part) in staged)


TestTransactionalOffsets = pytest.mark.slow(TransactionalOffsets.TestCase)
TestTransactionalOffsets.settings = settings(max_examples=50, stateful_step_count=40)
