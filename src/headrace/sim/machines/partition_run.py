"""One run of machines whose brokers hold replicated partitions; faults as in every run of machines."""

from headrace.sim.checkers.violation import Violation
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.member_group import MemberGroup
from headrace.sim.machines.partition_group import PartitionGroup
from headrace.sim.machines.raft_cluster import RaftCluster
from headrace.sim.machines.raft_nemesis import RaftNemesis
from headrace.sim.trace import Trace

DURATION_MS = 8_000
HEALED_MS_MAX = 30_000
EVENTS_MAX = 200_000
BROKERS = 5
VOTERS = 3
RESTART_INTERVALS_MS_MAX = (80, 300, 1_000)
RESTART_MS = (40, 190)
"""The shortest and the longest restart: requests that name the broker's former epoch are still under way."""

HEALS = "once everything is healed, every partition has a leader within 30 s"


class PartitionRun:
    def __init__(self, seed: int) -> None:
        self.cluster = RaftCluster(seed, nodes=BROKERS, voters=VOTERS)
        entropy: SeededEntropy = self.cluster.entropy
        self.group = MemberGroup(self.cluster, entropy.branch("group"))
        self.partitions = PartitionGroup(self.cluster, self.group, entropy.branch("partitions"))
        self._nemesis = RaftNemesis(self.cluster, entropy.branch("nemesis"), end_ms=DURATION_MS, is_restless=False)
        self._restarts = entropy.branch("restarts")
        self._restart_interval_ms_max = RESTART_INTERVALS_MS_MAX[self._restarts.below(len(RESTART_INTERVALS_MS_MAX))]
        self._plan_restart()
        self.steps = 0

    @property
    def trace(self) -> Trace:
        return self.cluster.trace

    def carry_out(self) -> None:
        while self.cluster.agenda.now_ms < DURATION_MS:
            self._step()
        self._nemesis.heal()
        deadline_ms = self.cluster.agenda.now_ms + HEALED_MS_MAX
        while not self.group.is_healthy:
            if self.cluster.agenda.now_ms >= deadline_ms:
                raise Violation(HEALS, self._standing())
            self._step()

    def _plan_restart(self) -> None:
        self.cluster.agenda.add(self._restarts.below(self._restart_interval_ms_max), self._restart)

    def _restart(self) -> None:
        """Restart some broker: the faults of the quorum's own runs mostly meet its leaders."""
        if self.cluster.agenda.now_ms < DURATION_MS:
            shortest, longest = RESTART_MS
            victim = self.cluster.replicas[self._restarts.below(BROKERS)]
            self.cluster.crash(victim, down_ms=shortest + self._restarts.below(longest - shortest))
            self._plan_restart()

    def _step(self) -> None:
        self.steps += 1
        if self.steps > EVENTS_MAX:
            raise Violation(HEALS, f"{EVENTS_MAX} events did not suffice")
        self.cluster.agenda.run_next()

    def _standing(self) -> str:
        image = max((member.image for member in self.group.members), key=lambda image: image.version)
        unled = [state for topic in image.topics.values() for state in topic.partitions if state.leader < 0]
        fenced = [broker.node_id for broker in image.brokers.values() if broker.fenced]
        return f"fenced {fenced}; without a leader {unled[:3]}"
