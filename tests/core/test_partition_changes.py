"""Changes of one partition: elections, in-sync and eligible replicas, and the end of a reassignment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.controller.partition_changes import Election, ElectionRules, change, change_record
from headrace.core.controller.partition_states import PartitionState
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId

TOPIC = TopicId(b"t" * 16)


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


def state(
    replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] = (1, 2, 3), leader: int = 1, **others: tuple[int, ...]
) -> PartitionState:
    return PartitionState(
        nodes(*replicas),
        nodes(*isr),
        NodeId(leader),
        LeaderEpoch(5),
        9,
        (bytes(16),) * len(replicas),
        **{name: nodes(*numbers) for name, numbers in others.items()},
    )


def rules(*available: int, minimum: int = 2, unclean: bool = False, replicates: bool = True) -> ElectionRules:
    return ElectionRules(
        available=frozenset(nodes(*available)),
        min_insync_replicas=minimum,
        unclean=unclean,
        replicates=replicates,
    )


def gone(old: PartitionState, node: int, *available: int, **others: object) -> PartitionState:
    return change(old, rules(*available, **others), gone=frozenset(nodes(node)))  # type: ignore[arg-type]


def lost(old: PartitionState, node: int, *available: int, **others: object) -> PartitionState:
    members = frozenset(nodes(node))
    return change(old, rules(*available, **others), gone=members, lost=members)  # type: ignore[arg-type]


def shown(new: PartitionState) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return new.leader, new.isr, new.elr, new.last_known_elr


def test_the_first_replica_in_sync_takes_over_from_a_leader_that_is_gone() -> None:
    new = gone(state(), 1, 2, 3)
    assert shown(new) == (2, (2, 3), (), ())
    assert new.leader_epoch == 6


def test_a_follower_that_is_gone_leaves_the_leader_and_its_epoch() -> None:
    new = gone(state(), 3, 1, 2)
    assert shown(new) == (1, (1, 2), (), ())
    assert new.leader_epoch == 5


def test_a_replica_that_leaves_a_set_below_the_minimum_stays_eligible() -> None:
    new = gone(state(isr=(1, 2)), 1, 2, 3)
    assert shown(new) == (2, (2,), (1,), ())
    alone = gone(new, 2, 3)
    assert shown(alone) == (NO_NODE, (2,), (1,), ())  # replica 3 lacks records
    returned = change(alone, rules(1, 3))
    assert shown(returned) == (1, (1,), (2,), ())
    assert returned.leader_epoch == alone.leader_epoch + 1
    whole = change(returned, rules(1, 2, 3), isr=nodes(1, 2))
    assert shown(whole) == (1, (1, 2), (), ())


def test_the_only_replica_keeps_its_place() -> None:
    only = state((1,), (1,))
    assert shown(gone(only, 1)) == (NO_NODE, (1,), (), ())
    assert shown(lost(only, 1)) == (NO_NODE, (1,), (), ())
    assert shown(change(gone(only, 1), rules(1))) == (1, (1,), (), ())


def test_a_machine_that_lost_records_is_neither_in_sync_nor_eligible() -> None:
    assert shown(lost(state(isr=(1, 2)), 1, 2, 3)) == (2, (2,), (), (1,))
    eligible = state(isr=(2,), leader=2, elr=(1,))
    assert shown(lost(eligible, 1, 2, 3)) == (2, (2,), (), (1,))
    leaderless = state(isr=(2,), leader=NO_NODE, elr=(1,))
    assert shown(lost(leaderless, 2, 3)) == (NO_NODE, (), (1,), (2,))
    assert shown(lost(lost(leaderless, 2, 3), 1, 3)) == (NO_NODE, (), (), (1, 2))


def test_last_replica_standing() -> None:
    """With min.insync.replicas=2, one machine that loses its records loses nothing that was acknowledged (KIP-966)."""
    now = gone(state((1, 2, 3), (1, 2, 3)), 3, 1, 2)
    now = gone(now, 2, 1)
    assert shown(now) == (1, (1,), (2,), ())  # what only 1 has from here on is not committed
    now = gone(now, 1)
    now = lost(now, 1)
    assert shown(now) == (NO_NODE, (), (2,), (1,))
    assert change(now, rules(1, 3)) == now
    assert shown(change(now, rules(1, 2, 3))) == (2, (2,), (), (1,))


def test_an_eligible_replica_of_a_higher_minimum_is_not_elected_with_a_lower_one() -> None:
    below = state(isr=(1,), elr=(2, 3))
    assert shown(gone(below, 1, 2, 3, minimum=2)) == (2, (2,), (1, 3), ())
    new = gone(below, 1, 2, 3, minimum=1)  # replica 1 alone may have committed records since
    assert shown(new) == (NO_NODE, (1,), (), ())


def test_an_unclean_election_is_a_choice_of_the_topic() -> None:
    leaderless = state(isr=(1,), leader=NO_NODE)
    assert change(leaderless, rules(2, 3)) == leaderless
    new = change(leaderless, rules(2, 3, unclean=True))
    assert shown(new) == (2, (2,), (), ())
    assert shown(change(leaderless, rules(2, 3), election=Election.UNCLEAN)) == (2, (2,), (), ())
    assert shown(change(state(), rules(1, 2, 3), election=Election.UNCLEAN)) == (1, (1, 2, 3), (), ())


def test_an_eligible_replica_is_elected_before_an_unclean_one() -> None:
    leaderless = state(isr=(1,), leader=NO_NODE, elr=(3,))
    assert shown(change(leaderless, rules(2, 3, unclean=True))) == (3, (3,), (1,), ())


def test_the_preferred_leader_is_elected_when_it_is_in_sync() -> None:
    led_by_2 = state(leader=2)
    new = change(led_by_2, rules(1, 2, 3), election=Election.PREFERRED)
    assert (new.leader, new.leader_epoch, new.isr) == (1, 6, (1, 2, 3))
    behind = state(isr=(2, 3), leader=2)
    assert change(behind, rules(1, 2, 3), election=Election.PREFERRED) == behind
    assert change(led_by_2, rules(2, 3), election=Election.PREFERRED) == led_by_2


def test_a_replica_is_chosen_when_none_has_every_record() -> None:
    unled = state(isr=(), leader=NO_NODE, last_known_elr=(1, 2))
    assert shown(change(unled, rules(1, 2, 3), chosen=NodeId(2))) == (2, (2,), (), ())


def test_a_reassignment_ends_when_the_added_replicas_are_in_sync() -> None:
    moving = state((4, 1, 2), (1, 2), leader=1, adding=(4,), removing=(1,))
    assert change(moving, rules(1, 2, 4), isr=nodes(1, 2)) == moving
    ended = change(moving, rules(1, 2, 4), isr=nodes(1, 2, 4))
    assert (ended.replicas, ended.isr, ended.leader) == ((4, 2), (4, 2), 4)
    assert (ended.adding, ended.removing, ended.leader_epoch) == ((), (), 6)
    assert len(ended.directories) == 2


def test_replicas_that_are_only_added_leave_leader_and_epoch() -> None:
    growing = state((1, 2), (1,), adding=(2,))
    ended = change(growing, rules(1, 2, minimum=1), isr=nodes(1, 2))
    assert (ended.replicas, ended.isr, ended.adding, ended.leader_epoch) == ((1, 2), (1, 2), (), 5)


def test_removing_replicas_gives_a_new_leader_epoch() -> None:
    """A removed replica that does not know it yet must not be counted by its old epoch."""
    shrinking = state((1, 2, 3), (1, 2, 3), removing=(3,))
    ended = change(shrinking, rules(1, 2, 3))
    assert (ended.replicas, ended.isr, ended.leader, ended.leader_epoch) == ((1, 2), (1, 2), 1, 6)


def test_levels_without_eligible_leaders_write_none() -> None:
    new = gone(state(isr=(1, 2)), 1, 2, 3, replicates=False)
    assert shown(new) == (2, (2,), (), ())


@pytest.mark.parametrize("same", [state(), state(isr=(2,), leader=NO_NODE, elr=(1,))])
def test_a_state_that_stays_needs_no_record(same: PartitionState) -> None:
    new = change(same, rules(*(node for node in same.isr if same.leader != NO_NODE)))
    assert new is same
    assert change_record(TOPIC, 0, same, new) is None


events = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("gone", "lost", "back", "join", "leave")), st.integers(1, 4)),
        st.tuples(st.sampled_from(("prefer", "unclean")), st.just(0)),
    ),
    max_size=40,
)


@given(st.integers(1, 4), st.integers(1, 3), st.booleans(), events)
def test_the_sets_stay_consistent_and_no_committed_record_is_forgotten(
    replica_count: int, minimum: int, unclean: bool, taken: list[tuple[str, int]]
) -> None:
    """Replay what happens to a partition; the leader commits a record in each step in which it may."""
    replicas = nodes(*range(1, replica_count + 1))
    now = state(replicas, replicas)
    available = set(replicas)
    effective = min(minimum, replica_count)
    holding: dict[NodeId, int] = dict.fromkeys(replicas, 0)
    committed = 0
    for kind, number in taken:
        node = NodeId(number)
        election = {"prefer": Election.PREFERRED, "unclean": Election.UNCLEAN}.get(kind, Election.IF_NEEDED)
        isr, out, forgets = None, frozenset[NodeId](), frozenset[NodeId]()
        if kind in ("gone", "lost"):
            available.discard(node)
            out = frozenset((node,))
            if kind == "lost" and replica_count > 1:
                forgets = out
                holding[node] = 0
        elif kind == "back" and node in replicas:
            available.add(node)
        elif kind in ("join", "leave") and now.leader != NO_NODE and node != now.leader:
            if kind == "join" and node in available and node not in now.isr:
                isr = (*now.isr, node)
                holding[node] = holding[now.leader]  # it has fetched everything
            elif kind == "leave":
                isr = tuple(member for member in now.isr if member != node)
        before = now
        now = change(
            now,
            rules(*available, minimum=minimum, unclean=unclean),
            isr=isr,
            gone=out,
            lost=forgets,
            election=election,
        )
        assert set(now.isr) | set(now.elr) | set(now.last_known_elr) <= set(now.replicas)
        assert not set(now.isr) & set(now.elr)
        assert not set(now.last_known_elr) & {*now.isr, *now.elr}
        assert now.leader == NO_NODE or now.leader in set(now.isr) & available
        assert not now.elr or len(now.isr) < effective
        assert now.leader_epoch - before.leader_epoch == (now.leader != before.leader)
        if now.leader == NO_NODE:
            assert not available & {*now.isr, *now.elr}
            continue
        if holding[now.leader] < committed:
            assert unclean or any(step[0] in ("unclean", "lost") for step in taken)
            committed = holding[now.leader]
            for member in now.isr:
                holding[member] = committed
        for member in now.isr:
            holding[member] = max(holding[member], holding[now.leader])
        if len(now.isr) >= effective:
            committed += 1
            for member in now.isr:
                holding[member] = committed
        if not unclean and not any(step[0] in ("unclean", "lost") for step in taken):
            assert all(holding[member] >= committed for member in (*now.isr, *now.elr))
