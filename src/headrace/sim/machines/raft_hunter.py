"""Faults that hunt leaders: their first moments are when entries and votes are on few disks."""

from functools import partial

from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.raft_cluster import RaftCluster
from headrace.sim.machines.replica import SimulatedReplica

PHASE_MS_MIN = 320
"""The shortest time between two groupings; the longest is twice as long."""
STRIKE_MS_MAX = 60
"""The longest time between an election and the strike."""
DOWN_MS_MAX = 200


class RaftHunter:
    """Lets a majority of the voters talk for a phase, and strikes each leader soon after its election."""

    def __init__(self, cluster: RaftCluster, entropy: SeededEntropy, *, end_ms: float) -> None:
        self._cluster = cluster
        self._entropy = entropy
        self._end_ms = end_ms
        self._phase = 0
        self._duels = entropy.one_in(2)
        """Whether two rivals meet the same witnesses in turn: figure 8 of the Raft paper, over and over."""
        cluster.invariants.on_elected.append(self._spot)
        self._regroup()

    @property
    def _is_over(self) -> bool:
        return self._cluster.agenda.now_ms >= self._end_ms

    def _regroup(self) -> None:
        if self._is_over:
            return
        self._phase += 1
        side = self._duelists() if self._duels else self._drawn_majority()
        for replica in self._cluster.replicas:
            self._cluster.start(replica)
        self._cluster.cut(lambda source, to: (source in side) != (to in side), f"only {sorted(side)}")
        self._cluster.agenda.add(PHASE_MS_MIN + self._entropy.below(PHASE_MS_MIN), self._regroup)

    def _drawn_majority(self) -> list[int]:
        nodes = list(range(self._cluster.founders))
        return [nodes.pop(self._entropy.below(len(nodes))) for _ in range(self._cluster.founders // 2 + 1)]

    def _duelists(self) -> list[int]:
        return [self._phase % 2, *range(2, 2 + self._cluster.founders // 2)]

    def _spot(self, leader: SimulatedReplica) -> None:
        if not self._is_over:
            delay_ms = 0 if self._entropy.one_in(2) else self._entropy.below(STRIKE_MS_MAX)
            self._cluster.agenda.add(delay_ms, partial(self._strike, leader))

    def _strike(self, leader: SimulatedReplica) -> None:
        if self._is_over:
            return
        choice = self._entropy.below(8)
        if choice == 0:
            self._cluster.trace.meet("power lost everywhere")
            for replica in self._cluster.replicas:
                self._cluster.crash(replica, down_ms=self._entropy.below(DOWN_MS_MAX))
        elif choice == 1:
            self._cluster.crash(leader, down_ms=self._entropy.below(DOWN_MS_MAX))
        elif choice < 7:
            reached = self._entropy.below(len(self._cluster.replicas)) if choice == 2 else leader.node_id
            self._cluster.silence(leader, but_for=reached)
