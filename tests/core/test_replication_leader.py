"""The leader's view of one partition: the high watermark, the in-sync set, and what they must never do."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.replication.leader import Leader, UnknownReplica
from headrace.core.replication.role import Effects, ExpandIsr, HighWatermarkRaised, ShrinkIsr
from headrace.model.ids import LeaderEpoch, NodeId, Offset

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
LAG_MS = 1_000


def lone_leader(
    *, log_end: int = 0, flushed: int = 0, flush_before_commit: bool = False, min_insync: int = 1
) -> Leader:
    return Leader(
        node=ONE,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=0,
        replicas=[ONE],
        isr=[ONE],
        log_end=Offset(log_end),
        flushed=Offset(flushed),
        high_watermark=Offset(0),
        flush_before_commit=flush_before_commit,
        min_insync_replicas=min_insync,
    )


def trio(*, isr: tuple[NodeId, ...] = (ONE, TWO, THREE), min_insync: int = 1, log_end: int = 0) -> Leader:
    return Leader(
        node=ONE,
        leader_epoch=LeaderEpoch(4),
        partition_epoch=10,
        replicas=[ONE, TWO, THREE],
        isr=isr,
        log_end=Offset(log_end),
        flushed=Offset(log_end),
        high_watermark=Offset(0),
        min_insync_replicas=min_insync,
        replica_lag_ms_max=LAG_MS,
        now_ms=0,
    )


class TestAlone:
    def test_an_append_commits_at_once(self) -> None:
        leader = lone_leader()
        assert leader.log_appended(Offset(5)) == (HighWatermarkRaised(Offset(5)),)
        assert leader.log_appended(Offset(5)) == ()
        assert leader.high_watermark == leader.last_stable_offset == 5

    def test_what_was_recovered_is_committed_from_the_start(self) -> None:
        leader = lone_leader(log_end=7)
        assert leader.high_watermark == 7
        assert leader.knows_latest_offset

    def test_with_fsync_before_ack_only_the_flush_commits(self) -> None:
        leader = lone_leader(log_end=3, flushed=2, flush_before_commit=True)
        assert leader.high_watermark == 2
        assert leader.log_appended(Offset(9)) == ()
        assert leader.log_flushed(Offset(6)) == (HighWatermarkRaised(Offset(6)),)
        assert leader.log_flushed(Offset(4)) == ()
        assert leader.high_watermark == 6

    def test_a_flush_without_the_wish_for_it_says_nothing(self) -> None:
        leader = lone_leader(log_end=3)
        assert leader.log_flushed(Offset(3)) == ()

    def test_turning_fsync_before_ack_off_commits_what_waited(self) -> None:
        leader = lone_leader(flush_before_commit=True)
        leader.log_appended(Offset(4))
        assert leader.configure(flush_before_commit=False, min_insync_replicas=1) == (HighWatermarkRaised(Offset(4)),)

    def test_turning_fsync_before_ack_on_takes_nothing_back(self) -> None:
        leader = lone_leader()
        leader.log_appended(Offset(4))
        assert leader.configure(flush_before_commit=True, min_insync_replicas=1) == ()
        assert leader.high_watermark == 4
        assert leader.log_appended(Offset(8)) == ()

    def test_a_flush_beyond_the_known_end_commits_no_further_than_the_end(self) -> None:
        leader = lone_leader(flush_before_commit=True)
        leader.log_appended(Offset(4))
        leader.log_flushed(Offset(9))
        assert leader.high_watermark == 4

    def test_more_replicas_asked_in_sync_than_exist_does_not_stop_one_replica(self) -> None:
        leader = lone_leader(min_insync=2)
        assert leader.acks_all_allowed
        assert leader.log_appended(Offset(1))

    def test_an_open_transaction_holds_the_last_stable_offset(self) -> None:
        leader = lone_leader(log_end=10)
        leader.first_unstable_offset = Offset(6)
        assert (leader.last_stable_offset, leader.high_watermark) == (6, 10)
        leader.first_unstable_offset = Offset(99)
        assert leader.last_stable_offset == 10


class TestFollowers:
    def test_the_slowest_in_sync_replica_decides(self) -> None:
        leader = trio()
        assert leader.log_appended(Offset(10)) == ()
        assert leader.follower_fetched(TWO, Offset(8), 1) == ()
        assert leader.follower_fetched(THREE, Offset(5), 1) == (HighWatermarkRaised(Offset(5)),)
        assert leader.follower_fetched(THREE, Offset(10), 2) == (HighWatermarkRaised(Offset(8)),)

    def test_a_stranger_is_refused(self) -> None:
        with pytest.raises(UnknownReplica, match="node 9"):
            trio().follower_fetched(NodeId(9), Offset(0), 0)

    def test_a_follower_ahead_of_the_leader_does_not_count(self) -> None:
        leader = trio()
        leader.log_appended(Offset(3))
        assert leader.follower_fetched(TWO, Offset(4), 1) == ()
        leader.follower_fetched(THREE, Offset(3), 1)
        assert leader.high_watermark == 0

    def test_a_silent_follower_leaves_and_the_rest_go_on_once_that_is_committed(self) -> None:
        leader = trio()
        leader.log_appended(Offset(10))
        leader.follower_fetched(TWO, Offset(10), LAG_MS)
        assert leader.check_lag(LAG_MS) == ()
        assert leader.check_lag(LAG_MS + 1) == (ShrinkIsr((ONE, TWO), 10),)
        assert leader.high_watermark == 0, "the removed replica counts until its removal is committed"
        assert leader.check_lag(LAG_MS + 2) == (), "one change at a time"
        assert leader.isr_committed((ONE, TWO), 11) == (HighWatermarkRaised(Offset(10)),)

    def test_a_follower_that_reached_the_end_of_its_last_fetch_does_not_lag(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(10))
        leader.follower_fetched(TWO, Offset(0), 900)
        leader.log_appended(Offset(20))
        leader.follower_fetched(TWO, Offset(10), 1_800)  # had all of it as of 900
        assert leader.check_lag(1_900) == ()
        assert leader.check_lag(1_901) == (ShrinkIsr((ONE,), 10),)

    def test_an_idle_follower_that_has_everything_never_leaves(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(1))
        leader.follower_fetched(TWO, Offset(1), 5)
        assert leader.check_lag(1_000_000) == ()

    def test_a_returning_follower_counts_before_it_is_committed(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(4))
        leader.follower_fetched(TWO, Offset(4), 1)
        assert leader.high_watermark == 4
        assert leader.follower_fetched(THREE, Offset(4), 2) == (ExpandIsr((ONE, TWO, THREE), 10),)
        leader.log_appended(Offset(9))
        assert leader.follower_fetched(TWO, Offset(9), 3) == (), (
            "node 3 may already be in sync by the controller's view"
        )
        assert leader.isr_committed((ONE, TWO, THREE), 11) == ()
        assert leader.follower_fetched(THREE, Offset(9), 4) == (HighWatermarkRaised(Offset(9)),)

    def test_a_follower_below_the_start_of_the_epoch_does_not_join(self) -> None:
        leader = trio(isr=(ONE,), log_end=6)
        assert leader.high_watermark == 6
        assert leader.follower_fetched(TWO, Offset(5), 1) == ()
        assert leader.follower_fetched(TWO, Offset(6), 2) == (ExpandIsr((ONE, TWO), 10),)

    def test_the_high_watermark_waits_for_a_follower_about_to_join(self) -> None:
        """Else a busy leader alone in the set would run away from a follower that is always one fetch behind."""
        leader = trio(isr=(ONE,))
        leader.log_appended(Offset(10))
        leader.follower_fetched(TWO, Offset(0), 1)
        leader.log_appended(Offset(20))
        assert leader.high_watermark == 20
        leader.follower_fetched(TWO, Offset(10), 2)  # caught up as of time 1: waited for from now on
        leader.log_appended(Offset(30))
        assert leader.high_watermark == 20
        assert leader.follower_fetched(TWO, Offset(20), 3) == (ExpandIsr((ONE, TWO), 10),)
        assert leader.check_lag(LAG_MS * 3) == ()

    def test_a_joining_follower_that_falls_silent_is_waited_for_no_longer(self) -> None:
        leader = trio(isr=(ONE,))
        leader.log_appended(Offset(10))
        leader.follower_fetched(TWO, Offset(0), 1)
        leader.log_appended(Offset(20))
        leader.follower_fetched(TWO, Offset(10), 2)
        leader.log_appended(Offset(30))
        assert leader.check_lag(LAG_MS * 3) == (HighWatermarkRaised(Offset(30)),)

    def test_below_the_minimum_nothing_is_committed(self) -> None:
        leader = trio(isr=(ONE,), min_insync=2)
        assert not leader.acks_all_allowed
        assert leader.log_appended(Offset(5)) == ()
        assert leader.high_watermark == 0
        assert leader.follower_fetched(TWO, Offset(5), 1) == (ExpandIsr((ONE, TWO), 10),)
        assert leader.isr_committed((ONE, TWO), 11) == (HighWatermarkRaised(Offset(5)),)
        assert leader.acks_all_allowed

    def test_latest_is_unknown_until_the_new_epoch_is_committed(self) -> None:
        leader = trio(log_end=8)
        assert not leader.knows_latest_offset
        leader.follower_fetched(TWO, Offset(8), 1)
        leader.follower_fetched(THREE, Offset(8), 1)
        assert leader.knows_latest_offset

    def test_old_news_of_the_controller_changes_nothing(self) -> None:
        leader = trio()
        assert leader.isr_committed((ONE,), 10) == ()
        assert leader.isr == (ONE, TWO, THREE)

    def test_a_refused_change_can_be_asked_again(self) -> None:
        leader = trio()
        leader.log_appended(Offset(1))
        leader.follower_fetched(TWO, Offset(1), 1_900)
        assert leader.check_lag(2_000) == (ShrinkIsr((ONE, TWO), 10),)
        assert leader.isr_change_pending
        assert leader.isr_change_refused() == ()
        assert leader.check_lag(2_001) == (ShrinkIsr((ONE, TWO), 10),)


@dataclass
class Model:
    """A cluster of three as it really is, against which the leader's claims are checked."""

    leader: Leader
    log_ends: dict[NodeId, int] = field(default_factory=lambda: {ONE: 0, TWO: 0, THREE: 0})
    committed_isr: tuple[NodeId, ...] = (ONE, TWO, THREE)
    requests: list[ShrinkIsr | ExpandIsr] = field(default_factory=list)
    partition_epoch: int = 10
    now_ms: int = 0

    def see(self, effects: Effects) -> None:
        self.requests.extend(effect for effect in effects if isinstance(effect, ShrinkIsr | ExpandIsr))
        raised = [effect.offset for effect in effects if isinstance(effect, HighWatermarkRaised)]
        assert len(raised) <= 1
        assert not raised or raised[0] == self.leader.high_watermark

    def commit_change(self) -> None:
        request = self.requests.pop()
        if request.partition_epoch == self.partition_epoch:
            self.partition_epoch += 1
            self.committed_isr = request.isr

    def check(self, before: int) -> None:
        leader = self.leader
        assert leader.high_watermark >= before
        assert leader.high_watermark <= leader.log_end
        # Any replica that the controller may elect next holds everything that was committed.
        for node in self.committed_isr:
            assert self.log_ends[node] >= leader.high_watermark


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("fetch"), st.sampled_from([TWO, THREE])),
        st.tuples(st.just("replicate"), st.sampled_from([TWO, THREE])),
        st.tuples(st.just("time"), st.integers(1, 1_500)),
        st.tuples(st.just("controller commits"), st.just(0)),
        st.tuples(st.just("leader hears"), st.just(0)),
        st.tuples(st.just("refuse"), st.just(0)),
    ),
    max_size=60,
)


