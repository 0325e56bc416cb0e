"""The leader's view of one partition: the high watermark, the in-sync set, and what they must never do."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.replication.leader import FollowerFetch, Leader, UnknownReplica
from headrace.core.replication.role import (
    NO_BROKER_EPOCH,
    DivergingEpoch,
    Effects,
    ExpandIsr,
    HighWatermarkRaised,
    ShrinkIsr,
)
from headrace.model.ids import LeaderEpoch, NodeId, Offset

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
TRIO = (ONE, TWO, THREE)
LAG_MS = 1_000
BROKER_EPOCH = 7
EPOCHS = {ONE: NO_BROKER_EPOCH, TWO: BROKER_EPOCH, THREE: BROKER_EPOCH}
"""The broker epochs that the leader knows once the followers have fetched."""


def shrink(*isr: NodeId) -> ShrinkIsr:
    return ShrinkIsr(isr, 10, tuple(EPOCHS[node] for node in isr))


def expand(*isr: NodeId) -> ExpandIsr:
    return ExpandIsr(isr, 10, tuple(EPOCHS[node] for node in isr))


def fetched(
    leader: Leader,
    replica: NodeId,
    offset: int,
    now_ms: float,
    *,
    leader_epoch: int | None = None,
    broker_epoch: int = BROKER_EPOCH,
    registered_epoch: int = BROKER_EPOCH,
    may_join: bool = True,
    last_fetched_epoch: int = 4,
    epoch_end: tuple[int, int] | None = None,
) -> Effects:
    return leader.follower_fetched(
        FollowerFetch(
            replica=replica,
            leader_epoch=leader.leader_epoch if leader_epoch is None else leader_epoch,
            broker_epoch=broker_epoch,
            registered_epoch=registered_epoch,
            may_join=may_join,
            offset=Offset(offset),
            last_fetched_epoch=last_fetched_epoch,
            epoch_end=(4, leader.log_end) if epoch_end is None else epoch_end,
        ),
        now_ms,
    )


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
        assert fetched(leader, TWO, 8, 1) == ()
        assert fetched(leader, THREE, 5, 1) == (HighWatermarkRaised(Offset(5)),)
        assert fetched(leader, THREE, 10, 2) == (HighWatermarkRaised(Offset(8)),)

    def test_a_stranger_is_refused(self) -> None:
        with pytest.raises(UnknownReplica, match="node 9"):
            fetched(trio(), NodeId(9), 0, 0)

    def test_a_follower_ahead_of_the_leader_does_not_count(self) -> None:
        leader = trio()
        leader.log_appended(Offset(3))
        assert fetched(leader, TWO, 4, 1) == (DivergingEpoch(4, 3),)
        assert fetched(leader, TWO, 4, 1, last_fetched_epoch=-1) == ()
        fetched(leader, THREE, 3, 1)
        assert leader.high_watermark == 0

    def test_a_silent_follower_leaves_and_the_rest_continue_once_that_is_committed(self) -> None:
        leader = trio()
        leader.log_appended(Offset(10))
        fetched(leader, TWO, 10, LAG_MS)
        assert leader.check_lag(LAG_MS) == ()
        assert leader.check_lag(LAG_MS + 1) == (shrink(ONE, TWO),)
        assert leader.high_watermark == 0, "the removed replica counts until its removal is committed"
        assert leader.check_lag(LAG_MS + 2) == (), "one change at a time"
        assert leader.partition_changed(TRIO, (ONE, TWO), 11) == (HighWatermarkRaised(Offset(10)),)

    def test_a_follower_that_reached_the_end_of_its_last_fetch_does_not_lag(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(10))
        fetched(leader, TWO, 0, 900)
        leader.log_appended(Offset(20))
        fetched(leader, TWO, 10, 1_800)  # had all of it as of 900
        assert leader.check_lag(1_900) == ()
        assert leader.check_lag(1_901) == (shrink(ONE),)

    def test_an_idle_follower_that_has_everything_never_leaves(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(1))
        fetched(leader, TWO, 1, 5)
        assert leader.check_lag(1_000_000) == ()

    def test_a_returning_follower_counts_before_it_is_committed(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(4))
        fetched(leader, TWO, 4, 1)
        assert leader.high_watermark == 4
        assert fetched(leader, THREE, 4, 2) == (expand(ONE, TWO, THREE),)
        leader.log_appended(Offset(9))
        assert fetched(leader, TWO, 9, 3) == (), "node 3 may already be in sync by the controller's view"
        assert leader.partition_changed(TRIO, (ONE, TWO, THREE), 11) == ()
        assert fetched(leader, THREE, 9, 4) == (HighWatermarkRaised(Offset(9)),)

    def test_a_follower_below_the_start_of_the_epoch_does_not_join(self) -> None:
        leader = trio(isr=(ONE,), log_end=6)
        assert leader.high_watermark == 6
        assert fetched(leader, TWO, 5, 1) == ()
        assert fetched(leader, TWO, 6, 2) == (expand(ONE, TWO),)

    def test_the_high_watermark_waits_for_a_follower_about_to_join(self) -> None:
        """Else a busy leader alone in the set would run away from a follower that is always one fetch behind."""
        leader = trio(isr=(ONE,))
        leader.log_appended(Offset(10))
        fetched(leader, TWO, 0, 1)
        leader.log_appended(Offset(20))
        assert leader.high_watermark == 20
        fetched(leader, TWO, 10, 2)  # caught up as of time 1: waited for from now on
        leader.log_appended(Offset(30))
        assert leader.high_watermark == 20
        assert fetched(leader, TWO, 20, 3) == (expand(ONE, TWO),)
        assert leader.check_lag(LAG_MS * 3) == ()

    def test_a_joining_follower_that_falls_silent_is_waited_for_no_longer(self) -> None:
        leader = trio(isr=(ONE,))
        leader.log_appended(Offset(10))
        fetched(leader, TWO, 0, 1)
        leader.log_appended(Offset(20))
        fetched(leader, TWO, 10, 2)
        leader.log_appended(Offset(30))
        assert leader.check_lag(LAG_MS * 3) == (HighWatermarkRaised(Offset(30)),)

    def test_below_the_minimum_nothing_is_committed(self) -> None:
        leader = trio(isr=(ONE,), min_insync=2)
        assert not leader.acks_all_allowed
        assert leader.log_appended(Offset(5)) == ()
        assert leader.high_watermark == 0
        assert fetched(leader, TWO, 5, 1) == (expand(ONE, TWO),)
        assert leader.partition_changed(TRIO, (ONE, TWO), 11) == (HighWatermarkRaised(Offset(5)),)
        assert leader.acks_all_allowed

    def test_latest_is_unknown_until_the_new_epoch_is_committed(self) -> None:
        leader = trio(log_end=8)
        assert not leader.knows_latest_offset
        fetched(leader, TWO, 8, 1)
        fetched(leader, THREE, 8, 1)
        assert leader.knows_latest_offset

    def test_old_news_of_the_controller_changes_nothing(self) -> None:
        leader = trio()
        assert leader.partition_changed(TRIO, (ONE,), 10) == ()
        assert leader.isr == (ONE, TWO, THREE)

    def test_a_refused_change_can_be_asked_again(self) -> None:
        leader = trio()
        leader.log_appended(Offset(1))
        fetched(leader, TWO, 1, 1_900)
        assert leader.check_lag(2_000) == (shrink(ONE, TWO),)
        assert leader.isr_change_pending
        assert leader.isr_change_refused() == ()
        assert leader.check_lag(2_001) == (shrink(ONE, TWO),)


class TestWhatCounts:
    """Fetches that show nothing about the follower's log, or about another process's log."""

    def leader_with_records(self) -> Leader:
        leader = trio()
        leader.log_appended(Offset(10))
        fetched(leader, THREE, 10, 1)
        return leader

    @pytest.mark.parametrize("leader_epoch", [3, 5])
    def test_a_fetch_in_another_leader_epoch_does_not_count(self, leader_epoch: int) -> None:
        leader = self.leader_with_records()
        assert fetched(leader, TWO, 10, 1, leader_epoch=leader_epoch) == ()
        assert leader.high_watermark == 0

    def test_a_log_whose_last_epoch_ends_earlier_here_diverges(self) -> None:
        leader = self.leader_with_records()
        effects = fetched(leader, TWO, 10, 1, last_fetched_epoch=2, epoch_end=(2, 8))
        assert effects == (DivergingEpoch(2, 8),)
        assert leader.high_watermark == 0

    def test_a_log_whose_last_epoch_is_unknown_here_diverges(self) -> None:
        leader = self.leader_with_records()
        assert fetched(leader, TWO, 5, 1, last_fetched_epoch=3, epoch_end=(2, 8)) == (DivergingEpoch(2, 8),)

    def test_a_log_that_ends_within_an_earlier_epoch_counts(self) -> None:
        leader = self.leader_with_records()
        assert fetched(leader, TWO, 7, 1, last_fetched_epoch=2, epoch_end=(2, 8)) == (HighWatermarkRaised(Offset(7)),)

    def test_an_empty_log_cannot_diverge(self) -> None:
        leader = self.leader_with_records()
        assert fetched(leader, TWO, 0, 1, last_fetched_epoch=-1, epoch_end=(-1, -1)) == ()
        assert fetched(leader, TWO, 5, 1) == (HighWatermarkRaised(Offset(5)),)

    def test_an_older_process_of_the_same_node_does_not_count(self) -> None:
        leader = self.leader_with_records()
        assert fetched(leader, TWO, 10, 1, broker_epoch=6, registered_epoch=7) == ()
        fetched(leader, TWO, 4, 2, broker_epoch=9, registered_epoch=7)
        assert fetched(leader, TWO, 10, 3, broker_epoch=7, registered_epoch=7) == ()
        assert leader.high_watermark == 4

    def test_the_change_names_the_process_that_caught_up(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(4))
        assert fetched(leader, THREE, 4, 2, broker_epoch=9) == (ExpandIsr(TRIO, 10, (-1, -1, 9)),)

    def test_a_follower_that_is_fenced_or_stops_does_not_join(self) -> None:
        leader = trio(isr=(ONE,))
        leader.log_appended(Offset(4))
        assert fetched(leader, TWO, 4, 2, may_join=False) == ()
        assert leader.log_appended(Offset(6)) == (HighWatermarkRaised(Offset(6)),)
        assert fetched(leader, TWO, 6, 3) == (expand(ONE, TWO),)

    def test_a_new_process_is_not_waited_for_because_its_predecessor_was(self) -> None:
        leader = trio(isr=(ONE,))
        leader.log_appended(Offset(10))
        fetched(leader, TWO, 0, 1)
        leader.log_appended(Offset(20))
        fetched(leader, TWO, 10, 2)  # about to join
        leader.log_appended(Offset(30))
        assert leader.high_watermark == 20
        assert fetched(leader, TWO, 0, 3, broker_epoch=9) == (HighWatermarkRaised(Offset(30)),)

    def test_replicas_come_and_go(self) -> None:
        leader = trio(isr=(ONE, TWO))
        leader.log_appended(Offset(4))
        four = NodeId(4)
        leader.partition_changed((ONE, four), (ONE,), 11)
        assert leader.high_watermark == 4
        with pytest.raises(UnknownReplica):
            fetched(leader, TWO, 4, 1)
        assert fetched(leader, four, 4, 2) == (ExpandIsr((ONE, four), 11, (NO_BROKER_EPOCH, BROKER_EPOCH)),)


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
                model.see(fetched(leader, node, model.log_ends[node], model.now_ms))
            case "time":
                model.now_ms += value
                model.see(leader.check_lag(model.now_ms))
            case "controller commits" if model.requests:
                model.commit_change()
            case "leader hears":
                model.see(leader.partition_changed(TRIO, model.committed_isr, model.partition_epoch))
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
