"""Transfer the leadership to another voter (section 3.10 of the Raft dissertation)."""

from collections.abc import Mapping

from headrace.core.coordination.machine import Ticket
from headrace.core.raft.ids import ReplicaKey, Voters
from headrace.core.raft.progress import Progress


class Transfer:
    """A transfer in progress.

    The leader takes no proposals, waits until the other voter holds its whole log, and asks it to start an election.
    """

    __slots__ = ("deadline_ms", "is_requested", "ticket", "to")

    def __init__(self, *, ticket: Ticket, to: ReplicaKey, deadline_ms: float) -> None:
        self.ticket = ticket
        self.to = to
        self.deadline_ms = deadline_ms
        self.is_requested = False


def furthest_voter(voters: Voters, progress: Mapping[ReplicaKey, Progress]) -> ReplicaKey | None:
    """Return the other voter that responded last among those with the longest match."""
    others = [voter for voter in voters if voter in progress]
    return max(others, key=lambda voter: (progress[voter].match_index, progress[voter].heard_ms), default=None)
