"""Elections: request votes, and decide about the vote requests of other replicas."""

from headrace.core.raft.ids import ReplicaKey, Term
from headrace.core.raft.messages import VoteRequest, VoteResponse
from headrace.core.raft.roles import RoleEvent
from headrace.core.raft.state import RaftState


class Ballot:
    """The votes that this replica has won in one election."""

    __slots__ = ("_granted", "_state", "_write_number", "awaits_sync", "is_pre_vote", "term")

    def __init__(self, state: RaftState, *, pre_vote: bool, forced: bool = False) -> None:
        self._state = state
        self._granted: list[ReplicaKey] = []
        self._write_number = 0
        self.is_pre_vote = pre_vote
        self.awaits_sync = not pre_vote
        """True until the new term and the candidate's vote for itself are on disk."""
        self.term = Term(state.term + 1)
        if pre_vote:
            self._grant(state.me)
        else:
            state.enter_term(self.term, voted_for=state.me)
            self._write_number = state.out.next_write_number
        state.set_election_deadline()
        self._request(forced=forced)

    def _request(self, *, forced: bool) -> None:
        state = self._state
        # A candidate that forgot its term could win the same term twice, so real requests wait for the sync.
        send = state.out.send if self.is_pre_vote else state.out.send_after_sync
        for voter in state.voters:
            if voter != state.me:
                request = VoteRequest(
                    source=state.me,
                    to=voter,
                    term=self.term,
                    last_term=state.log.last_term,
                    last_index=state.log.last_index,
                    pre_vote=self.is_pre_vote,
                    forced=forced,
                )
                send(request)

    def synced(self, number: int) -> None:
        """Count the candidate's vote for itself once it is on disk."""
        if self.awaits_sync and number >= self._write_number:
            self.awaits_sync = False
            self._grant(self._state.me)

    def receive(self, response: VoteResponse) -> None:
        if response.granted and response.pre_vote == self.is_pre_vote and response.term == self.term:
            self._grant(response.source)

    def _grant(self, voter: ReplicaKey) -> None:
        if voter in self._state.voters and voter not in self._granted:
            self._granted.append(voter)

    @property
    def is_won(self) -> bool:
        return len(self._granted) >= self._state.majority_of(self._state.voters)


def is_meant_for(message_to: ReplicaKey, me: ReplicaKey) -> bool:
    """Return whether a message names exactly this replica: node id and directory id (KIP-853)."""
    return message_to == me


def answer_pre_vote(state: RaftState, request: VoteRequest) -> None:
    """Answer whether this replica would vote for the sender; nothing changes."""
    granted = (
        request.term > state.term
        and (request.forced or not state.has_live_leader)
        and state.log.is_covered_by(last_term=request.last_term, last_index=request.last_index)
    )
    _respond(state, request, granted=granted)


def answer_vote(state: RaftState, request: VoteRequest) -> None:
    """Vote at most once per term, and only for a candidate whose log lacks nothing of this one."""
    if request.term == state.term:
        may_vote = state.hard_state.voted_for in (None, request.source) and state.leader is None
        granted = may_vote and state.log.is_covered_by(last_term=request.last_term, last_index=request.last_index)
        if granted and state.hard_state.voted_for is None:
            state.vote_for(request.source)
        if granted:
            state.set_election_deadline()
    else:
        granted = False
    _respond(state, request, granted=granted)


def _respond(state: RaftState, request: VoteRequest, *, granted: bool) -> None:
    response = VoteResponse(
        source=state.me,
        to=request.source,
        term=request.term if granted else state.term,
        granted=granted,
        pre_vote=request.pre_vote,
    )
    state.out.send_after_sync(response)


ELECTION_EVENTS = {True: RoleEvent.PRE_VOTES_WON, False: RoleEvent.VOTES_WON}
"""The event of a won election, by whether it requested pre-votes."""
