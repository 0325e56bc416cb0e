"""What a group waits for, by name."""

from enum import IntEnum
from typing import NamedTuple

from headrace.core.coordination.deadlines import Deadlines


class Wait(IntEnum):
    SESSION = 0
    """For the next sign of life of a member."""
    PENDING_MEMBER = 1
    """For the owner of an id to join with it."""
    JOINS = 2
    """For the members to join the next generation."""
    SYNCS = 3
    """For the members of a new generation to ask for their assignment."""
    REVOCATION = 5
    """For a member to let go of partitions that are to be another's."""
    RETENTION = 4
    """For the next look at offsets that nobody uses any more."""

    REJOIN = 6
    """For a member of the classic protocol, in a group of the new one, to join again as it was told."""
    SYNC = 7
    """For such a member to ask for its assignment."""
    ANSWERS = 9
    """For the next turn, in which more members of a large classic group are told what was decided."""
    ASSIGNMENT = 8
    """For the next step of an assignment of a large group."""


MEMBER_WAITS = (Wait.SESSION, Wait.REVOCATION, Wait.REJOIN, Wait.SYNC)
"""What a group of the new protocol waits for, member by member."""


class Waiting(NamedTuple):
    wait: Wait
    group: str = ""
    member: str = ""


GroupDeadlines = Deadlines[Waiting]
