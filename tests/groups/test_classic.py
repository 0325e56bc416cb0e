"""The classic protocol, one rule at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.groups.commands import LeavingMember
from headrace.core.groups.records import GroupRecord
from headrace.core.groups.settings import GROUP_BYTES_MAX
from headrace.core.groups.states import TRANSITIONS, GroupState
from headrace.model.errors import ErrorCode
from tests.core.manual_clock import Ticket
from tests.groups.harness import Harness

NONE = ErrorCode.NONE


@pytest.fixture
def harness():
    return Harness(initial_rebalance_delay_ms=0)


def first_id(harness, name):
    """Of a member that has not learnt its id yet."""
    return next(member_id for member_id, member in harness.group.members.items() if member.client_id == name)


def stable(harness, *names, **options):
    """A group of these members, all of one generation."""
    for name in names:
        harness.join(name, required=False, **options)
    while harness.group.state is GroupState.PREPARING_REBALANCE:
        members = [(name, harness.member(name).member_id or first_id(harness, name)) for name in names]
        late = [name for name, member_id in members if not harness.group.members[member_id].join_ticket]
        harness.join(late[0], required=False, **options)
    leader = next(name for name in names if harness.member(name).leads)
    harness.sync(leader, {name: name.encode() for name in names})
    for name in names:
        if harness.member(name).assignment is None:
            harness.sync(name)
    assert harness.group.state is GroupState.STABLE
    return leader


class TestJoining:
    def test_a_new_member_gets_its_id_first(self, harness):
        harness.join("a")
        assert harness.last("join").error is ErrorCode.MEMBER_ID_REQUIRED
        assert harness.group.state is GroupState.EMPTY
        harness.join("a")
        assert harness.last("join").error is NONE
        assert harness.last("join").generation == 1

    def test_old_versions_join_at_once(self, harness):
        harness.join("a", required=False)
        assert harness.last("join")[:3] == (NONE, "a-1", 1)

    def test_an_unused_id_is_forgotten_and_the_group_with_it(self, harness):
        harness.join("a", session_ms=6_000)
        harness.wait(6_000)
        assert harness.group is None
        harness.join("a")
        assert harness.last("join").error is ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
    def test_session_timeouts_have_bounds(self, harness, session_ms):
        harness.join("a", session_ms=session_ms)
        assert harness.last("join").error is ErrorCode.INVALID_SESSION_TIMEOUT
        assert harness.group is None

    def test_protocols_must_be_shared(self, harness):
        stable(harness, "a")
        harness.join("b", required=False, protocols=(("other", b""),))
        assert harness.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        harness.join("b", required=False, protocols=(("range", b""),), protocol_type="connect")
        assert harness.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        for protocols in ((), tuple((f"p{number}", b"") for number in range(101))):
            harness.join("b", required=False, protocols=protocols)
            assert harness.last("join").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_any_protocol_type_will_do(self, harness):
        harness.join("w", required=False, protocol_type="connect", protocols=(("sessioned", b"\x00\x01"),))
        assert harness.last("join").protocol_type == "connect"
        assert harness.last("join").protocol == "sessioned"

    def test_the_protocol_is_what_most_prefer_of_what_all_can_speak(self):
        harness = Harness(initial_rebalance_delay_ms=1_000)
        harness.join("a", required=False, protocols=(("x", b""), ("y", b""), ("z", b"")))
        harness.join("b", required=False, protocols=(("z", b""), ("y", b"")))
        harness.join("c", required=False, protocols=(("y", b""), ("z", b"")))
        harness.wait(2_000)
        assert harness.last("join").protocol == "y"

    def test_a_group_has_a_largest_size(self):
        harness = Harness(initial_rebalance_delay_ms=0, members_max=2)
        stable(harness, "a", "b")
        harness.join("c", required=False)
        assert harness.last("join").error is ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_there_is_a_largest_number_of_groups(self):
        harness = Harness(groups_max=1)
        harness.commit("", {("t", 0): 1}, group="one")
        harness.join("a")
        assert harness.last("join").error is ErrorCode.GROUP_MAX_SIZE_REACHED
        harness.commit("", {("t", 0): 1}, group="two")
        assert harness.last("commit") == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]

    def test_metadata_has_a_limit(self, harness):
        harness.join("a", required=False, protocols=(("range", bytes(GROUP_BYTES_MAX)),))
        assert harness.last("join").error is ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_at_the_limit_of_pending_ids_members_join_and_the_oldest_unused_id_goes(self, harness, monkeypatch):
        """Clients take GROUP_MAX_SIZE_REACHED as fatal: unused ids must never bring it to a member."""
        monkeypatch.setattr("headrace.core.groups.classic.PENDING_MEMBERS_MAX", 3)
        stable(harness, "a")
        for name in "bcd":
            harness.join(name)
        harness.join("a", protocols=(("range", b"changed"),))
        assert harness.group.state is GroupState.PREPARING_REBALANCE
        harness.join("old client", required=False)
        harness.join("static", instance_id="i")
        harness.join("d")
        assert {"a", "old client", "static", "d"} == {each.client_id for each in harness.group.members.values()}
        for name in "efg":
            harness.join(name)
            assert harness.last("join").error is ErrorCode.MEMBER_ID_REQUIRED
            assert len(harness.group.pending) <= 3
        harness.join("b")
        assert harness.last("join").error is ErrorCode.UNKNOWN_MEMBER_ID
        for name in "efg":
            harness.join(name)
        assert harness.last("join").error is NONE
        assert {ticket.name for ticket, response in harness.take_outcomes() if response.error is NONE} >= {
            *("a", "old client", "static"),
            *"defg",
        }

    def test_an_assignment_that_is_too_large_is_refused_and_asked_for_again(self, harness):
        harness.join("a", required=False)
        harness.sync("a", {"a": bytes(GROUP_BYTES_MAX)})
        assert harness.last("sync").error is ErrorCode.UNKNOWN_SERVER_ERROR
        assert harness.group.state is GroupState.PREPARING_REBALANCE
        assert harness.log == []

    def test_a_join_that_is_sent_again_replaces_the_first(self, harness):
        stable(harness, "a")
        harness.join("b", required=False)
        harness.take_outcomes()
        harness.member("b").member_id = "b-2"
        harness.join("b", required=False)
        assert [(ticket.name, response.error) for ticket, response in harness.take_outcomes()] == [
            ("b", ErrorCode.REBALANCE_IN_PROGRESS)
        ]

    def test_a_member_that_lost_its_response_gets_it_again(self, harness):
        harness.join("a", required=False)
        first = harness.last("join")
        harness.join("a", required=False)
        assert harness.last("join") == first
        harness.sync("a", {"a": b"1"})
        harness.join("b", required=False)
        harness.join("a", required=False)
        harness.sync("a", {"a": b"1", "b": b"2"})
        follower = harness.member("b")
        harness.join("b", required=False)
        assert (harness.last("join").error, harness.last("join").generation) == (NONE, follower.generation)
        assert harness.group.state is GroupState.STABLE


class TestInitialDelay:
    def test_a_lone_member_waits_for_a_quiet_period(self):
        harness = Harness()
        harness.join("a")
        harness.join("a")
        harness.wait(299)
        assert harness.group.state is GroupState.PREPARING_REBALANCE
        harness.wait(1)
        assert harness.last("join")[:3] == (NONE, "a-1", 1)

    def test_a_hundred_members_that_keep_coming_share_one_generation(self):
        harness = Harness()
        names = [f"m{number}" for number in range(100)]
        for name in names:  # each with an id first, as clients do
            harness.join(name)
            harness.wait(1)
        harness.take_outcomes()
        for name in names:
            harness.join(name)
            harness.wait(1)
        assert harness.take_outcomes() == []
        harness.wait(300)
        answers = harness.take_outcomes()
        assert [ticket.name for ticket, _ in answers] == names
        assert {(response.error, response.generation) for _, response in answers} == {(NONE, 1)}

    @given(st.lists(st.integers(0, 299), min_size=1, max_size=40), st.booleans())
    def test_members_that_come_within_the_quiet_period_share_one_generation(self, pauses, ids_first):
        harness = Harness(initial_rebalance_delay_ms=60_000)
        for number, pause_ms in enumerate(pauses):
            harness.join(f"m{number}", required=ids_first)
            if ids_first:
                harness.join(f"m{number}")
            harness.wait(pause_ms)
        harness.wait(300)
        assert harness.group.generation == 1
        assert len(harness.group.members) == len(pauses)

    def test_not_longer_than_the_initial_delay(self):
        harness = Harness(initial_rebalance_delay_ms=3_000)
        for number in range(15):
            assert harness.take_outcomes() == []
            harness.join(f"m{number}", required=False)
            harness.wait(200)
        assert [response.generation for _, response in harness.take_outcomes()] == [1] * 15

    def test_not_longer_than_the_rebalance_timeout(self):
        harness = Harness(initial_rebalance_delay_ms=3_000)
        for number in range(8):
            harness.join(f"m{number}", required=False, rebalance_ms=1_000)
            harness.wait(200)
        assert len(harness.take_outcomes()) >= 5

    def test_one_that_got_an_id_is_waited_for_but_not_for_ever(self):
        harness = Harness(initial_rebalance_delay_ms=3_000)
        harness.join("slow")
        harness.join("a", required=False)
        harness.wait(1_000)
        harness.join("slow")
        harness.wait(300)
        assert {member.client_id for member in harness.group.members.values()} == {"a", "slow"}
        assert {response.generation for ticket, response in harness.take_outcomes()[1:]} == {1}
        harness = Harness(initial_rebalance_delay_ms=3_000)
        harness.join("gone")
        harness.join("a", required=False)
        harness.wait(2_999)
        assert harness.group.state is GroupState.PREPARING_REBALANCE
        harness.wait(1)
        assert harness.group.state is GroupState.COMPLETING_REBALANCE

    def test_a_quiet_period_as_long_as_the_delay_waits_for_all_of_it(self):
        harness = Harness(initial_rebalance_delay_ms=3_000, initial_rebalance_quiet_ms=3_000)
        harness.join("a", required=False)
        harness.wait(2_999)
        assert harness.take_outcomes() == []
        harness.wait(1)
        assert harness.last("join").generation == 1

    def test_a_second_rebalance_does_not_wait(self):
        harness = Harness(initial_rebalance_delay_ms=3_000)
        harness.join("a", required=False)
        harness.wait(3_000)
        harness.sync("a", {"a": b"1"})
        harness.join("b", required=False)
        harness.join("a", required=False)
        assert harness.last("join").generation == 2


class TestSyncing:
    def test_followers_wait_for_the_leader(self, harness):
        stable(harness, "a", "b")
        harness.join("a", required=False)
        harness.join("b", required=False)
        leader, follower = ("a", "b") if harness.member("a").leads else ("b", "a")
        harness.take_outcomes()
        harness.sync(follower)
        assert harness.take_outcomes() == []
        harness.sync(leader, {leader: b"mine", follower: b"yours"})
        told = {ticket.name: response.assignment for ticket, response in harness.take_outcomes()}
        assert told == {leader: b"mine", follower: b"yours"}

    def test_members_the_leader_forgot_get_nothing(self, harness):
        stable(harness, "a", "b")
        harness.join("a", required=False)
        harness.join("b", required=False)
        leader, follower = ("a", "b") if harness.member("a").leads else ("b", "a")
        harness.sync(leader, {leader: b"all"})
        harness.sync(follower)
        assert harness.last("sync").assignment == b""

    def test_one_that_never_syncs_is_out(self, harness):
        stable(harness, "a", "b", session_ms=1_000_000)
        harness.join("a", required=False, session_ms=1_000_000)
        harness.join("b", required=False, session_ms=1_000_000)
        leader, follower = ("a", "b") if harness.member("a").leads else ("b", "a")
        harness.sync(leader, {leader: b"1"})
        harness.wait(60_000)
        assert list(harness.group.members) == [harness.member(leader).member_id]
        assert harness.group.state is GroupState.PREPARING_REBALANCE
        harness.heartbeat(follower)
        assert harness.last("heartbeat") is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_leader_that_leaves_mid_sync_makes_the_others_join_again(self, harness):
        stable(harness, "a", "b")
        harness.join("a", required=False)
        harness.join("b", required=False)
        leader, follower = ("a", "b") if harness.member("a").leads else ("b", "a")
        harness.take_outcomes()
        harness.sync(follower)
        harness.leave(leader)
        told = {ticket.kind: response for ticket, response in harness.take_outcomes()}
        assert told["sync"].error is ErrorCode.REBALANCE_IN_PROGRESS
        harness.join(follower, required=False)
        assert harness.member(follower).leads

    @pytest.mark.parametrize(
        ("generation", "protocol", "error"),
        [
            (7, None, ErrorCode.ILLEGAL_GENERATION),
            (None, "other", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ],
    )
    def test_stale_or_strange_syncs_are_refused(self, harness, generation, protocol, error):
        harness.join("a", required=False)
        harness.sync("a", {"a": b""}, generation=generation, protocol=protocol)
        assert harness.last("sync").error is error

    def test_unknown_members_and_groups(self, harness):
        harness.sync("unknown")
        assert harness.last("sync").error is ErrorCode.UNKNOWN_MEMBER_ID
        stable(harness, "a")
        harness.sync("unknown")
        assert harness.last("sync").error is ErrorCode.UNKNOWN_MEMBER_ID
        harness.join("b", required=False)
        harness.sync("a")
        assert harness.last("sync").error is ErrorCode.REBALANCE_IN_PROGRESS


class TestLiving:
    def test_a_silent_member_is_out_after_its_session(self, harness):
        stable(harness, "a", "b")
        for _ in range(3):
            harness.wait(5_000)
            harness.heartbeat("a")
        assert harness.group.state is GroupState.PREPARING_REBALANCE
        assert list(harness.group.members) == [harness.member("a").member_id]

    def test_commits_and_heartbeats_keep_a_member_alive(self, harness):
        stable(harness, "a")
        for _ in range(4):
            harness.wait(6_000)
            harness.commit("a", {("t", 0): 5})
        assert harness.group.state is GroupState.STABLE

    def test_one_that_waits_for_others_does_not_expire(self, harness):
        stable(harness, "a")
        harness.join("b", required=False, session_ms=6_000)
        for _ in range(4):
            harness.heartbeat("a")
            harness.wait(5_000)
        assert harness.member("b").generation == -1
        assert len(harness.group.members) == 2

    def test_members_that_do_not_join_again_are_out(self, harness):
        stable(harness, "a", session_ms=100_000)
        harness.join("b", required=False)
        harness.wait(60_000)
        assert harness.last("join").error is NONE
        assert [each.member_id for each in harness.last("join").members] == [harness.member("b").member_id]

    def test_the_last_one_leaves_an_empty_group(self, harness):
        stable(harness, "a")
        harness.leave("a")
        assert harness.group.state is GroupState.EMPTY
        assert harness.group.recorded.members == ()
        assert harness.group.generation == 2

    def test_many_leave_at_once(self, harness):
        stable(harness, "a", "b", "c")
        leaving = [LeavingMember(harness.member(name).member_id, None) for name in ("a", "b")]
        leaving.append(LeavingMember("unknown", None))
        harness.remove(leaving, Ticket("", "leave"))
        assert [result.error for result in harness.last("leave")] == [NONE, NONE, ErrorCode.UNKNOWN_MEMBER_ID]
        assert len(harness.group.members) == 1

    def test_members_from_the_log_get_one_session(self, harness):
        stable(harness, "a", "b")
        harness.restart()
        assert harness.group.state is GroupState.STABLE
        harness.wait(9_000)
        harness.heartbeat("a")
        assert harness.last("heartbeat") is NONE
        harness.wait(2_000)
        harness.heartbeat("a")
        assert harness.last("heartbeat") is ErrorCode.REBALANCE_IN_PROGRESS


class TestStaticMembers:
    def test_one_that_comes_back_keeps_its_assignment(self, harness):
        stable(harness, "a", "b")
        harness.join("s", required=False, instance_id="s")
        harness.join("a", required=False)
        harness.join("b", required=False)
        leader = next(name for name in "abs" if harness.member(name).leads)
        harness.sync(leader, {name: name.encode() for name in "abs"})
        harness.sync("s")
        old_id, generation = harness.member("s").member_id, harness.group.generation
        harness.member("s").member_id = ""
        harness.join("s")
        assert harness.last("join").error is NONE
        assert harness.last("join").generation == generation
        assert harness.member("s").member_id != old_id
        harness.sync("s")
        assert harness.last("sync").assignment == b"s"
        assert harness.group.state is GroupState.STABLE

    def test_the_old_life_is_fenced(self, harness):
        harness.join("s", required=False, instance_id="s")
        harness.sync("s", {"s": b"1"})
        old_id = harness.member("s").member_id
        harness.member("s").member_id = ""
        harness.join("s")
        harness.member("s").member_id = old_id
        harness.heartbeat("s")
        assert harness.last("heartbeat") is ErrorCode.FENCED_INSTANCE_ID
        harness.commit("s", {("t", 0): 1})
        assert harness.last("commit") == [ErrorCode.FENCED_INSTANCE_ID]
        harness.sync("s")
        assert harness.last("sync").error is ErrorCode.FENCED_INSTANCE_ID
        harness.join("s")
        assert harness.last("join").error is ErrorCode.FENCED_INSTANCE_ID
        harness.leave("s")
        assert harness.last("leave")[0].error is ErrorCode.FENCED_INSTANCE_ID
        assert harness.fetch([("t", 0)]) == {("t", 0): None}

    def test_a_leader_that_comes_back_has_to_skip_the_assignment(self, harness):
        harness.join("s", required=False, instance_id="s")
        harness.sync("s", {"s": b"1"})
        harness.member("s").member_id = ""
        harness.join("s", skip=True)
        joined = harness.last("join")
        assert (joined.skip_assignment, joined.leader, len(joined.members)) == (True, joined.member_id, 1)
        harness.member("s").member_id = ""
        harness.join("s", skip=False)
        joined = harness.last("join")
        assert (joined.skip_assignment, joined.leader == joined.member_id, joined.members) == (False, False, ())

    def test_it_can_be_sent_away_by_its_name(self, harness):
        harness.join("s", required=False, instance_id="s")
        harness.sync("s", {"s": b"1"})
        harness.member("s").member_id = ""
        harness.leave("s")
        assert harness.last("leave")[0].error is NONE
        assert harness.group.state is GroupState.EMPTY

    def test_a_parked_join_of_the_old_life_is_fenced(self, harness):
        stable(harness, "a")
        harness.join("s", required=False, instance_id="s")
        harness.take_outcomes()
        harness.join("s", required=False)
        assert [(ticket.name, response.error) for ticket, response in harness.take_outcomes()] == [
            ("s", ErrorCode.FENCED_INSTANCE_ID)
        ]

    def test_unknown_instances(self, harness):
        stable(harness, "a")
        harness.member("s").instance_id = "s"
        harness.heartbeat("s")
        assert harness.last("heartbeat") is ErrorCode.UNKNOWN_MEMBER_ID


def test_every_state_that_can_be_left_can_be_reached():
    reached = set(TRANSITIONS.values()) | {GroupState.EMPTY}
    assert {state for state, _ in TRANSITIONS} <= reached
    assert set(GroupState) == reached


def test_only_agreements_are_written():
    harness = Harness(initial_rebalance_delay_ms=0)
    decision = harness.join("a", required=False)
    assert decision.records == ()
    decision = harness.sync("a", {"a": b"1"})
    assert [type(record) for record in decision.records] == [GroupRecord]
