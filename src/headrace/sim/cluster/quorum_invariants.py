"""Invariants of the metadata quorum of a cluster, checked after every step."""

from headrace.core.raft.entries import LogEntry
from headrace.core.raft.ids import Index, ReplicaKey, Term
from headrace.core.raft.machine import RaftMachine
from headrace.core.raft.roles import Role
from headrace.sim.checkers.violation import require
from headrace.sim.machines.invariants import LEADER_COMPLETE, ONE_LEADER, PREFIXES, VOTERS_ONLY
from headrace.sim.node import VirtualNode

ENTRIES_MAX = 1_000_000
BYTES_MAX = 1 << 62


class QuorumInvariants:
    """The observed logs and leaders of all nodes of a run."""

    def __init__(self) -> None:
        self._leaders: dict[Term, tuple[ReplicaKey, int]] = {}
        """The leader of each term, and the number of its start."""
        self._committed: list[LogEntry] = []
        self._commit_terms: list[Term] = []
        """The term of the node that first showed each committed entry."""
        self._applied: dict[str, tuple[int, Index]] = {}
        """The number of the last start of each node, and the entries checked in it."""

    def check(self, nodes: list[VirtualNode]) -> None:
        machines = {virtual.machine.name: virtual.node.quorum._machine for virtual in nodes if virtual.node is not None}
        for virtual in nodes:
            machine = machines.get(virtual.machine.name)
            if machine is not None:
                self._check_leader(virtual, machine)
                self._check_applied(virtual, machine)
                _check_vote(machine, list(machines.values()))

    def _check_leader(self, virtual: VirtualNode, machine: RaftMachine) -> None:
        state = machine.state
        if state.role is not Role.LEADER:
            return
        leader = (state.me, virtual.machine.boots)
        known = self._leaders.get(state.term)
        if known is None:
            self._leaders[state.term] = leader
            for entry, term in zip(self._committed, self._commit_terms, strict=True):
                if term < state.term:
                    _require_held(machine, entry)
        else:
            require(known == leader, ONE_LEADER, f"term {state.term} has {known[0]} and {state.me}")

    def _check_applied(self, virtual: VirtualNode, machine: RaftMachine) -> None:
        state, boots = machine.state, virtual.machine.boots
        checked_boots, checked = self._applied.get(virtual.machine.name, (0, Index(0)))
        if checked_boots != boots or checked < state.log.snapshot.index:
            checked = max(state.log.snapshot.index, Index(0))
        if state.applied_index > checked:
            first = Index(max(checked, state.log.snapshot.index) + 1)
            for entry in state.log.slice(first, entries_max=ENTRIES_MAX, bytes_max=BYTES_MAX):
                if entry.index <= state.applied_index:
                    self._applied_entry(virtual, machine, entry)
        self._applied[virtual.machine.name] = boots, state.applied_index

    def _applied_entry(self, virtual: VirtualNode, machine: RaftMachine, entry: LogEntry) -> None:
        name = virtual.machine.name
        if entry.index > len(self._committed):
            require(entry.index == len(self._committed) + 1, PREFIXES, f"{name} skips to entry {entry.index}")
            self._committed.append(entry)
            self._commit_terms.append(machine.state.term)
        known = self._committed[entry.index - 1]
        require(known == entry, PREFIXES, f"{name} applies {entry} where {known} was applied")


def _require_held(machine: RaftMachine, entry: LogEntry) -> None:
    state = machine.state
    held = entry.index <= state.log.snapshot.index or state.log.matches(term=entry.term, index=entry.index)
    require(held, LEADER_COMPLETE, f"leader {state.me} of term {state.term} lacks entry {entry.index} of {entry.term}")


def _check_vote(machine: RaftMachine, machines: list[RaftMachine]) -> None:
    """Check a vote for another node: the voter is in the voter set of that candidate, or in its own."""
    state = machine.state
    candidate = state.hard_state.voted_for
    if candidate is None or candidate == state.me or state.me in state.voters:
        return
    for other in machines:
        if other.state.me == candidate and other.state.term == state.term and other.state.role is Role.CANDIDATE:
            require(state.me in other.state.voters, VOTERS_ONLY, f"{state.me} votes for {candidate}")
