"""The states of a classic group and what leads from one to the next, as a table."""

from collections.abc import Mapping
from enum import StrEnum


class GroupState(StrEnum):
    """With the names that clients and tools know."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are asked to join the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The next generation is known; its leader owes the assignment."""
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(StrEnum):
    REBALANCE_NEEDED = "a member came, went or changed"
    ALL_JOINED = "every member that is waited for has joined"
    NONE_JOINED = "no member is left"
    ASSIGNED = "the leader gave the assignment"
    MEMBER_REPLACED = "a static member came back under another id"
    DELETED = "the group was deleted or has expired"


_EMPTY, _PREPARING = GroupState.EMPTY, GroupState.PREPARING_REBALANCE
_COMPLETING, _STABLE, _DEAD = GroupState.COMPLETING_REBALANCE, GroupState.STABLE, GroupState.DEAD

TRANSITIONS: Mapping[tuple[GroupState, GroupEvent], GroupState] = {
    (_EMPTY, GroupEvent.REBALANCE_NEEDED): _PREPARING,
    (_EMPTY, GroupEvent.DELETED): _DEAD,
    (_PREPARING, GroupEvent.ALL_JOINED): _COMPLETING,
    (_PREPARING, GroupEvent.NONE_JOINED): _EMPTY,
    (_COMPLETING, GroupEvent.ASSIGNED): _STABLE,
    (_COMPLETING, GroupEvent.REBALANCE_NEEDED): _PREPARING,
    (_STABLE, GroupEvent.REBALANCE_NEEDED): _PREPARING,
    (_STABLE, GroupEvent.MEMBER_REPLACED): _STABLE,
}


def next_state(state: GroupState, event: GroupEvent) -> GroupState:
    return TRANSITIONS[state, event]
