"""The Raft machine of one replica: takes one event at a time and returns the effects for its host."""

from headrace.core.coordination.machine import Ticket
from headrace.core.raft.ballot import ELECTION_EVENTS, Ballot, answer_pre_vote, answer_vote, is_meant_for
from headrace.core.raft.effects import Effects, Outcome, RequestRefusal, RequestRefused
from headrace.core.raft.entries import Stored
from headrace.core.raft.events import (
    AddVoter,
    DeadlinePassed,
    Event,
    Propose,
    Read,
    Received,
    RemoveVoter,
    SnapshotChunkRead,
    SnapshotTaken,
    Synced,
    TransferLeadership,
)
from headrace.core.raft.follower import LogCopy
from headrace.core.raft.ids import ANY_DIRECTORY, ReplicaKey, Term
from headrace.core.raft.leadership import Leadership
from headrace.core.raft.messages import (
    AppendRequest,
    AppendResponse,
    ElectionRequest,
    JoinRequest,
    JoinResponse,
    Message,
    SnapshotRequest,
    SnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from headrace.core.raft.roles import Role, RoleEvent
from headrace.core.raft.settings import RaftSettings
from headrace.core.raft.state import Draw, RaftState
from headrace.model.ids import NodeId


class RaftMachine:
    """`peers` are the nodes that an observer asks for the leader while its log has no voters.

    With `may_vote` a leader may promote this replica to a voter.
    """

    __slots__ = ("_ballot", "_copy", "_joins_sent", "_leadership", "_may_vote", "peers", "state")

    def __init__(
        self,
        *,
        me: ReplicaKey,
        stored: Stored,
        draw: Draw,
        now_ms: float,
        settings: RaftSettings | None = None,
        peers: tuple[NodeId, ...] = (),
        may_vote: bool = False,
    ) -> None:
        self.state = RaftState(me=me, stored=stored, settings=settings or RaftSettings(), draw=draw, now_ms=now_ms)
        self.peers = peers
        self._may_vote = may_vote
        self._copy = LogCopy(self.state)
        self._ballot: Ballot | None = None
        self._leadership: Leadership | None = None
        self._joins_sent = 0

    @property
    def leadership(self) -> Leadership | None:
        """Return the state of this leader, for hosts that describe the quorum; None on other replicas."""
        return self._leadership

    def next_deadline_ms(self) -> float:
        """Return when a DeadlinePassed has something to do."""
        if self.state.has_unapplied:
            return self.state.now_ms
        return self._leadership.deadline_ms if self._leadership else self.state.election_deadline_ms

    def step(self, event: Event, now_ms: float) -> Effects:
        state = self.state
        state.now_ms = max(state.now_ms, now_ms)
        match event:
            case Received():
                self._receive(event.message)
            case DeadlinePassed():
                self._tick()
            case Synced():
                self._synced(event)
            case SnapshotTaken():
                if state.log.snapshot.index < event.index <= state.applied_index:
                    state.log.compact(event.index, entries_kept_max=state.settings.entries_kept_max)
            case SnapshotChunkRead():
                if self._leadership is not None:
                    self._leadership.peers.chunk_read(event)
            case _:
                self._serve(event)
        return self._take_effects()

    def _take_effects(self) -> Effects:
        state = self.state
        committed = state.take_committed()
        outcomes: list[Outcome] = self._leadership.take_outcomes() if self._leadership else []
        if self._leadership is not None and self._leadership.is_removed:
            self._leadership.ask_for_election()
            self._step_down(RoleEvent.REMOVED)
        return state.out.take(state.log, committed, outcomes)

    # Requests of the host

    def _serve(self, event: Propose | Read | AddVoter | RemoveVoter | TransferLeadership) -> None:
        leadership = self._leadership
        if leadership is None:
            self._refuse(event.ticket)
            return
        match event:
            case Propose():
                leadership.propose(event)
            case Read():
                leadership.read(event)
            case AddVoter():
                leadership.add_voter(event)
            case RemoveVoter():
                leadership.remove_voter(event)
            case TransferLeadership():
                leadership.transfer(event)

    def _refuse(self, ticket: Ticket) -> None:
        leader = self.state.leader.node_id if self.state.leader else None
        self.state.out.settle(RequestRefused(ticket=ticket, reason=RequestRefusal.NOT_LEADER, leader=leader))

    # Time and disk

    def _tick(self) -> None:
        state = self.state
        if self._leadership is not None:
            if not self._leadership.tick():
                self._step_down(RoleEvent.QUORUM_LOST)
        elif state.now_ms >= state.election_deadline_ms:
            state.leader = None
            if state.role is Role.OBSERVER:
                state.set_join_deadline()
                self._join()
            elif state.out.is_full or (self._ballot is not None and self._ballot.awaits_sync):
                state.set_election_deadline()  # the disk is slow: a new term would only add pending writes
            else:
                self._campaign(RoleEvent.ELECTION_TIMEOUT)
                if state.role is Role.PROSPECTIVE:
                    self._join()  # it may have been removed, and know none of the current voters

    def _synced(self, event: Synced) -> None:
        self.state.out.synced(event.number, self.state.log)
        if self._ballot is not None:
            self._ballot.synced(event.number)
            self._count_votes()
        elif self._leadership is not None:
            self._leadership.advance()

    def _join(self) -> None:
        """Ask the next node that may know the leader."""
        state = self.state
        nodes = sorted({*self.peers, *(voter.node_id for voter in state.voters)} - {state.me.node_id})
        if nodes:
            self._ask_to_join(nodes[self._joins_sent % len(nodes)])
            self._joins_sent += 1

    def _ask_to_join(self, node: NodeId) -> None:
        to = ReplicaKey(node, ANY_DIRECTORY)
        self.state.out.send(JoinRequest(source=self.state.me, to=to, may_vote=self._may_vote))

    # Roles

    def _campaign(self, event: RoleEvent) -> None:
        self.state.change_role(event)
        pre_vote = self.state.role is Role.PROSPECTIVE
        self._ballot = Ballot(self.state, pre_vote=pre_vote, forced=event is RoleEvent.ELECTION_REQUESTED)
        self._count_votes()

    def _count_votes(self) -> None:
        ballot = self._ballot
        if ballot is None or not ballot.is_won:
            return
        if ballot.is_pre_vote:
            self._campaign(ELECTION_EVENTS[True])
        else:
            self._lead()

    def _lead(self) -> None:
        state = self.state
        state.change_role(ELECTION_EVENTS[False])
        self._ballot = None
        state.leader = state.me
        self._leadership = Leadership(state)

    def _step_down(self, event: RoleEvent) -> None:
        """Become a follower, or an observer if the newest voter set requires it."""
        state = self.state
        self._ballot = None
        if state.role in (Role.PROSPECTIVE, Role.CANDIDATE, Role.LEADER):
            state.change_role(event)
        if self._leadership is not None:
            self._leadership.close(by_higher_term=event is RoleEvent.HIGHER_TERM)
            self._leadership = None
            state.leader = None
            state.set_election_deadline()
        state.follow_voter_set()

    def _enter_term(self, term: Term) -> None:
        self.state.enter_term(term)
        self._step_down(RoleEvent.HIGHER_TERM)

    # Messages

    def _receive(self, message: Message) -> None:
        if isinstance(message, JoinRequest):
            self._receive_join(message)
        elif not is_meant_for(message.to, self.state.me):
            return
        elif isinstance(message, JoinResponse):
            self._receive_leader_name(message)
        elif isinstance(message, VoteRequest):
            self._receive_vote_request(message)
        elif isinstance(message, VoteResponse):
            self._receive_vote(message)
        elif isinstance(message, AppendRequest | SnapshotRequest):
            self._receive_from_leader(message)
        else:
            self._receive_in_term(message)

    def _receive_join(self, request: JoinRequest) -> None:
        state = self.state
        if request.to.node_id != state.me.node_id:
            return
        if self._leadership is not None:
            self._leadership.peers.observe(request.source, may_vote=request.may_vote)
        else:
            leader = state.leader.node_id if state.leader else None
            state.out.send(JoinResponse(source=state.me, to=request.source, leader=leader))

    def _receive_leader_name(self, response: JoinResponse) -> None:
        is_searching = self.state.role in (Role.OBSERVER, Role.PROSPECTIVE) and self.state.leader is None
        if is_searching and response.leader is not None:
            self._ask_to_join(response.leader)

    def _receive_vote_request(self, request: VoteRequest) -> None:
        state = self.state
        if state.out.is_full:
            return
        if self._leadership is not None and request.source not in state.voters:
            self._leadership.peers.observe(request.source)  # it does not know yet that it was removed
        if request.pre_vote:
            answer_pre_vote(state, request)
            return
        if state.has_live_leader and not request.forced and request.term > state.term:
            return  # a leader with a live quorum is not disturbed; the candidate learns of it by a heartbeat
        if request.term > state.term:
            self._enter_term(request.term)
        answer_vote(state, request)

    def _receive_vote(self, response: VoteResponse) -> None:
        if not response.granted and response.term > self.state.term:
            self._enter_term(response.term)
        elif self._ballot is not None:
            self._ballot.receive(response)
            self._count_votes()

    def _receive_from_leader(self, request: AppendRequest | SnapshotRequest) -> None:
        state = self.state
        if state.out.is_full:
            return
        if request.term < state.term:
            self._copy.refuse_old_leader(request)
            return
        if request.term > state.term:
            self._enter_term(request.term)
        assert state.role is not Role.LEADER, f"term {state.term} has two leaders, {state.me} and {request.source}"
        self._step_down(RoleEvent.LEADER_FOUND)
        state.hear_leader(request.source)
        if isinstance(request, AppendRequest):
            self._copy.append(request)
        else:
            self._copy.take_chunk(request)

    def _receive_in_term(self, message: AppendResponse | SnapshotResponse | ElectionRequest) -> None:
        if message.term > self.state.term:
            self._enter_term(message.term)
        if message.term < self.state.term:
            return
        if isinstance(message, ElectionRequest):
            if self.state.role in (Role.FOLLOWER, Role.PROSPECTIVE):
                self._campaign(RoleEvent.ELECTION_REQUESTED)
        elif self._leadership is not None:
            if isinstance(message, AppendResponse):
                self._leadership.receive(message)
            else:
                self._leadership.peers.receive_position(message)
