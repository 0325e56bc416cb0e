"""Roles of a replica, and the events that lead from one role to another, as a table."""

from collections.abc import Mapping
from enum import StrEnum


class Role(StrEnum):
    """The names of KIP-595, KIP-853 and KIP-996."""

    OBSERVER = "Observer"
    """Copies the log and is not in the voter set."""
    FOLLOWER = "Follower"
    PROSPECTIVE = "Prospective"
    """Asks the voters whether they would vote for it, without a new term."""
    CANDIDATE = "Candidate"
    LEADER = "Leader"


class RoleEvent(StrEnum):
    ELECTION_TIMEOUT = "no leader was heard from in time"
    ELECTION_REQUESTED = "the leader asked for an election"
    PRE_VOTES_WON = "a majority would vote for it"
    VOTES_WON = "a majority voted for it"
    LEADER_FOUND = "a leader of this term was heard from"
    HIGHER_TERM = "a higher term was seen"
    QUORUM_LOST = "no majority responded in time"
    PROMOTED = "the log adds it to the voter set"
    REMOVED = "the log removes it from the voter set"


TRANSITIONS: Mapping[tuple[Role, RoleEvent], Role] = {
    (Role.OBSERVER, RoleEvent.PROMOTED): Role.FOLLOWER,
    (Role.FOLLOWER, RoleEvent.REMOVED): Role.OBSERVER,
    (Role.FOLLOWER, RoleEvent.ELECTION_TIMEOUT): Role.PROSPECTIVE,
    (Role.FOLLOWER, RoleEvent.ELECTION_REQUESTED): Role.CANDIDATE,
    (Role.PROSPECTIVE, RoleEvent.ELECTION_TIMEOUT): Role.PROSPECTIVE,
    (Role.PROSPECTIVE, RoleEvent.ELECTION_REQUESTED): Role.CANDIDATE,
    (Role.PROSPECTIVE, RoleEvent.PRE_VOTES_WON): Role.CANDIDATE,
    (Role.PROSPECTIVE, RoleEvent.LEADER_FOUND): Role.FOLLOWER,
    (Role.PROSPECTIVE, RoleEvent.HIGHER_TERM): Role.FOLLOWER,
    (Role.CANDIDATE, RoleEvent.ELECTION_TIMEOUT): Role.PROSPECTIVE,
    (Role.CANDIDATE, RoleEvent.VOTES_WON): Role.LEADER,
    (Role.CANDIDATE, RoleEvent.LEADER_FOUND): Role.FOLLOWER,
    (Role.CANDIDATE, RoleEvent.HIGHER_TERM): Role.FOLLOWER,
    (Role.LEADER, RoleEvent.HIGHER_TERM): Role.FOLLOWER,
    (Role.LEADER, RoleEvent.QUORUM_LOST): Role.FOLLOWER,
    (Role.LEADER, RoleEvent.REMOVED): Role.OBSERVER,
}


def next_role(role: Role, event: RoleEvent) -> Role:
    return TRANSITIONS[role, event]