@given(steps, st.integers(1, 3))
def test_every_replica_the_controller_may_elect_holds_what_is_committed(
    script: list[tuple[str, int]], min_insync: int
) -> None:
    model = Model(trio(min_insync=min_insync))
    leader = model.leader
    for verb, value in script:
        before = leader.high_watermark
        node = NodeId(value)
        match verb:
            case "append":
                model.log_ends[ONE] += value
                model.see(leader.log_appended(Offset(model.log_ends[ONE])))
            case "replicate":  # the follower stores what it fetched, which its next fetch tells the leader
                model.log_ends[node] = min(model.log_ends[ONE], model.log_ends[node] + 3)
            case "fetch":
                model.see(leader.follower_fetched(node, Offset(model.log_ends[node]), model.now_ms))
            case "time":
                model.now_ms += value
                model.see(leader.check_lag(model.now_ms))
            case "controller commits" if model.requests:
                model.commit_change()
            case "leader hears":
                model.see(leader.isr_committed(model.committed_isr, model.partition_epoch))
            case "refuse" if model.requests:
                model.requests.clear()
                if model.partition_epoch == leader.partition_epoch:
                    model.see(leader.isr_change_refused())
        model.check(before)


@given(st.lists(st.tuples(st.sampled_from(["append", "flush", "on", "off"]), st.integers(0, 4)), max_size=40))
def test_with_fsync_before_ack_nothing_unflushed_is_newly_committed(script: list[tuple[str, int]]) -> None:
    leader = lone_leader(flush_before_commit=True)
    end = flushed = 0
    strict = True
    for verb, amount in script:
        before = leader.high_watermark
        if verb == "append":
            end += amount
            leader.log_appended(Offset(end))
        elif verb == "flush":
            flushed = min(end, flushed + amount)
            leader.log_flushed(Offset(flushed))
        else:
            strict = verb == "on"
            leader.configure(flush_before_commit=strict, min_insync_replicas=1)
        assert before <= leader.high_watermark <= end
        assert leader.high_watermark == (max(before, flushed) if strict else end)
