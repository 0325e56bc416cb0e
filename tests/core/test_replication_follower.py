"""The follower's view of one partition: where it fetches, and what it gives up."""

import pytest

from headrace.core.replication.follower import Follower, WrongAnswer
from headrace.core.replication.role import AdvanceStart, Effects, FetchFrom, HighWatermarkRaised, RestartAt, TruncateTo
from headrace.model.ids import LeaderEpoch, NodeId, Offset


def follower(
    *,
    log_end: int = 10,
    log_start: int = 0,
    last_epoch: int = 3,
    high_watermark: int = 4,
    flush_before_fetch: bool = False,
    flushed: int = 0,
) -> Follower:
    return Follower(
        leader=NodeId(2),
        leader_epoch=LeaderEpoch(5),
        partition_epoch=9,
        log_start=Offset(log_start),
        log_end=Offset(log_end),
        last_epoch=last_epoch,
        flushed=Offset(flushed),
        high_watermark=Offset(high_watermark),
        flush_before_fetch=flush_before_fetch,
    )


def fetched(
    role: Follower, log_end: Offset, last_epoch: int, *, leader_high_watermark: int, leader_log_start: int
) -> Effects:
    role.appended(log_end, last_epoch)
    return role.fetched(leader_high_watermark=leader_high_watermark, leader_log_start=leader_log_start)


class TestFetching:
    def test_it_fetches_from_its_end_and_names_its_last_epoch(self) -> None:
        assert follower().next_fetch() == FetchFrom(Offset(10), 3)

    def test_an_empty_log_has_no_last_epoch(self) -> None:
        assert follower(log_start=10).next_fetch() == FetchFrom(Offset(10), -1)

    def test_it_commits_what_the_leader_commits_up_to_its_own_end(self) -> None:
        role = follower()
        effects = fetched(role, Offset(12), 5, leader_high_watermark=20, leader_log_start=0)
        assert effects == (HighWatermarkRaised(Offset(12)),)
        assert role.next_fetch() == FetchFrom(Offset(12), 5)

    def test_an_older_high_watermark_changes_nothing(self) -> None:
        role = follower()
        assert fetched(role, Offset(10), 3, leader_high_watermark=2, leader_log_start=0) == ()
        assert role.high_watermark == 4

    def test_it_deletes_what_the_leader_has_deleted(self) -> None:
        role = follower()
        effects = fetched(role, Offset(10), 3, leader_high_watermark=4, leader_log_start=6)
        assert effects == (AdvanceStart(Offset(6)),)

    def test_a_high_watermark_beyond_the_log_is_cut(self) -> None:
        assert follower(high_watermark=30).high_watermark == 10


class TestSyncs:
    def test_it_does_not_claim_what_is_not_on_disk(self) -> None:
        role = follower(flush_before_fetch=True, flushed=10)
        fetched(role, Offset(12), 5, leader_high_watermark=12, leader_log_start=0)
        assert role.next_fetch() is None
        assert role.log_flushed(Offset(11)) == ()
        assert role.log_flushed(Offset(12)) == (FetchFrom(Offset(12), 5),)
        assert role.log_flushed(Offset(12)) == (), "it was fetching already"

    def test_turning_it_off_lets_the_fetch_go(self) -> None:
        role = follower(flush_before_fetch=True)
        assert role.configure(flush_before_commit=False, min_insync_replicas=1) == (FetchFrom(Offset(10), 3),)
        assert role.configure(flush_before_commit=True, min_insync_replicas=1) == ()


class TestTruncation:
    def test_a_longer_end_of_the_same_epoch_is_cut(self) -> None:
        role = follower()
        assert role.diverging_epoch(3, 7, (3, 10)) == (TruncateTo(Offset(7)),)
        assert role.next_fetch() is None
        cut = role.truncated(log_start=Offset(0), log_end=Offset(7), last_epoch=3)
        assert cut == (FetchFrom(Offset(7), 3),)

    def test_an_epoch_that_the_leader_lacks_is_cut(self) -> None:
        assert follower().diverging_epoch(2, 8, (2, 6)) == (TruncateTo(Offset(6)),)

    def test_below_an_epoch_that_this_node_lacks_another_round_is_needed(self) -> None:
        assert follower().diverging_epoch(2, 8, (1, 5)) == (TruncateTo(Offset(5)),)

    def test_a_log_without_a_common_beginning_starts_where_the_leader_says(self) -> None:
        assert follower(log_start=6).diverging_epoch(2, 4, (-1, -1)) == (RestartAt(Offset(4)),)

    def test_the_high_watermark_does_not_decide(self) -> None:
        """KIP-101: records above it may be committed, and were lost by cutting there."""
        role = follower(high_watermark=4)
        assert role.diverging_epoch(3, 9, (3, 10)) == (TruncateTo(Offset(9)),)

    def test_the_high_watermark_never_exceeds_the_log(self) -> None:
        role = follower(high_watermark=9)
        role.diverging_epoch(3, 7, (3, 10))
        role.truncated(log_start=Offset(0), log_end=Offset(7), last_epoch=3)
        assert role.high_watermark == 7

    @pytest.mark.parametrize(
        ("epoch", "end_offset", "own"),
        [(4, 7, (3, 10)), (-2, 7, (-1, -1)), (3, -1, (3, 10)), (3, 10, (3, 10)), (3, 99, (3, 10))],
    )
    def test_an_answer_that_makes_no_sense_changes_nothing(
        self, epoch: int, end_offset: int, own: tuple[int, int]
    ) -> None:
        role = follower()
        with pytest.raises(WrongAnswer):
            role.diverging_epoch(epoch, end_offset, own)
        assert role.next_fetch() == FetchFrom(Offset(10), 3)

    def test_a_follower_behind_the_leaders_start_begins_there(self) -> None:
        role = follower()
        assert role.out_of_range(50) == (RestartAt(Offset(50)),)
        role.truncated(log_start=Offset(50), log_end=Offset(50), last_epoch=-1)
        assert role.next_fetch() == FetchFrom(Offset(50), -1)

    def test_an_empty_log_beyond_the_leaders_end_begins_again(self) -> None:
        assert follower(log_start=10).out_of_range(2) == (RestartAt(Offset(2)),)

    @pytest.mark.parametrize("leader_log_start", [-1, 0, 10])
    def test_records_are_not_given_up_for_an_offset_that_the_leader_should_have(self, leader_log_start: int) -> None:
        with pytest.raises(WrongAnswer):
            follower().out_of_range(leader_log_start)

    def test_an_empty_log_begins_with_the_batch_that_contains_the_leaders_start(self) -> None:
        role = follower(log_start=10)
        assert role.batch_begins_at(8) == (RestartAt(Offset(8)),)
        cut = role.truncated(log_start=Offset(8), log_end=Offset(8), last_epoch=-1)
        assert cut == (FetchFrom(Offset(10), -1),), "the leader has nothing below its start"
        assert fetched(role, Offset(12), 5, leader_high_watermark=12, leader_log_start=10) == (
            HighWatermarkRaised(Offset(12)),
            AdvanceStart(Offset(10)),
        )

    @pytest.mark.parametrize("base_offset", [-1, 10, 12])
    def test_a_batch_elsewhere_is_refused(self, base_offset: int) -> None:
        with pytest.raises(WrongAnswer):
            follower(log_start=10).batch_begins_at(base_offset)
