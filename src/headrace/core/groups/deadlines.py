"""Deadlines of the group coordinator, each named by its kind, its group and its member."""

from enum import IntEnum
from typing import NamedTuple

from headrace.core.coordination.deadlines import Deadlines
from headrace.core.groups.classic_group import ClassicGroup


class DeadlineKind(IntEnum):
    SESSION = 0
    """A member must send its next heartbeat, or another request."""
    PENDING_MEMBER = 1
    """A client that received a member id must join with it."""
    JOINS = 2
    """The members of a classic group must join the next generation."""
    SYNCS = 3
    """The members of a new generation must ask for their assignment."""
    RETENTION = 4
    """The next search for expired offsets begins."""
    REVOCATION = 5
    """A KIP-848 member must revoke partitions that its target no longer contains."""
    REJOIN = 6
    """A classic member of a KIP-848 group must join again, as its heartbeat response said."""
    SYNC = 7
    """A classic member of a KIP-848 group must ask for its assignment."""
    ASSIGNMENT = 8
    """The next step of the assignment of a large group begins."""
    RESPONSES = 9
    """More members of a large classic group receive their responses, in the next turn."""


MEMBER_DEADLINES = (DeadlineKind.SESSION, DeadlineKind.REVOCATION, DeadlineKind.REJOIN, DeadlineKind.SYNC)
"""The deadlines that a member of a KIP-848 group can have."""


class GroupDeadline(NamedTuple):
    """The name of a deadline."""

    kind: DeadlineKind
    group: str = ""
    member: str = ""


GroupDeadlines = Deadlines[GroupDeadline]


def drop_group_deadlines(deadlines: GroupDeadlines, group: ClassicGroup) -> None:
    """Drop the deadlines of a classic group that ceases to exist, except the sessions of its members."""
    for kind in (DeadlineKind.JOINS, DeadlineKind.SYNCS, DeadlineKind.RESPONSES):
        deadlines.drop(GroupDeadline(kind, group.group_id))
    for member_id in group.pending:
        deadlines.drop(GroupDeadline(DeadlineKind.PENDING_MEMBER, group.group_id, member_id))
