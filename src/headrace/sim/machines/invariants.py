"""Invariants of Raft, checked after every event of a run."""

from collections.abc import Callable

from headrace.core.raft.effects import Effects
from headrace.core.raft.entries import EntryKind, LogEntry, StateSnapshot
from headrace.core.raft.ids import Index, ReplicaKey, Term
from headrace.core.raft.machine import RaftMachine
from headrace.core.raft.messages import Message, VoteRequest, VoteResponse
from headrace.core.raft.roles import Role
from headrace.sim.checkers.violation import require
from headrace.sim.machines.replica import SimulatedReplica

ONE_LEADER = "at most one leader per term"
LEADER_COMPLETE = "a committed entry is in the log of every later leader"
PREFIXES = "applied sequences are prefixes of one another"
ONE_VOTE = "a replica votes for one candidate per term"
VOTERS_ONLY = "a directory id outside the voter set never votes"
READS = "a read sees everything that was acknowledged before it"
ACKNOWLEDGED = "an acknowledged proposal is committed"


class RaftInvariants:
    """The observed state of all replicas of a run."""

    def __init__(self) -> None:
        self.on_elected: list[Callable[[SimulatedReplica], None]] = []
        """Called with every new leader."""
        self._leaders: dict[Term, tuple[ReplicaKey, int]] = {}
        """The leader of each term, and its boot number."""
        self._leading: dict[int, RaftMachine] = {}
        """Machines that lead now, by node id."""
        self.committed: list[LogEntry] = []
        self._commit_terms: list[Term] = []
        """The term of the replica that first showed each committed entry."""
        self._commands_at: list[int] = []
        """The number of commands up to each committed entry."""
        self._commands: list[bytes] = []
        self._votes: dict[tuple[ReplicaKey, Term], ReplicaKey] = {}
        self._asked: dict[tuple[ReplicaKey, Term], list[ReplicaKey]] = {}
        """The voters that each candidate requested votes from."""

    # Leaders

    def stepped(self, replica: SimulatedReplica, effects: Effects) -> None:
        machine = replica.machine
        assert machine is not None
        if machine.state.role is not Role.LEADER:
            self._leading.pop(replica.node_id, None)
        elif self._leading.get(replica.node_id) is not machine or machine.state.term not in self._leaders:
            self._leading[replica.node_id] = machine
            self._elected(replica, machine)

    def _elected(self, replica: SimulatedReplica, machine: RaftMachine) -> None:
        term = machine.state.term
        leader = (replica.key, replica.boots)
        known = self._leaders.setdefault(term, leader)
        require(known == leader, ONE_LEADER, f"term {term} has {known[0]} and {replica.key}")
        for entry, commit_term in zip(self.committed, self._commit_terms, strict=True):
            if commit_term < term:
                self._require_held(machine, entry)
        for call in self.on_elected:
            call(replica)

    def _require_held(self, machine: RaftMachine, entry: LogEntry) -> None:
        state = machine.state
        held = entry.index <= state.log.snapshot.index or state.log.matches(term=entry.term, index=entry.index)
        require(
            held, LEADER_COMPLETE, f"leader {state.me} of term {state.term} lacks entry {entry.index} of {entry.term}"
        )

    # Votes

    def sent(self, replica: SimulatedReplica, message: Message) -> None:
        if isinstance(message, VoteRequest) and not message.pre_vote:
            self._asked.setdefault((message.source, message.term), []).append(message.to)
        if isinstance(message, VoteResponse) and message.granted and not message.pre_vote:
            asked = self._asked.get((message.to, message.term), [])
            require(
                message.source in asked,
                VOTERS_ONLY,
                f"{message.source} votes for {message.to} in term {message.term}",
            )
            voted = self._votes.setdefault((message.source, message.term), message.to)
            require(
                voted == message.to,
                ONE_VOTE,
                f"{message.source} votes for {voted} and {message.to} in term {message.term}",
            )

    # State

    def applied(self, replica: SimulatedReplica, entry: LogEntry) -> None:
        if entry.index > len(self.committed):
            self._commit(replica, entry)
        known = self.committed[entry.index - 1]
        require(known == entry, PREFIXES, f"{replica.key} applies {entry} where {known} was applied")
        require(
            len(replica.applied) == self._commands_at[entry.index - 1],
            PREFIXES,
            f"{replica.key} skipped or repeated an entry at or below {entry.index}",
        )

    def _commit(self, replica: SimulatedReplica, entry: LogEntry) -> None:
        require(entry.index == len(self.committed) + 1, PREFIXES, f"{replica.key} skips to entry {entry.index}")
        assert replica.machine is not None
        term = replica.machine.state.term
        self.committed.append(entry)
        self._commit_terms.append(term)
        if entry.kind is EntryKind.COMMAND:
            self._commands.append(entry.payload)
        self._commands_at.append(len(self._commands))
        for machine in self._leading.values():
            if machine.state.term > term:
                self._require_held(machine, entry)

    def restored(self, replica: SimulatedReplica, snapshot: StateSnapshot) -> None:
        require(snapshot.index <= len(self.committed), PREFIXES, f"{replica.key} restores uncommitted state")
        expected = self._commands[: self._commands_at[snapshot.index - 1]]
        require(replica.applied == expected, PREFIXES, f"{replica.key} restores another state at {snapshot.index}")

    def ended(self, replica: SimulatedReplica) -> None:
        """The process of a replica has ended."""
        self._leading.pop(replica.node_id, None)

    # Clients

    def acknowledged(self, payload: bytes, index: Index) -> None:
        held = index <= len(self.committed) and self.committed[index - 1].payload == payload
        require(held, ACKNOWLEDGED, f"{payload!r} was acknowledged at {index}")

    def read(self, index: Index, *, expected_index: Index) -> None:
        require(
            index >= expected_index, READS, f"a read saw entry {index}, but {expected_index} was acknowledged before"
        )
