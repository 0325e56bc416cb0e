"""The next change of the voter set that a leader makes by itself: one voter at a time, towards a target count.

Observers that may vote and have caught up are promoted, except those that an operator has removed from the voters. The
number of voters grows in pairs, because an even number tolerates no more failures than the odd number below it. A node
that returned with another directory replaces its former self. A voter that shares its host is replaced by an observer
on a host without voters.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from headrace.core.raft.ids import ReplicaKey
from headrace.core.raft.membership import has_caught_up
from headrace.core.raft.progress import Progress
from headrace.core.raft.state import RaftState
from headrace.model.ids import NodeId

HostOf = Callable[[NodeId], str | None]
"""Returns the host of a node; None if it is not known."""

MayPromote = Callable[[NodeId], bool]
"""Returns whether a node may become a voter without a request of an operator."""


class VoterChange(NamedTuple):
    voter: ReplicaKey
    is_addition: bool


def next_voter_change(
    state: RaftState,
    progress: Mapping[ReplicaKey, Progress],
    *,
    target: int,
    host_of: HostOf,
    may_promote: MayPromote,
) -> VoterChange | None:
    """Return the change to request next, or None if the voter set is as it should be."""
    ready = [
        key
        for key, each in progress.items()
        if each.may_vote and key not in state.voters and may_promote(key.node_id) and has_caught_up(state, each)
    ]
    returned = _former_self(state, ready)
    if returned is not None:
        return VoterChange(returned, is_addition=False)
    used_hosts = {host_of(voter.node_id) for voter in state.voters} - {None}
    new = sorted(ready, key=lambda key: (host_of(key.node_id) in used_hosts, key))
    count = len(state.voters)
    if count < target:
        is_pair_complete = count % 2 == 0 or len(new) >= 2
        return VoterChange(new[0], is_addition=True) if new and is_pair_complete else None
    if new and host_of(new[0].node_id) not in (None, *used_hosts):
        crowded = _crowded_voter(state, host_of)
        return None if crowded is None else VoterChange(crowded, is_addition=False)
    return None


def _former_self(state: RaftState, ready: list[ReplicaKey]) -> ReplicaKey | None:
    """Return the voter whose node has returned with another directory."""
    nodes = {key.node_id for key in ready}
    return next((voter for voter in state.voters if voter.node_id in nodes and voter != state.me), None)


def _crowded_voter(state: RaftState, host_of: HostOf) -> ReplicaKey | None:
    """Return a voter, but not this leader, that shares its host with another voter."""
    hosts = [host_of(voter.node_id) for voter in state.voters]
    for voter, host in reversed(tuple(zip(state.voters, hosts, strict=True))):
        if host is not None and hosts.count(host) > 1 and voter != state.me:
            return voter
    return None
