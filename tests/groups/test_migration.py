"""Groups that move between the two protocols with live members: one rule at a time, and in any order."""

import pytest

from headrace.core.groups.consumer_group import ConsumerGroupState
from headrace.core.groups.consumer_records import (
    ClassicMemberMetadata,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    TargetRecord,
)
from headrace.core.groups.records import GroupRecord
from headrace.core.groups.states import GroupState
from headrace.core.groups.subscriptions import assigned_partitions, assignment_of, read_subscription
from headrace.model.errors import ErrorCode
from tests.groups.harness import FORMAT, GROUP, Entry
from tests.groups.mixed import REJOIN, MixedHarness, subscription

NONE = ErrorCode.NONE
ALL = list(range(6))


@pytest.fixture
def harness():
    return MixedHarness()


def written(harness, since):
    return [FORMAT.decode(entry.key, entry.value) for entry in harness.log[since:] if isinstance(entry, Entry)]


def everything_is_read_once(harness):
    parts = [part for partitions in harness.reads().values() for part in partitions]
    return sorted(parts) == ALL


class TestUpgrade:
    def test_members_come_along_with_what_they_have(self, harness):
        harness.form("a", "b")
        since = len(harness.log)
        harness.beat("c")
        assert harness.kind == "consumer"
        assert harness.reads() == {"a": [0, 2, 4], "b": [1, 3, 5]}, "no member has let go of anything yet"
        assert harness.heartbeat("a")
        assert harness.last("heartbeat") is REJOIN
        records = written(harness, since)
        assert records[0] == GroupRecord(GROUP, None)
        assert [type(each) for each in records[1:4]] == [MemberRecord, MemberRecord, EpochRecord]
        classic = records[1].subscription.classic
        assert classic == ClassicMemberMetadata(10_000, harness.member("a").protocols)
        assert EpochRecord(GROUP, harness.member("a").generation) in records

    def test_step_by_step_everyone_gets_its_share(self, harness):
        harness.form("a", "b")
        harness.beat("c")
        harness.settle_all(classic="ab", consumers="c")
        assert everything_is_read_once(harness)
        assert {len(parts) for parts in harness.reads().values()} == {2}
        assert harness.consumer_group.state is ConsumerGroupState.STABLE
        assert harness.consumer_group.classic_count == 2

    def test_a_cooperative_member_continues_reading_what_it_keeps(self, harness):
        harness.cooperative = {"a"}
        harness.form("a")
        harness.beat("c")
        generation = harness.member("a").generation
        harness.heartbeat("a")
        assert harness.come("a").generation == generation, "its epoch moves on when it has let go"
        harness.collect("a")
        assert len(harness.held["a"]) == 3
        assert harness.beat("c").assignment in ((), None), "what was the other's is not yet free"
        harness.settle_all(classic="a", consumers="c")
        assert harness.member("a").generation > generation
        assert everything_is_read_once(harness)

    def test_classic_members_may_still_come_and_go(self, harness):
        harness.form("a")
        harness.beat("c")
        assert harness.come("b").leader == "", "such a group has no leader"
        harness.collect("b")
        harness.settle_all(classic="ab", consumers="c")
        assert everything_is_read_once(harness)
        assert len(harness.reads()) == 3
        harness.leave("a")
        harness.held.pop("a")
        harness.settle_all(classic="b", consumers="c")
        assert everything_is_read_once(harness)
        assert len(harness.reads()) == 2

    def test_when_the_last_classic_member_leaves_it_is_a_group_of_the_new_protocol(self, harness):
        harness.form("a")
        harness.beat("c")
        harness.leave("a")
        harness.held.pop("a")
        harness.settle_all(consumers="c")
        assert (harness.kind, harness.reads()) == ("consumer", {"c": ALL})

    def test_one_that_died_before_is_missed_after(self, harness):
        """It says nothing any more, so nothing but its session can free what it has."""
        harness.form("a", "b")
        harness.beat("c")
        for _ in range(4):
            harness.wait(3_000)
            harness.settle_all(classic="a", consumers="c")
        assert harness.member("b").member_id not in harness.consumer_group.members
        del harness.held["b"]
        assert everything_is_read_once(harness)

    def test_waiting_members_have_to_join_again(self, harness):
        harness.form("a", "b")
        assert harness.come("a") is None, "a rebalance is under way"
        harness.beat("c")
        assert harness.answer("a", "join").error is REJOIN
        harness.settle_all(classic="ab", consumers="c")
        assert everything_is_read_once(harness)
        assert len(harness.reads()) == 3

    def test_one_that_waits_for_its_first_generation_is_not_taken_along(self, harness):
        harness.form("a")
        harness.join("b", required=False, protocols=(("range", subscription("t")),))
        harness.beat("c")
        assert harness.answer("b", "join").error is REJOIN
        assert list(harness.consumer_group.members) == [harness.member("a").member_id, "c"]

    def test_of_two_that_were_given_the_same_the_first_has_it(self, harness):
        harness.come("a")
        harness.come("b")
        harness.come("a")
        everything = assignment_of([("t", part) for part in ALL], 1)
        harness.sync("a", {"a": everything, "b": everything})
        harness.beat("c")
        assert len(harness.consumer_group.owners) == 6

    @pytest.mark.parametrize("policy", ["disabled", "downgrade"])
    def test_the_policy_forbids_it(self, policy):
        harness = MixedHarness(migration_policy=policy)
        harness.form("a")
        assert harness.beat("c").error is ErrorCode.GROUP_ID_NOT_FOUND
        assert harness.kind == "classic"
        assert harness.live("a") is NONE

    def test_other_kinds_of_groups_stay_what_they_are(self, harness):
        harness.join("a", required=False, protocol_type="connect")
        assert harness.beat("c").error is ErrorCode.GROUP_ID_NOT_FOUND
        assert harness.group is not None

    def test_what_cannot_be_read_cannot_be_moved(self, harness):
        harness.join("a", required=False, protocols=(("range", b"?"),))
        harness.sync("a", {"a": b""})
        assert harness.beat("c").error is ErrorCode.GROUP_ID_NOT_FOUND
        assert harness.group.state is GroupState.STABLE

    def test_a_request_that_is_refused_changes_nothing(self, harness):
        harness.form("a")
        assert harness.beat("c", regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert harness.beat("c", regex=None, assignor="none").error is ErrorCode.UNSUPPORTED_ASSIGNOR
        assert harness.kind == "classic"
        full = MixedHarness(consumer_members_max=1)
        full.form("a")
        assert full.beat("c").error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert full.kind == "classic"


class TestDowngrade:
    @pytest.mark.parametrize("end", ["leaves", "dies"])
    def test_when_the_last_consumer_is_gone_the_rest_is_a_classic_group(self, harness, end):
        harness.form("a", "b")
        harness.beat("c")
        harness.settle_all(classic="ab", consumers="c")
        generation, since = harness.consumer_group.epoch, len(harness.log)
        if end == "leaves":
            harness.beat("c", epoch=-1)
        else:
            for _ in range(6):
                harness.wait(9_000)
                harness.live("a")
                harness.live("b")
        del harness.consumers["c"]
        assert harness.kind == "classic"
        records = written(harness, since)
        assert CurrentRecord(GROUP, "c", None) in records
        assert TargetRecord(GROUP, "c", None) in records
        assert EpochRecord(GROUP, None) in records
        settled = next(each for each in records if isinstance(each, GroupRecord))
        assert (settled.metadata.generation, settled.metadata.protocol) == (generation, "range")
        harness.settle_all(classic="ab")
        assert harness.group.state is GroupState.STABLE
        assert harness.group.generation > generation
        assert harness.reads() == {"a": [0, 2, 4], "b": [1, 3, 5]}

    def test_a_restart_in_between_loses_no_member(self, harness):
        harness.form("a", "b")
        harness.beat("c")
        harness.restart()
        harness.settle_all(classic="ab", consumers="c")
        assert everything_is_read_once(harness)
        harness.beat("c", epoch=-1)
        del harness.consumers["c"]
        harness.restart()
        assert harness.kind == "classic"
        harness.come("a")
        harness.settle_all(classic="ab")
        assert harness.reads() == {"a": [0, 2, 4], "b": [1, 3, 5]}

    def test_all_protocols_of_a_member_come_along(self, harness):
        protocols = (("range", subscription("t")), ("sticky", subscription("t")))
        harness.join("a", required=False, protocols=protocols)
        harness.sync("a", {"a": b""})
        harness.beat("c")
        harness.beat("c", epoch=-1)
        assert [name for name, _ in harness.group.members[harness.member("a").member_id].protocols] == [
            "range",
            "sticky",
        ]

    @pytest.mark.parametrize("policy", ["disabled", "upgrade"])
    def test_the_policy_forbids_it(self, policy):
        harness = MixedHarness(migration_policy=policy)
        harness.beat("c")
        harness.come("a")
        harness.collect("a")
        harness.settle_all(classic="a", consumers="c")
        harness.beat("c", epoch=-1)
        del harness.consumers["c"]
        assert harness.kind == "consumer"
        harness.settle_all(classic="a")
        assert harness.reads() == {"a": ALL}

    def test_an_empty_group_of_the_new_protocol_becomes_classic_at_once(self, harness):
        harness.beat("c")
        harness.beat("c", epoch=-1)
        harness.come("a")
        assert (harness.kind, harness.group.state) == ("classic", GroupState.COMPLETING_REBALANCE)


class TestStaticMembers:
    def test_an_instance_that_is_upgraded_keeps_its_partitions(self, harness):
        harness.come("a", instance_id="one")
        harness.collect("a")
        result = harness.beat("c", instance_id="one")
        harness.held.clear()
        assert (result.error, len(result.assignment)) == (NONE, 6)
        assert list(harness.consumer_group.members) == ["c"]
        harness.heartbeat("a")
        assert harness.last("heartbeat") is ErrorCode.FENCED_INSTANCE_ID

    def test_an_instance_that_is_downgraded_keeps_its_partitions(self, harness):
        harness.beat("c", instance_id="one")
        joined = harness.come("a", instance_id="one")
        assert (joined.error, harness.kind) == (NONE, "classic"), "it was the last one of the new protocol"
        assert harness.group.state is GroupState.STABLE
        answer = harness.collect("a")
        assert [partition for _, partition in assigned_partitions(answer.assignment)] == ALL
        assert harness.beat("c").error is ErrorCode.GROUP_ID_NOT_FOUND

    def test_if_the_others_are_not_settled_all_join_again(self, harness):
        harness.form("a")
        harness.beat("c", instance_id="one")  # a still has everything
        harness.outcomes.clear()
        harness.come("b", instance_id="one")
        assert harness.group.state is GroupState.PREPARING_REBALANCE
        harness.settle_all(classic="ab")
        harness.consumers.clear()
        assert everything_is_read_once(harness)
        assert len(harness.reads()) == 2

    def test_an_old_id_is_fenced(self, harness):
        harness.beat("x")
        harness.come("a", instance_id="one")
        old = harness.member("a").member_id
        harness.come("a", member_id="")
        assert harness.member("a").member_id != old
        harness.come("a", member_id=old)
        assert harness.last("join").error is ErrorCode.FENCED_INSTANCE_ID
        harness.come("a", instance_id="two", member_id="stranger")
        assert harness.last("join").error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_one_that_is_away_counts_until_its_session_ends(self, harness):
        harness.form("a")
        harness.beat("c", instance_id="one")
        harness.settle_all(classic="a", consumers="c")
        harness.beat("c", epoch=-2)
        assert harness.kind == "consumer"
        for _ in range(6):
            harness.wait(9_000)
            harness.live("a")
        assert harness.kind == "classic"


class TestRefusals:
    @pytest.fixture
    def mixed(self, harness):
        harness.beat("c")
        harness.come("a")
        harness.collect("a")
        harness.settle_all(classic="a", consumers="c")
        return harness

    def test_stale_generations(self, mixed):
        generation = mixed.member("a").generation
        mixed.heartbeat("a", generation - 1)
        mixed.sync("a", generation=generation + 1)
        mixed.commit("a", {("t", 0): 1}, generation=generation - 1)
        assert mixed.last("heartbeat") is ErrorCode.ILLEGAL_GENERATION
        assert mixed.last("sync").error is ErrorCode.ILLEGAL_GENERATION
        assert mixed.last("commit") == [ErrorCode.ILLEGAL_GENERATION]
        mixed.commit("a", {("t", 0): 1})
        assert mixed.last("commit") == [NONE]

    def test_those_who_do_not_speak_the_classic_protocol(self, mixed):
        for name, member_id in (("stranger", "unknown"), ("c too", "c")):
            mixed.member(name).member_id, mixed.member(name).generation = member_id, mixed.consumer("c").epoch
            mixed.heartbeat(name)
            mixed.sync(name)
            assert mixed.last("heartbeat") is ErrorCode.UNKNOWN_MEMBER_ID
            assert mixed.last("sync").error is ErrorCode.UNKNOWN_MEMBER_ID
        mixed.leave("stranger")
        assert mixed.last("leave")[0].error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_other_protocols(self, mixed):
        mixed.join("b", required=False, protocols=(("sticky", subscription("t")),))
        assert mixed.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        mixed.join("b", protocol_type="connect", protocols=(("range", subscription("t")),))
        assert mixed.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        mixed.join("b", protocols=(("range", b"?"),))
        assert mixed.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        mixed.join("b", protocols=())
        assert mixed.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        mixed.sync("a", protocol="sticky")
        assert mixed.last("sync").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_an_id_is_given_first_where_the_client_knows_what_to_do(self, mixed):
        mixed.join("b", required=True, protocols=(("range", subscription("t")),))
        assert mixed.last("join").error is ErrorCode.MEMBER_ID_REQUIRED
        mixed.join("b", required=True)
        assert mixed.last("join").error is NONE

    def test_limits(self):
        harness = MixedHarness(consumer_members_max=1)
        harness.beat("c")
        assert harness.come("a").error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert harness.come("a", session_ms=1).error is ErrorCode.INVALID_SESSION_TIMEOUT

    def test_while_the_group_moves_on_nothing_is_handed_out(self, mixed):
        mixed.beat("d")
        mixed.sync("a")
        assert mixed.last("sync").error is REJOIN

    def test_a_member_that_never_syncs_is_out(self, mixed):
        mixed.come("b", rebalance_ms=5_000)
        mixed.wait(5_000)
        assert mixed.member("b").member_id not in mixed.consumer_group.members

    def test_a_member_that_never_joins_again_is_out(self, harness):
        harness.come("a", rebalance_ms=5_000)
        harness.collect("a")
        harness.beat("c")
        harness.heartbeat("a")
        harness.wait(4_000)
        harness.heartbeat("a")
        harness.wait(1_000)
        assert harness.kind == "consumer"
        assert list(harness.consumer_group.members) == ["c"]

    def test_a_member_that_is_silent_is_out(self, mixed):
        mixed.wait(9_000)
        mixed.beat("c")
        mixed.wait(1_500)
        assert list(mixed.consumer_group.members) == ["c"]

    def test_old_commits_are_not_for_members_with_epochs(self, mixed):
        mixed.member("c").member_id, mixed.member("c").generation = "c", mixed.consumer("c").epoch
        mixed.commit("c", {("t", 0): 1})
        assert mixed.last("commit") == [NONE]


@pytest.mark.parametrize("version", [0, 1, 2, 3, 7])
def test_subscriptions(version):
    owned = [("t", 1), ("t", 2), ("u", 0)]
    found = read_subscription(subscription("t", "u", owned=owned, version=version))
    assert (found.version, found.topics) == (version, ("t", "u"))
    assert list(found.owned) == (owned if version else [])
    assert read_subscription(subscription("t", version=version)[:8]) is None


def test_assignments():
    parts = [("t", 0), ("u", 1), ("t", 2)]
    assert sorted(assigned_partitions(assignment_of(parts, 1))) == sorted(parts)
    assert assignment_of([], 9)[:2] == b"\x00\x03", "no newer version is written than is known"
