"""One run of Raft machines: from a seed to a trace hash, or to the invariant that was broken."""

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.sim.checkers.violation import Violation
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.raft_clients import RaftClients
from headrace.sim.machines.raft_cluster import RaftCluster
from headrace.sim.machines.raft_nemesis import RaftNemesis

FAULTS_MS = 7_000
PROGRESS_MS_MAX = 30_000
EVENTS_MAX = 200_000
TAIL_LINES = 50
SPARE_NODES = 2
"""Nodes that start as observers."""

NO_CRASH = "no replica fails by itself"
PROGRESS = "once everything is healed, the quorum makes progress within 30 s"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftResult:
    seed: int
    trace_hash: str
    events: int
    acknowledged: int
    reads: int
    met: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    """The invariant that was broken and how, or nothing."""
    tail: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.violation

    @property
    def last_line(self) -> str:
        outcome = f"FAILED invariant: {self.violation}" if self.violation else "ok"
        return f"seed {self.seed} trace {self.trace_hash} {outcome}"


def run_raft_seed(seed: int, *, voters: int = 3, show: Callable[[str], object] | None = None) -> RaftResult:
    """Run one seed; `show` gets every event as it happens."""
    run = RaftRun(seed, voters=voters)
    cluster = run.cluster
    cluster.trace.show = show
    violation = ""
    try:
        run.carry_out()
    except Violation as broken:
        violation = str(broken)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = place.filename.rpartition("/headrace/")[2]
        violation = f"{NO_CRASH}: {type(error).__name__}: {error} in {place.name}, {name}:{place.lineno}"
    return RaftResult(
        seed=seed,
        trace_hash=cluster.trace.hash,
        events=cluster.trace.events,
        acknowledged=cluster.acknowledged,
        reads=cluster.reads,
        met=cluster.trace.met,
        violation=violation,
        tail=tuple(cluster.trace.tail)[-TAIL_LINES:] if violation else (),
    )


class RaftRun:
    def __init__(self, seed: int, *, voters: int) -> None:
        restless = SeededEntropy(seed).branch("operator").one_in(2)
        founders = voters + restless  # changes of even sets are the dangerous ones: two majorities of three may differ
        self.cluster = RaftCluster(seed, nodes=voters + SPARE_NODES, voters=founders)
        entropy = self.cluster.entropy
        self._clients = RaftClients(self.cluster, entropy.branch("clients"), voters=founders, restless=restless)
        self._nemesis = RaftNemesis(self.cluster, entropy.branch("nemesis"), end_ms=FAULTS_MS, is_restless=restless)
        self._voters = voters
        self._events = 0

    def carry_out(self) -> None:
        while self.cluster.agenda.now_ms < FAULTS_MS:
            self._step()
        self._nemesis.heal()
        self._clients.restless = False
        self._await_progress()

    def _step(self) -> None:
        self._events += 1
        if self._events > EVENTS_MAX:
            raise Violation(PROGRESS, f"{EVENTS_MAX} events did not suffice")
        self.cluster.agenda.run_next()

    def _await_progress(self) -> None:
        """Wait until proposals and reads are answered, and every replica has applied one of the new commands."""
        cluster = self.cluster
        deadline_ms = cluster.agenda.now_ms + PROGRESS_MS_MAX
        acknowledged, reads, index = cluster.acknowledged, cluster.reads, len(cluster.invariants.committed)
        while not (cluster.acknowledged > acknowledged and cluster.reads > reads and self._everyone_has(index + 1)):
            if cluster.agenda.now_ms >= deadline_ms:
                raise Violation(PROGRESS, self._standing())
            self._step()

    def _everyone_has(self, index: int) -> bool:
        machines = [replica.machine for replica in self.cluster.replicas]
        return all(machine is not None and machine.state.applied_index >= index for machine in machines)

    def _standing(self) -> str:
        states = (replica.machine.state for replica in self.cluster.replicas if replica.machine is not None)
        return "; ".join(
            f"{state.me} {state.role} term {state.term} applied {state.applied_index} commit {state.commit_index}"
            for state in states
        )
