"""The voter changes that a leader makes by itself."""

import pytest

from headrace.core.raft.entries import StateSnapshot, Stored
from headrace.core.raft.ids import DirectoryId, Index, ReplicaKey, voter_set
from headrace.core.raft.progress import Progress
from headrace.core.raft.promotion import VoterChange, next_voter_change
from headrace.core.raft.settings import PROMOTION_LAG_ENTRIES_MAX, RaftSettings
from headrace.core.raft.state import RaftState
from headrace.model.ids import NodeId

NOW_MS = 1_000_000.0
HOSTS = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}


def key(node_id: int, directory: str = "d") -> ReplicaKey:
    return ReplicaKey(NodeId(node_id), DirectoryId(directory))


def leader(*voters: ReplicaKey) -> RaftState:
    snapshot = StateSnapshot(index=Index(1_000), voters=voter_set(*voters))
    return RaftState(
        me=voters[0], stored=Stored(snapshot=snapshot), settings=RaftSettings(), draw=lambda bound: 0, now_ms=NOW_MS
    )


def observer(*, match_index: int = 1_000, heard_ms: float = NOW_MS, may_vote: bool = True) -> Progress:
    progress = Progress(next_index=Index(match_index + 1), now_ms=heard_ms)
    progress.match_index, progress.may_vote = Index(match_index), may_vote
    return progress


def change(
    state: RaftState, observers: dict[ReplicaKey, Progress], target: int = 3, *, removed: tuple[int, ...] = ()
) -> VoterChange | None:
    others = {voter: observer(may_vote=False) for voter in state.voters if voter != state.me}
    return next_voter_change(
        state,
        {**others, **observers},
        target=target,
        host_of=lambda node: HOSTS.get(node),
        may_promote=lambda node: node not in removed,
    )


def test_voters_are_added_in_pairs() -> None:
    assert change(leader(key(1)), {key(3): observer()}) is None
    assert change(leader(key(1)), {key(3): observer(), key(4): observer()}) == (key(3), True)
    assert change(leader(key(1), key(3)), {key(4): observer()}) == (key(4), True)


def test_a_node_that_an_operator_removed_is_not_added() -> None:
    ready = {key(3): observer(), key(4): observer(), key(5): observer()}
    assert change(leader(key(1), key(2)), ready, removed=(3, 4)) == (key(5), True)
    assert change(leader(key(1), key(2)), ready, removed=(3, 4, 5)) is None


@pytest.mark.parametrize("target", [1, 3])
def test_no_voter_is_added_above_the_target(target: int) -> None:
    voters = [key(1), key(3), key(4)][:target]
    assert change(leader(*voters), {key(9): observer(), key(10): observer()}, target) is None


@pytest.mark.parametrize(
    "lagging",
    [
        observer(may_vote=False),
        observer(match_index=1_000 - PROMOTION_LAG_ENTRIES_MAX - 1),
        observer(heard_ms=NOW_MS - 5_000),
    ],
)
def test_who_may_not_vote_or_lags_is_not_added(lagging: Progress) -> None:
    assert change(leader(key(1), key(3)), {key(4): lagging}) is None


def test_other_hosts_come_first() -> None:
    assert change(leader(key(1)), {key(2): observer(), key(3): observer()}) == (key(3), True)
    assert change(leader(key(1), key(3)), {key(2): observer(), key(5): observer()}) == (key(5), True)


def test_a_voter_that_shares_a_host_is_replaced_when_another_host_appears() -> None:
    assert change(leader(key(4), key(5), key(1)), {key(3): observer()}) == (key(5), False)
    assert change(leader(key(5), key(4), key(1)), {key(3): observer()}) == (key(4), False), "the leader stays"
    assert change(leader(key(4), key(5), key(1)), {key(2): observer()}) is None, "that host has a voter"
    assert change(leader(key(4), key(5), key(1)), {key(9): observer()}) is None, "its host is not known"


def test_a_node_that_returns_with_another_directory_replaces_its_former_self() -> None:
    voters = (key(1), key(3), key(4))
    assert change(leader(*voters), {key(3, "new"): observer()}) == (key(3), False)
    assert change(leader(*voters), {key(3, "new"): observer(match_index=0)}) is None, "it has to catch up first"
    assert change(leader(key(1), key(4)), {key(3, "new"): observer()}) == (key(3, "new"), True)
