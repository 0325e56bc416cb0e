"""One run of machines without brokers: Raft replicas, their clients and faults, then healing and progress."""

from typing import ClassVar

from headrace.sim.checkers.violation import Violation
from headrace.sim.entropy import SeededEntropy
from headrace.sim.facts import ScenarioFacts
from headrace.sim.machines.member_group import MemberGroup
from headrace.sim.machines.raft_clients import RaftClients
from headrace.sim.machines.raft_cluster import READ_ANSWERED, RaftCluster
from headrace.sim.machines.raft_nemesis import MET, RaftNemesis
from headrace.sim.trace import Trace

PROGRESS_MS_MAX = 30_000
EVENTS_MAX = 200_000
SPARE_NODES = 2
"""Nodes that start as observers."""

PROGRESS = "once everything is healed, the quorum makes progress within 30 s"


class MachinesScenario(ScenarioFacts):
    name: ClassVar[str] = "machines"
    options: ClassVar[str] = " --level machines --brokers {brokers}"
    common_faults: ClassVar[tuple[str, ...]] = MET
    brokers: ClassVar[int] = 3
    minutes: ClassVar[float] = 0.07
    progress_unit: ClassVar[str] = "changes acknowledged"
    progress_min: ClassVar[int] = 1


class RaftRun:
    def __init__(self, seed: int, *, voters: int, duration_ms: float) -> None:
        restless = SeededEntropy(seed).branch("operator").one_in(2)
        founders = voters + restless  # changes of even sets are the dangerous ones: two majorities of three may differ
        self.cluster = RaftCluster(seed, nodes=voters + SPARE_NODES, voters=founders)
        entropy = self.cluster.entropy
        self._clients = RaftClients(self.cluster, entropy.branch("clients"), voters=founders, restless=restless)
        self._nemesis = RaftNemesis(self.cluster, entropy.branch("nemesis"), end_ms=duration_ms, is_restless=restless)
        has_members = entropy.branch("members").one_in(2)
        self._group = MemberGroup(self.cluster, entropy.branch("group")) if has_members else None
        """Brokers and the controller on the replicas, in half of the runs."""
        self._duration_ms = duration_ms
        self.steps = 0

    @property
    def trace(self) -> Trace:
        return self.cluster.trace

    @property
    def progress(self) -> int:
        return self.cluster.acknowledged

    @property
    def restarts(self) -> int:
        return sum(replica.boots for replica in self.cluster.replicas)

    def must_meet(self) -> tuple[str, ...]:
        return (READ_ANSWERED,)

    def carry_out(self) -> None:
        while self.cluster.agenda.now_ms < self._duration_ms:
            self._step()
        self._nemesis.heal()
        self._clients.restless = False
        self._await_progress()

    def _step(self) -> None:
        self.steps += 1
        if self.steps > EVENTS_MAX:
            raise Violation(PROGRESS, f"{EVENTS_MAX} events did not suffice")
        self.cluster.agenda.run_next()

    def _await_progress(self) -> None:
        """Wait until proposals and reads are answered, and every replica has applied one of the new commands."""
        cluster = self.cluster
        deadline_ms = cluster.agenda.now_ms + PROGRESS_MS_MAX
        acknowledged, reads, index = cluster.acknowledged, cluster.reads, len(cluster.invariants.committed)
        while not (
            cluster.acknowledged > acknowledged
            and cluster.reads > reads
            and self._everyone_has(index + 1)
            and (self._group is None or self._group.is_healthy)
        ):
            if cluster.agenda.now_ms >= deadline_ms:
                raise Violation(PROGRESS, self._standing())
            self._step()
        if self._group is not None:
            self._group.check_images()

    def _everyone_has(self, index: int) -> bool:
        machines = [replica.machine for replica in self.cluster.replicas]
        return all(machine is not None and machine.state.applied_index >= index for machine in machines)

    def _standing(self) -> str:
        states = (replica.machine.state for replica in self.cluster.replicas if replica.machine is not None)
        return "; ".join(
            f"{state.me} {state.role} term {state.term} applied {state.applied_index} commit {state.commit_index}"
            for state in states
        )
