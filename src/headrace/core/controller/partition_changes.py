"""Change one partition: elect its leader, and keep its in-sync and eligible replicas and its reassignment consistent.

A leader is elected from the in-sync replicas on brokers that are available, in the order of the replicas, those on
impaired brokers last; then from the eligible leader replicas; then, if unclean elections are allowed, from all
replicas. Otherwise the partition has no leader. A replica that leaves the in-sync set while that is below
min.insync.replicas becomes an eligible leader (KIP-966): nothing is committed below the minimum, so that it has every
committed record. Both rules need the same minimum here and on the leader.
"""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from enum import Enum

from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId

UNASSIGNED_DIRECTORY = bytes(16)
"""The broker chooses the log directory when it opens the partition."""

NO_NODES: frozenset[NodeId] = frozenset()


class Election(Enum):
    """Kinds of elections, by the condition under which the leader changes."""

    IF_NEEDED = "the current leader is not available"
    PREFERRED = "the first replica is in sync"
    UNCLEAN = "the current leader is not available, whatever records the next one lacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRules:
    """The rules for all partitions of a topic in one decision."""

    available: Set[NodeId]
    """The brokers that are unfenced and do not shut down."""
    min_insync_replicas: int
    unclean: bool = False
    """True if the topic prefers a leader that lacks records to none."""
    impaired: Set[NodeId] = NO_NODES
    """The brokers that lead only what no other available broker has in sync."""
    replicates: bool = True
    """False at levels of metadata.version without eligible leader replicas."""


def change(
    state: PartitionState,
    rules: ElectionRules,
    *,
    isr: Collection[NodeId] | None = None,
    gone: Set[NodeId] = NO_NODES,
    lost: Set[NodeId] = NO_NODES,
    election: Election = Election.IF_NEEDED,
    chosen: NodeId = NO_NODE,
) -> PartitionState:
    """Return the next state of a partition; the same one if nothing changes. Its partition epoch is not raised.

    `isr` is an in-sync set that the leader asks for. The replicas in `gone` leave the in-sync set, because their
    brokers are fenced or shut down; those in `lost` may have lost records that they had, and are not eligible either.
    `chosen` becomes the leader although it may lack records, because no replica is known to have all of them.
    """
    if state.elr and len(state.isr) >= min(rules.min_insync_replicas, len(state.replicas)):
        state = state._replace(elr=())  # with a lower minimum the leader may have committed what these replicas lack
    replicas, adding, removing = state.replicas, state.adding, state.removing
    wanted = state.isr if isr is None else isr
    in_sync = tuple(node for node in replicas if node in wanted and node not in gone and node not in lost)
    if (adding or removing) and _is_complete(state, in_sync):
        replicas = tuple(node for node in replicas if node not in removing)
        in_sync = tuple(node for node in in_sync if node not in removing)
        adding = removing = ()
    if not in_sync and (len(replicas) == 1 or lost.isdisjoint(state.isr)):
        in_sync = state.isr  # the last one keeps its place: no other replica can have more records
    eligible = [node for node in state.elr if node not in lost] if rules.replicates else []
    if chosen == NO_NODE:
        leader, is_clean = _elected(state.leader, replicas, in_sync, eligible, rules, election)
    else:
        leader, is_clean = chosen, False
    if leader not in (NO_NODE, *in_sync) or not is_clean:
        in_sync = (leader,)
    elr, last_known = _eligible(state, replicas, in_sync, lost, rules)
    if not is_clean:
        elr = last_known = ()  # what the new leader lacks is not committed any more
    has_new_epoch = leader != state.leader or len(replicas) < len(state.replicas)
    if not has_new_epoch and (in_sync, elr, last_known, adding) == (
        state.isr,
        state.elr,
        state.last_known_elr,
        state.adding,
    ):
        return state
    return PartitionState(
        replicas,
        in_sync,
        leader,
        LeaderEpoch(state.leader_epoch + has_new_epoch),
        state.partition_epoch,
        state.directories if replicas == state.replicas else directories_of(state, replicas),
        elr,
        last_known,
        adding,
        removing,
    )


def _is_complete(state: PartitionState, in_sync: Collection[NodeId]) -> bool:
    """Return whether the added replicas are in sync, and one that stays is."""
    return set(state.adding) <= set(in_sync) and any(node not in state.removing for node in in_sync)


def _elected(
    current: NodeId,
    replicas: Sequence[NodeId],
    in_sync: Collection[NodeId],
    eligible: Collection[NodeId],
    rules: ElectionRules,
    election: Election,
) -> tuple[NodeId, bool]:
    """Return the leader, and whether it has every committed record."""
    available = rules.available
    preferred = replicas[0]
    sound = [node for node in replicas if node in in_sync and node in available and node not in rules.impaired]
    if election is Election.PREFERRED and preferred in sound:
        return preferred, True
    if current in available and current in in_sync and current in replicas and (current in sound or not sound):
        return current, True
    live = [node for node in replicas if node in available]
    live.sort(key=lambda node: node in rules.impaired)
    for known in (in_sync, eligible):
        for node in live:
            if node in known:
                return node, True
    if live and (rules.unclean or election is Election.UNCLEAN):
        return live[0], False
    return NO_NODE, True


def _eligible(
    state: PartitionState,
    replicas: Collection[NodeId],
    in_sync: Collection[NodeId],
    lost: Set[NodeId],
    rules: ElectionRules,
) -> tuple[tuple[NodeId, ...], tuple[NodeId, ...]]:
    """Return the eligible leader replicas, and those that were until they lost records."""
    if not rules.replicates or len(in_sync) >= min(rules.min_insync_replicas, len(replicas)):
        return (), ()
    had = {*state.isr, *state.elr}
    elr = tuple(node for node in replicas if node in had and node not in in_sync and node not in lost)
    known = {*state.last_known_elr, *(had & lost)}
    return elr, tuple(node for node in replicas if node in known and node not in in_sync and node not in elr)


def directories_of(state: PartitionState, replicas: Collection[NodeId]) -> tuple[bytes, ...]:
    """Return the log directories of these replicas; those of new ones are not assigned."""
    known = dict(zip(state.replicas, state.directories, strict=False))
    return tuple(known.get(node, UNASSIGNED_DIRECTORY) for node in replicas)


def change_record(
    topic_id: TopicId, partition: int, old: PartitionState, new: PartitionState
) -> PartitionChangeRecord | None:
    """Return the record that leads from one state to another; None if they are the same."""
    if new is old or new == old:
        return None
    return PartitionChangeRecord(
        topic_id,
        partition,
        new.isr if new.isr != old.isr else None,
        new.leader if new.leader_epoch != old.leader_epoch else None,
        new.replicas if new.replicas != old.replicas else None,
        new.directories if new.directories != old.directories else None,
        new.elr if new.elr != old.elr else None,
        new.last_known_elr if new.last_known_elr != old.last_known_elr else None,
        new.adding if new.adding != old.adding else None,
        new.removing if new.removing != old.removing else None,
    )
