"""The states of a classic group and their transitions, as a table."""

from collections.abc import Mapping
from enum import StrEnum


class GroupState(StrEnum):
    """The state of a classic group, with the name that clients and tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members must join the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The members of the next generation are known; the leader has not sent the assignment yet."""
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(StrEnum):
    REBALANCE_NEEDED = "a member joined, left or changed"
    ALL_JOINED = "all awaited members have joined"
    NONE_JOINED = "no member has joined"
    ASSIGNED = "the leader sent the assignment"
    MEMBER_REPLACED = "a static member returned under another id"
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
