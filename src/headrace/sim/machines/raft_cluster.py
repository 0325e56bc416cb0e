"""A virtual cluster of Raft replicas and the clients that use it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from headrace.core.raft.effects import Committed, Outcome, ReadAllowed
from headrace.core.raft.entries import StateSnapshot, Stored
from headrace.core.raft.events import AddVoter, Propose, Read, RemoveVoter, TransferLeadership
from headrace.core.raft.ids import NO_INDEX, DirectoryId, Index, ReplicaKey, voter_set
from headrace.core.raft.messages import Message
from headrace.core.raft.roles import Role
from headrace.model.ids import NodeId
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.agenda import Agenda
from headrace.sim.machines.invariants import RaftInvariants
from headrace.sim.machines.links import LinkNetwork
from headrace.sim.machines.replica import SimulatedReplica
from headrace.sim.trace import Trace

READ_ANSWERED = "read answered"
CHANGES_OF_VOTERS = "ad"
"""First letters of the tickets of changes of voters."""


class _AskedRead(NamedTuple):
    node_id: int
    known_index: Index
    known: frozenset[str]


class RaftCluster:
    def __init__(self, seed: int, *, nodes: int, voters: int) -> None:
        self.entropy = SeededEntropy(seed)
        self.trace = Trace()
        self.agenda = Agenda()
        self.links = LinkNetwork(self.agenda, self.entropy.branch("links"), self.trace)
        self.invariants = RaftInvariants()
        self.founders = voters
        founders = voter_set(*(ReplicaKey(NodeId(node), DirectoryId("a")) for node in range(voters)))
        self.replicas = [self._replica(node, nodes, founders) for node in range(nodes)]
        self.acknowledged = 0
        self.reads = 0
        self._known_index = NO_INDEX
        """The highest index that an acknowledged proposal or a read has shown to a client."""
        self._asked_reads: dict[str, _AskedRead] = {}
        self.known: Callable[[], frozenset[str]] = frozenset
        """Returns the state that a read which begins now must show."""
        self.on_read: Callable[[int, frozenset[str]], None] = lambda node, known: None
        """Called with the node that allows a read, and the state that was known when it began."""
        self.on_crash: Callable[[int], None] = lambda node: None
        """Called with the node of a process that has ended."""
        self._proposed: dict[str, bytes] = {}
        self._tickets = 0
        for replica in self.replicas:
            replica.start()

    def _replica(self, node: int, nodes: int, founders: tuple[ReplicaKey, ...]) -> SimulatedReplica:
        founding = founders if any(key.node_id == node for key in founders) else ()
        replica = SimulatedReplica(
            node_id=node,
            stored=Stored(snapshot=StateSnapshot(voters=founding)),
            peers=tuple(range(nodes)),
            agenda=self.agenda,
            entropy=self.entropy.branch(f"replica {node}"),
            trace=self.trace,
            transmit=self._transmit,
            observer=self.invariants,
        )
        replica.on_outcome = self._settle
        return replica

    def _transmit(self, message: Message) -> None:
        self.links.send(message.source.node_id, message.to.node_id, partial(self._deliver, message))

    def _deliver(self, message: Message) -> None:
        self.replicas[message.to.node_id].receive(message)

    # Leaders

    def leaders(self) -> list[SimulatedReplica]:
        """Return the replicas that lead, or believe so; the newest term comes last."""
        found = [each for each in self.replicas if each.machine is not None and each.machine.state.role is Role.LEADER]
        return sorted(found, key=lambda each: each.machine.state.term if each.machine else 0)

    # Clients

    def _ticket(self, kind: str) -> str:
        self._tickets += 1
        return f"{kind}{self._tickets}"

    def propose(self, replica: SimulatedReplica) -> str:
        ticket = self._ticket("p")
        self._proposed[ticket] = ticket.encode()
        replica.submit(Propose(ticket=ticket, payloads=(ticket.encode(),)))
        return ticket

    def read(self, replica: SimulatedReplica) -> None:
        ticket = self._ticket("r")
        self._asked_reads[ticket] = _AskedRead(replica.node_id, self._known_index, self.known())
        replica.submit(Read(ticket=ticket))

    def add_voter(self, replica: SimulatedReplica, voter: ReplicaKey) -> None:
        replica.submit(AddVoter(ticket=self._ticket("a"), voter=voter))

    def remove_voter(self, replica: SimulatedReplica, voter: ReplicaKey) -> None:
        replica.submit(RemoveVoter(ticket=self._ticket("d"), voter=voter))

    def transfer(self, replica: SimulatedReplica, to: ReplicaKey | None) -> None:
        replica.submit(TransferLeadership(ticket=self._ticket("t"), to=to))

    def _settle(self, outcome: Outcome) -> None:
        ticket = str(outcome.ticket)
        if isinstance(outcome, Committed) and ticket in self._proposed:
            self.acknowledged += 1
            self.invariants.acknowledged(self._proposed[ticket], outcome.index)
            self._known_index = max(self._known_index, outcome.index)
        elif isinstance(outcome, Committed) and ticket[0] in CHANGES_OF_VOTERS:
            self.trace.count_fault("voter set changed")
        elif isinstance(outcome, ReadAllowed):
            self.reads += 1
            self.trace.count_fault(READ_ANSWERED)
            asked = self._asked_reads.pop(ticket)
            self.invariants.read(outcome.index, expected_index=asked.known_index)
            self.on_read(asked.node_id, asked.known)
            self._known_index = max(self._known_index, outcome.index)

    # Faults

    def note(self, text: str) -> None:
        self.trace.record(f"{self.agenda.now_ms:.1f} nemesis: {text}")

    def crash(self, replica: SimulatedReplica, *, down_ms: float) -> None:
        """End the process of a replica, which starts again later."""
        if replica.machine is not None:
            replica.crash()
            self.invariants.ended(replica)
            self.on_crash(replica.node_id)
            self.agenda.add(down_ms, partial(self.start, replica))

    def cut_power(self, entropy: SeededEntropy, *, down_ms_max: int) -> None:
        """Crash all replicas. Leaders return last, so that the others must use only what they have synced."""
        self.trace.count_fault("power lost everywhere")
        leaders = self.leaders()
        for replica in self.replicas:
            late_ms = down_ms_max if replica in leaders else 0
            self.crash(replica, down_ms=late_ms + entropy.below(down_ms_max))

    def wipe(self, replica: SimulatedReplica, *, down_ms: float) -> None:
        """Lose the folder of a replica, whose node starts again with an empty one."""
        self.note(f"wipe {replica.key}")
        replica.wipe()
        self.invariants.ended(replica)
        self.on_crash(replica.node_id)
        self.agenda.add(down_ms, partial(self.start, replica))

    def start(self, replica: SimulatedReplica) -> None:
        if replica.machine is None:
            replica.start()

    def cut(self, is_cut: Callable[[int, int], bool], text: str) -> None:
        """Replace all cuts by those of a rule."""
        self.note(text)
        self.trace.count_fault("links cut")
        self.links.heal()
        nodes = range(len(self.replicas))
        for source in nodes:
            for to in nodes:
                if source != to and is_cut(source, to):
                    self.links.cut(source, to)

    def silence(self, replica: SimulatedReplica, *, but_for: int) -> None:
        """Lose what a replica sends, except to one node."""
        self.note(f"silence {replica.node_id} but for {but_for}")
        for other in self.replicas:
            if other.node_id not in (but_for, replica.node_id):
                self.links.cut(replica.node_id, other.node_id)
