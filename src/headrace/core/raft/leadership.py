"""One term of leadership: replication, commits, and the requests that only a leader serves.

The object lives as long as the leadership; `close` refuses pending requests.
"""

from headrace.core.coordination.machine import Ticket
from headrace.core.raft.effects import Outcome, RequestRefusal, RequestRefused, Transferred
from headrace.core.raft.entries import EntryKind, LogEntry
from headrace.core.raft.events import AddVoter, Propose, Read, RemoveVoter, TransferLeadership
from headrace.core.raft.ids import Index, ReplicaKey, Voters, voter_set
from headrace.core.raft.membership import addition_refusal, change_refusal, removal_refusal
from headrace.core.raft.messages import AppendResponse, ElectionRequest
from headrace.core.raft.progress import Progress
from headrace.core.raft.promotion import HostOf, MayPromote, VoterChange, next_voter_change
from headrace.core.raft.proposals import PendingProposals
from headrace.core.raft.reads import PendingReads
from headrace.core.raft.replication import Replication
from headrace.core.raft.state import RaftState
from headrace.core.raft.transfer import Transfer, furthest_voter

NEVER_DUE_MS = float("inf")


class Leadership:
    __slots__ = (
        "_heartbeat_ms",
        "_proposals",
        "_quorum_check_ms",
        "_reads",
        "_state",
        "_transfer",
        "peers",
        "term_start",
    )

    def __init__(self, state: RaftState) -> None:
        self._state = state
        self.term_start = Index(state.log.last_index + 1)
        """The index of the first entry of this term."""
        self._proposals = PendingProposals()
        self._reads = PendingReads()
        self._transfer: Transfer | None = None
        self.peers = Replication(state, self._reads)
        self.peers.follow_voters()
        self._heartbeat_ms = state.now_ms + state.settings.heartbeat_ms
        self._quorum_check_ms = state.now_ms + state.settings.election_timeout_ms
        self._append_voters(state.voters)

    # Time

    @property
    def deadline_ms(self) -> float:
        """Return when something is due; a leader without other replicas has nothing to send and no quorum to lose."""
        if not self.peers.progress:
            return NEVER_DUE_MS
        return min(self._heartbeat_ms, self._quorum_check_ms, *([self._transfer.deadline_ms] if self._transfer else ()))

    def tick(self) -> bool:
        """Do what is due; return False if the quorum is lost."""
        state = self._state
        if self._transfer is not None and state.now_ms >= self._transfer.deadline_ms:
            self._refuse(self._transfer.ticket, RequestRefusal.TRANSFER_TIMED_OUT)
            self._transfer = None
        if state.now_ms >= self._quorum_check_ms:
            self._quorum_check_ms = state.now_ms + state.settings.election_timeout_ms
            if not self.peers.has_live_quorum():
                return False
        if state.now_ms >= self._heartbeat_ms:
            self._heartbeat_ms = state.now_ms + state.settings.heartbeat_ms
            if self._reads.needs_round:
                self._reads.begin_round()
            self.peers.heartbeat()
        return True

    # Responses

    def receive(self, response: AppendResponse) -> None:
        if self.peers.receive(response):
            self._confirm_reads()
            self.advance()

    def advance(self) -> None:
        """Commit entries that a majority has synced, and continue the requests that waited for them."""
        state = self._state
        committed = self.peers.majority_match()
        if committed > state.commit_index and self._may_commit(committed):
            state.commit(committed)
            self._release_held_reads()
            self.peers.replicate(with_commit=True)
        self._continue_transfer()

    def _may_commit(self, index: Index) -> bool:
        """Count only entries of this term; older ones are committed with them (figure 8 of the Raft paper)."""
        return self._state.log.term_at(index) == self._state.term

    @property
    def is_removed(self) -> bool:
        """Return whether a committed and applied voter set excludes this leader."""
        state = self._state
        return state.me not in state.voters and state.applied_index >= state.log.voters_index

    # Proposals and reads

    @property
    def is_committed(self) -> bool:
        """Return whether the first entry of this term is committed and applied: the state lacks nothing older."""
        return self._state.applied_index >= self.term_start

    def proposal_refusal(self, payloads: tuple[bytes, ...]) -> RequestRefusal | None:
        """Return the reason why these payloads would be refused now, or None."""
        state = self._state
        if self._transfer is not None:
            return RequestRefusal.TRANSFER_IN_PROGRESS
        if state.out.is_full:
            return RequestRefusal.OVERLOADED
        return self._proposals.refusal(payloads, uncommitted_entries=state.log.last_index - state.commit_index)

    def propose(self, event: Propose) -> None:
        state = self._state
        refusal = self.proposal_refusal(event.payloads)
        if refusal is not None:
            self._refuse(event.ticket, refusal)
            return
        for payload in event.payloads:
            state.append(LogEntry(term=state.term, index=Index(state.log.last_index + 1), payload=payload))
        size = sum(map(len, event.payloads))
        self._proposals.add(event.ticket, last_index=state.log.last_index, size=size)
        self.peers.replicate()

    def read(self, event: Read) -> None:
        if self._reads.is_full:
            self._refuse(event.ticket, RequestRefusal.OVERLOADED)
        elif self._state.commit_index < self.term_start:
            self._reads.hold(event.ticket)
        elif self._reads.add(event.ticket, self._state.commit_index):
            self._begin_round()

    def _release_held_reads(self) -> None:
        if self._state.commit_index < self.term_start:
            return
        begin = [self._reads.add(ticket, self._state.commit_index) for ticket in self._reads.take_held()]
        if any(begin):
            self._begin_round()

    def _begin_round(self) -> None:
        self._reads.begin_round()
        self.peers.heartbeat()
        self._confirm_reads()

    def _confirm_reads(self) -> None:
        self._reads.confirm(self.peers.majority_round())
        if self._reads.needs_round and self._reads.round == self._reads.confirmed_round:
            self._begin_round()

    def take_outcomes(self) -> list[Outcome]:
        """Return responses that the applied entries allow."""
        applied = self._state.applied_index
        return [*self._proposals.take_committed(applied), *self._reads.take_allowed(applied)]

    # Voters and observers

    def next_voter_change(self, *, target: int, host_of: HostOf, may_promote: MayPromote) -> VoterChange | None:
        """Return the change of the voter set that is due and would not be refused now."""
        if self._transfer is not None or change_refusal(self._state, term_start=self.term_start) is not None:
            return None
        return next_voter_change(
            self._state, self.peers.progress, target=target, host_of=host_of, may_promote=may_promote
        )

    def add_voter(self, event: AddVoter) -> None:
        state = self._state
        refusal = change_refusal(state, term_start=self.term_start)
        refusal = refusal or addition_refusal(state, event.voter, self.peers.progress.get(event.voter))
        self._change_voters(event.ticket, voter_set(*state.voters, event.voter), refusal)

    def remove_voter(self, event: RemoveVoter) -> None:
        state = self._state
        refusal = change_refusal(state, term_start=self.term_start) or removal_refusal(state, event.voter)
        self._change_voters(event.ticket, voter_set(*(each for each in state.voters if each != event.voter)), refusal)

    def _change_voters(self, ticket: Ticket, voters: Voters, refusal: RequestRefusal | None) -> None:
        if self._transfer is not None:
            refusal = RequestRefusal.TRANSFER_IN_PROGRESS
        if refusal is not None:
            self._refuse(ticket, refusal)
            return
        self._append_voters(voters)
        self._proposals.add(ticket, last_index=self._state.log.last_index, size=0)

    def _append_voters(self, voters: Voters) -> None:
        state = self._state
        entry = LogEntry(term=state.term, index=Index(state.log.last_index + 1), kind=EntryKind.VOTERS, voters=voters)
        state.append(entry)
        self.peers.replicate(with_commit=True)

    # Ending

    def transfer(self, event: TransferLeadership) -> None:
        state = self._state
        to = event.to if event.to is not None else furthest_voter(state.voters, self.peers.progress)
        if self._transfer is not None:
            self._refuse(event.ticket, RequestRefusal.TRANSFER_IN_PROGRESS)
        elif to is None or to not in state.voters:
            self._refuse(event.ticket, RequestRefusal.NOT_VOTER)
        elif to == state.me:
            state.out.settle(Transferred(ticket=event.ticket))
        else:
            deadline_ms = state.now_ms + state.settings.election_timeout_ms
            self._transfer = Transfer(ticket=event.ticket, to=to, deadline_ms=deadline_ms)
            self._continue_transfer()

    def _continue_transfer(self) -> None:
        transfer = self._transfer
        if transfer is None or transfer.is_requested:
            return
        if self._is_caught_up(self.peers.progress.get(transfer.to)):
            transfer.is_requested = True
            self.ask_for_election(transfer.to)

    def _is_caught_up(self, progress: Progress | None) -> bool:
        return progress is not None and progress.match_index == self._state.log.last_index

    def ask_for_election(self, voter: ReplicaKey | None = None) -> None:
        """Ask a voter to start an election without waiting for its timeout."""
        state = self._state
        to = voter or furthest_voter(state.voters, self.peers.progress)
        if to is not None:
            state.out.send(ElectionRequest(source=state.me, to=to, term=state.term))

    def close(self, *, by_higher_term: bool) -> None:
        """Answer every pending request of this leadership, which is over."""
        if self._transfer is not None:
            if by_higher_term and self._transfer.is_requested:
                self._state.out.settle(Transferred(ticket=self._transfer.ticket))
            else:
                self._refuse(self._transfer.ticket, RequestRefusal.LEADERSHIP_LOST)
        for ticket in self._proposals.drain():
            self._refuse(ticket, RequestRefusal.LEADERSHIP_LOST)
        for ticket in self._reads.drain():
            self._refuse(ticket, RequestRefusal.NOT_LEADER)

    def _refuse(self, ticket: Ticket, reason: RequestRefusal) -> None:
        self._state.out.settle(RequestRefused(ticket=ticket, reason=reason))
