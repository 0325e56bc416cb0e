"""Faults aimed at leaders: in their first moments entries and votes are on few disks."""

from functools import partial

from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.raft_cluster import RaftCluster
from headrace.sim.machines.replica import SimulatedReplica

PHASE_MS_MIN = 600
"""The shortest time for which a group of voters can communicate; the longest is twice as long."""
STRIKE_MS_MAX = 100
"""The longest time between an election and the strike."""
AFTERMATH_MS_MAX = 200
"""The longest time between a strike and the next phase."""
DOWN_MS_MAX = 400
PHASES = 4


class RaftHunter:
    """Repeats figure 8 of the Raft paper with drawn times.

    A first leader is cut off with an entry of its own, then a second one. The first one returns, replicates its old
    entry and is cut off again, and the second one returns. With changes of voters, the second leader reaches one other
    replica: that would be a majority of the voters it has left.
    """

    def __init__(self, cluster: RaftCluster, entropy: SeededEntropy, *, end_ms: float, is_restless: bool) -> None:
        self._cluster = cluster
        self._entropy = entropy
        self._end_ms = end_ms
        self._is_restless = is_restless
        self._phase = 0
        self._phases_begun = 0
        self._leaders = [0, 0]
        """The first and the second leader, by node id."""
        cluster.invariants.on_elected.append(self._spot)
        self._regroup(0)

    @property
    def _is_over(self) -> bool:
        return self._cluster.agenda.now_ms >= self._end_ms

    def _regroup(self, begun: int) -> None:
        """Begin the next phase, unless it has begun already."""
        if self._is_over or begun != self._phases_begun:
            return
        self._phases_begun += 1
        self._phase = self._phase % PHASES + 1
        excluded = {1: -1, 2: self._leaders[0], 3: self._leaders[1], 4: self._leaders[0]}[self._phase]
        for replica in self._cluster.replicas:
            self._cluster.start(replica)
        self._cluster.cut(lambda source, to: excluded in (source, to), f"phase {self._phase} without {excluded}")
        self._plan_regroup(PHASE_MS_MIN + self._entropy.below(PHASE_MS_MIN))
        if self._phase == 1:
            for leader in self._cluster.leaders()[-1:]:
                self._spot(leader)

    def _plan_regroup(self, delay_ms: float) -> None:
        self._cluster.agenda.add(delay_ms, partial(self._regroup, self._phases_begun))

    def _spot(self, leader: SimulatedReplica) -> None:
        if self._is_over:
            return
        if self._phase <= 2:
            self._leaders[self._phase - 1] = leader.node_id
        at_once = self._phase <= 2
        delay_ms = 0 if at_once else self._entropy.below(STRIKE_MS_MAX)
        self._cluster.agenda.add(delay_ms, partial(self._strike, leader))

    def _strike(self, leader: SimulatedReplica) -> None:
        if self._is_over or self._phase == PHASES:
            return
        if self._entropy.one_in(8):
            self._cluster.cut_power(self._entropy, down_ms_max=DOWN_MS_MAX)
        elif self._phase == 2 and self._is_restless:
            others = [node for node in range(self._cluster.founders) if node not in self._leaders]
            self._cluster.silence(leader, but_for=others[self._entropy.below(len(others))])
        else:
            self._cluster.silence(leader, but_for=leader.node_id)
        self._plan_regroup(self._entropy.below(AFTERMATH_MS_MAX))
