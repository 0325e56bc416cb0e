"""The protocol of KIP-848, one rule at a time, and in any order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from headrace.core.groups.assignors import (
    ASSIGNORS,
    ITEMS_PER_STEP,
    AssignableMember,
    AssignedTopic,
    assign_range,
    assign_uniform,
)
from headrace.core.groups.consumer_group import ConsumerGroupState
from headrace.core.groups.consumer_records import (
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    MemberSubscription,
    TargetEpochRecord,
    TargetRecord,
)
from headrace.model.errors import ErrorCode
from tests.groups.consumers import ConsumerHarness
from tests.groups.harness import FORMAT

NONE = ErrorCode.NONE
TOPIC = b"t".ljust(16, b"\0")


@pytest.fixture
def harness():
    return ConsumerHarness(initial_rebalance_delay_ms=0)


class TestMembers:
    def test_one_gets_everything(self, harness):
        result = harness.beat("a")
        assert (result.error, result.epoch, result.heartbeat_interval_ms) == (NONE, 1, 5_000)
        assert result.assignment == tuple((TOPIC, partition) for partition in range(6))
        assert harness.consumer_group.state is ConsumerGroupState.STABLE

    def test_what_changes_by_itself_is_written_by_itself(self, harness):
        """Also where a compacted log then tells of it after what the member has."""
        harness.beat("a")
        epoch = harness.consumer_group.epoch
        harness.beat("a", assignor="range")
        assert (harness.consumer_group.epoch, harness.consumer_group.assignor("uniform")) == (epoch, "range")

    def test_nothing_is_said_twice(self, harness):
        harness.beat("a")
        assert harness.beat("a").assignment is None
        assert harness.beat("a", full=True).assignment is not None

    def test_a_second_one_waits_until_the_first_lets_go(self, harness):
        harness.beat("a")
        assert harness.beat("b").assignment == ()
        kept = harness.beat("a", keep=True)
        assert len(kept.assignment) == 3
        assert harness.beat("b").assignment is None
        assert harness.beat("a", keep=True).epoch == 1
        harness.consumer("a").owned = kept.assignment
        assert harness.beat("a").epoch == 2
        assert harness.beat("b").assignment == tuple(
            sorted({(TOPIC, part) for part in range(6)} - set(kept.assignment))
        )

    def test_one_that_does_not_let_go_is_out(self, harness):
        harness.beat("a")
        harness.beat("b")
        harness.beat("a", keep=True)
        for _ in range(12):
            harness.wait(5_000)
            harness.beat("a", keep=True)
            harness.beat("b")
        harness.settle("b")
        assert harness.shares()["b"] == [0, 1, 2, 3, 4, 5]

    def test_a_silent_one_is_out_after_its_session(self, harness):
        harness.settle("a", "b")
        harness.wait(40_000)
        harness.beat("a")
        harness.wait(5_000)
        harness.settle("a")
        assert harness.shares()["a"] == [0, 1, 2, 3, 4, 5]
        assert harness.beat("b").error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_leaving(self, harness):
        harness.settle("a", "b")
        assert harness.beat("a", epoch=-1).epoch == -1
        harness.settle("b")
        assert harness.shares()["b"] == [0, 1, 2, 3, 4, 5]
        harness.beat("b", epoch=-1)
        assert harness.consumer_group.state is ConsumerGroupState.EMPTY

    def test_members_from_the_log_continue(self, harness):
        harness.settle("a", "b")
        shares = harness.shares()
        harness.restart()
        harness.settle("a", "b")
        assert harness.shares() == shares

    @pytest.mark.parametrize(
        ("epoch", "error"), [(99, ErrorCode.FENCED_MEMBER_EPOCH), (1, ErrorCode.FENCED_MEMBER_EPOCH)]
    )
    def test_wrong_epochs(self, harness, epoch, error):
        harness.settle("a", "b")
        harness.settle("a", "b", "c")
        assert harness.beat("a", epoch=epoch).error is error

    def test_a_lost_answer_is_given_again(self, harness):
        harness.beat("a")
        harness.beat("b")
        kept = harness.beat("a").assignment
        before = harness.consumer("a").epoch
        harness.beat("a")
        assert harness.consumer("a").epoch == before + 1
        harness.consumer("a").owned = kept
        assert harness.beat("a", epoch=before).error is NONE

    def test_one_that_lost_its_answer_and_does_not_say_what_it_has_begins_again(self, harness):
        """It would be given the new epoch and never what goes with it."""
        harness.settle("a", "b")
        before = harness.consumer("a").epoch
        harness.beat("b", epoch=-1)
        harness.consumers.pop("b")
        lost = harness.beat("a", keep=True)
        assert (lost.epoch, len(lost.assignment)) == (before + 1, 6)
        assert harness.beat("a", epoch=before, tells_owned=False).error is ErrorCode.FENCED_MEMBER_EPOCH
        harness.settle("a")
        assert harness.shares()["a"] == [0, 1, 2, 3, 4, 5]

    def test_a_member_that_owns_other_partitions_gets_its_assignment_again(self, harness):
        """Also if nothing else has changed, not the epoch either: the first answer may be lost."""
        harness.settle("a", "b")
        before = harness.consumer("a").epoch
        harness.beat("b", epoch=-1)
        lost = harness.beat("a", keep=True)
        for epoch in (before, lost.epoch):
            again = harness.beat("a", epoch=epoch, keep=True)
            assert (again.error, again.epoch, again.assignment) == (NONE, lost.epoch, lost.assignment)
        assert harness.beat("a").assignment == lost.assignment
        assert harness.beat("a").assignment is None

    def test_bad_requests(self, harness):
        assert harness.beat("a", assignor="magic").error is ErrorCode.UNSUPPORTED_ASSIGNOR
        assert harness.consumer_group is None
        assert harness.beat("a", assignor=None, regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert harness.beat("b", epoch=3).error is ErrorCode.GROUP_ID_NOT_FOUND
        assert harness.consumer_group is None
        assert harness.log == []

    def test_sizes(self):
        harness = ConsumerHarness(consumer_members_max=1, groups_max=1)
        harness.beat("a")
        assert harness.beat("b").error is ErrorCode.GROUP_MAX_SIZE_REACHED


class TestTopics:
    def test_more_partitions(self, harness):
        harness.settle("a", "b")
        harness.catalog.change(t=8)
        harness.settle("a", "b")
        assert sorted(map(len, harness.shares().values())) == [4, 4]

    def test_a_topic_that_comes_later(self, harness):
        harness.beat("a", topics=("t", "u"))
        harness.catalog.change(u=2)
        harness.settle("a")
        assert len(harness.consumer("a").owned) == 8

    def test_expressions(self, harness):
        harness.catalog.change(orders_eu=2, orders_us=2, other=5)
        harness.beat("a", topics=(), regex="orders_.*")
        assert len(harness.consumer("a").owned) == 4
        harness.catalog.change(orders_as=3)
        harness.settle("a")
        assert len(harness.consumer("a").owned) == 7
        harness.restart()
        harness.settle("a")
        assert len(harness.consumer("a").owned) == 7


class TestStaticMembers:
    def test_back_in_time_with_what_it_had(self, harness):
        harness.beat("a", instance_id="one")
        harness.settle("a", "b")
        had = harness.consumer("a").owned
        others = harness.consumer("b").owned
        assert harness.beat("a", epoch=-2).epoch == -2
        harness.settle("b")
        assert harness.consumer("b").owned == others
        harness.beat("a", epoch=0, member_id="another life")
        harness.settle("a", "b")
        assert harness.consumer("a").owned == had
        assert harness.consumer("b").owned == others

    def test_only_one_life_at_a_time(self, harness):
        harness.beat("a", instance_id="one")
        assert harness.beat("a", epoch=0, member_id="second").error is ErrorCode.UNRELEASED_INSTANCE_ID
        harness.beat("a", epoch=-2, member_id="a")
        harness.beat("a", epoch=0, member_id="second")
        assert harness.beat("a", epoch=2, member_id="a").error is ErrorCode.FENCED_INSTANCE_ID

    def test_one_that_comes_again_as_another_instance_leaves_the_first_name_free(self, harness):
        harness.beat("a", instance_id="one")
        harness.beat("a", epoch=0, instance_id="two")
        assert harness.consumer_group.static_members == {"two": "a"}
        harness.beat("b", instance_id="one")
        harness.beat("a", epoch=-1)
        assert harness.consumer_group.static_members == {"one": "b"}
        assert harness.beat("b").error is NONE


class TestBothProtocols:
    def test_an_empty_classic_group_becomes_one(self, harness):
        harness.join("x", required=False)
        harness.sync("x", {"x": b"1"})
        harness.commit("x", {("t", 0): 5})
        assert harness.beat("a").error is ErrorCode.GROUP_ID_NOT_FOUND
        harness.leave("x")
        assert harness.beat("a").error is NONE
        assert harness.group is None
        assert harness.fetch() == {("t", 0): 5}
        harness.join("x", required=False)
        assert harness.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_and_back(self, harness):
        harness.beat("a")
        harness.commit("", {("t", 0): 5})
        assert harness.last("commit") == [ErrorCode.UNKNOWN_MEMBER_ID]
        harness.beat("a", epoch=-1)
        harness.commit("", {("t", 0): 5})
        harness.member("x").member_id = ""
        harness.join("x", required=False)
        assert harness.last("join").error is NONE
        assert harness.consumer_group is None
        assert harness.fetch() == {("t", 0): 5}

    def test_commits_by_epoch(self, harness):
        harness.beat("a")
        harness.member("a").member_id = "a"
        for generation, error in ((0, ErrorCode.STALE_MEMBER_EPOCH), (2, ErrorCode.STALE_MEMBER_EPOCH), (1, NONE)):
            harness.commit("a", {("t", 0): 5}, generation=generation)
            assert harness.last("commit") == [error]

    def test_deleting(self, harness):
        harness.beat("a")
        harness.delete_group()
        assert harness.last("delete") is ErrorCode.NON_EMPTY_GROUP
        harness.beat("a", epoch=-1)
        harness.commit("", {("t", 0): 5})
        harness.delete_group()
        assert harness.last("delete") is NONE
        assert (harness.consumer_group, harness.group, harness.fetch()) == (None, None, {})

    def test_expiry(self, harness):
        harness.beat("a")
        harness.member("a").member_id = "a"
        harness.commit("a", {("t", 0): 5, ("old", 0): 5}, generation=1)
        harness.beat("a", epoch=-1)
        harness.wait(8 * 24 * 3_600_000)
        assert (harness.consumer_group, harness.fetch()) == (None, {})

    def test_one_that_reads_a_quiet_topic_may_stop_for_a_while(self):
        """Its last commit is older than the retention: the time without members counts."""
        harness = ConsumerHarness(offset_retention_ms=200_000, offset_check_interval_ms=1_000)
        harness.beat("a")
        harness.member("a").member_id = "a"
        harness.commit("a", {("t", 0): 5, ("u", 0): 3}, generation=1)
        self.live(harness, 240_000)
        assert harness.fetch() == {("t", 0): 5}, "what is not subscribed to goes by its commit"
        for _ in range(3):
            harness.beat("a", epoch=-1)
            harness.wait(150_000)
            assert harness.fetch() == {("t", 0): 5}
            harness.beat("a", epoch=0)
        harness.beat("a", epoch=-1)
        harness.wait(210_000)
        assert (harness.consumer_group, harness.fetch()) == (None, {})

    def test_what_an_expression_matches_is_kept_before_it_is_known_again(self):
        harness = ConsumerHarness(offset_retention_ms=200_000, offset_check_interval_ms=1_000)
        harness.beat("a", topics=(), regex="t.*")
        harness.member("a").member_id = "a"
        harness.commit("a", {("t", 0): 5}, generation=1)
        self.live(harness, 240_000)
        harness.restart()
        harness.wait(5_000)
        assert harness.fetch() == {("t", 0): 5}
        assert harness.delete_offsets(("t", 0)) == (NONE, (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,))

    def live(self, harness, wait_ms):
        for _ in range(wait_ms // 40_000):
            harness.wait(40_000)
            harness.beat("a")


class TestAssignors:
    T, U = AssignedTopic(b"t", 5), AssignedTopic(b"u", 3)

    def members(self, **topics):
        return {name: AssignableMember(tuple(each), (), None) for name, each in topics.items()}

    def test_range_gives_neighbours(self):
        found = assign_range(self.members(a=[self.T], b=[self.T]))
        assert found == {"a": ((b"t", 0), (b"t", 1), (b"t", 2)), "b": ((b"t", 3), (b"t", 4))}

    def test_uniform_is_even_also_where_subscriptions_differ(self):
        found = assign_uniform(self.members(a=[self.T, self.U], b=[self.T], c=[self.U]))
        assert sorted(map(len, found.values())) == [2, 3, 3]

    def test_uniform_keeps_what_was(self):
        first = assign_uniform(self.members(a=[self.T], b=[self.T]))
        again = {name: AssignableMember((self.T,), first.get(name, ()), None) for name in ("c", "b", "a")}
        found = assign_uniform(again)
        assert all(set(found[name]) <= set(first[name]) for name in ("a", "b"))
        assert sorted(map(len, found.values())) == [1, 2, 2]

    def test_many_members_are_quick(self):
        many = AssignedTopic(b"t", 4_000)
        found = assign_uniform({f"m{number}": AssignableMember((many,), (), None) for number in range(2_000)})
        assert {len(each) for each in found.values()} == {2}

    @pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
    def test_many_small_topics_share_a_step(self, assignor):
        """A step takes a millisecond or more however little is done in it."""
        topics = [AssignedTopic(b"%d" % number, 1) for number in range(4 * ITEMS_PER_STEP)]
        steps = sum(1 for _ in assignor(self.members(a=topics, b=topics)))
        assert 4 <= steps <= 6 * len(topics) // ITEMS_PER_STEP


@pytest.mark.parametrize(
    "record",
    [
        EpochRecord("g", 3),
        EpochRecord("g", None),
        TargetEpochRecord("g", 3),
        TargetRecord("g", "m", ((TOPIC, 1), (TOPIC, 2))),
        TargetRecord("g", "m", None),
        MemberRecord("g", "m", MemberSubscription("i", None, "c", "/h", ("t", "u"), "t.*", 5, "range")),
        MemberRecord("g", "m", None),
        CurrentRecord("g", "m", CurrentAssignment(4, 3, 1, ((TOPIC, 1),), ((TOPIC, 2),))),
    ],
)
def test_records_come_back(record):
    assert FORMAT.decode(*FORMAT.encode(record)) == record


NAMES = st.sampled_from(["a", "b", "c", "s"])


class ConsumerMachine(RuleBasedStateMachine):
    """Each step replays the log and checks that nothing belongs to two."""

    def __init__(self):
        super().__init__()
        self.harness = ConsumerHarness(initial_rebalance_delay_ms=0, offset_retention_ms=300_000)

    def check_owners(self):
        """Also by what the clients believe, of those that are in the group."""
        group = self.harness.consumer_group
        believed = []
        for consumer in self.harness.consumers.values():
            if group is not None and consumer.member_id in group.members:
                member = group.members[consumer.member_id]
                if member.current.epoch == consumer.epoch:
                    believed += consumer.owned
        assert len(believed) == len(set(believed))

    @rule(name=NAMES, keep=st.booleans())
    def beat(self, name, keep):
        self.harness.beat(name, keep=keep, **({"instance_id": name} if name == "s" else {}))
        self.check_owners()

    @rule(names=st.lists(NAMES, min_size=1, max_size=4, unique=True))
    def settle(self, names):
        for name in names:
            self.harness.consumer(name).instance_id = name if name == "s" else None
        self.harness.settle(*names)
        self.check_owners()

    @rule(name=NAMES, epoch=st.sampled_from([-2, -1, 0, 1, 2, 5]))
    def say_another_epoch(self, name, epoch):
        if epoch != -2 or name == "s":
            self.harness.beat(name, epoch=epoch)

    @rule(name=NAMES, topics=st.sampled_from([("t",), ("t", "u"), ("u",)]), regex=st.sampled_from([None, "[tu]", "u+"]))
    def subscribe(self, name, topics, regex):
        self.harness.beat(name, topics=topics, regex=regex)
        self.check_owners()

    @rule(u=st.integers(0, 4), t=st.integers(1, 8))
    def change_topics(self, u, t):
        self.harness.catalog.change(t=t, u=u)

    @rule(name=NAMES, generation=st.integers(-1, 6))
    def commit(self, name, generation):
        group = self.harness.consumer_group
        before = self.harness.fetch()
        self.harness.member(name).member_id = self.harness.consumer(name).member_id
        self.harness.commit(name, {("t", 0): generation}, generation=generation)
        if group is not None and group.members:
            member = group.members.get(self.harness.consumer(name).member_id)
            allowed = member is not None and member.current.epoch == generation
            assert (self.harness.last("commit") == [NONE]) == allowed
            if not allowed:
                assert self.harness.fetch() == before

    @rule(duration_ms=st.sampled_from([100, 5_000, 46_000, 700_000]))
    def wait(self, duration_ms):
        self.harness.wait(duration_ms)

    @rule()
    def restart(self):
        self.harness.restart()

    @rule()
    def delete(self):
        self.harness.delete_group()


TestConsumerModel = pytest.mark.slow(ConsumerMachine.TestCase)
TestConsumerModel.settings = settings(max_examples=50, stateful_step_count=40)
