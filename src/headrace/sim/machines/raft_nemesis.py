"""Faults of a Raft run, drawn from its seed: first which kinds exist in this run, then when they happen."""

from collections.abc import Callable

from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.links import LinkHabits
from headrace.sim.machines.raft_cluster import RaftCluster
from headrace.sim.machines.raft_hunter import RaftHunter
from headrace.sim.machines.replica import DRIFT_PERCENT_MAX, SimulatedReplica

FAULT_INTERVALS_MS_MAX = (300, 900)
DOWN_MS_MAX = 600
PAUSE_MS_MAX = 800
CUT_MS_MAX = 1_000
CALM_ONE_IN = 10
"""Runs without faults."""
HUNTS_PER_TEN = 6
"""Runs out of ten in which leaders are targeted; the others have random faults."""

MET = (
    "broker fenced",
    "connection reset",
    "crash",
    "folder lost",
    "links cut",
    "message cut off",
    "message duplicated",
    "message lost",
    "message reordered",
    "pause",
    "power lost everywhere",
    "snapshot installed",
    "snapshot taken",
    "topic created",
    "unsynced write lost",
    "voter set changed",
    "write torn",
)
"""Faults and events that runs meet."""


class RaftNemesis:
    def __init__(self, cluster: RaftCluster, entropy: SeededEntropy, *, end_ms: float, is_restless: bool) -> None:
        self._cluster = cluster
        self._entropy = entropy
        self._end_ms = end_ms
        self._interval_ms_max = FAULT_INTERVALS_MS_MAX[entropy.below(len(FAULT_INTERVALS_MS_MAX))]
        kinds = (self._crash, self._crash_all, self._pause, self._isolate, self._cut_one_way, self._split)
        self._kinds = [kind for kind in kinds if entropy.one_in(2)] or list(kinds)
        for replica in cluster.replicas:
            replica.drift((entropy.below(201) - 100) / 100 * DRIFT_PERCENT_MAX)
            replica.sync_ms_max = (2, 10, 30, 60)[entropy.below(4)]
        cluster.links.habits = LinkHabits(
            delay_ms_max=(2, 8, 15)[entropy.below(3)],
            lost_one_in=(0, 0, 50, 10)[entropy.below(4)],
            duplicated_one_in=(0, 20)[entropy.below(2)],
            reordered_one_in=(0, 20)[entropy.below(2)],
        )
        if entropy.one_in(CALM_ONE_IN):
            return
        if entropy.below(10) < HUNTS_PER_TEN:
            RaftHunter(cluster, entropy.branch("hunter"), end_ms=end_ms, is_restless=is_restless)
            return
        self._plan_next()
        if not is_restless:  # removed voters and lost folders together could be a majority
            cluster.agenda.add(entropy.below(int(end_ms)), self._wipe)

    def _plan_next(self) -> None:
        self._cluster.agenda.add(self._entropy.below(self._interval_ms_max), self._strike)

    def _strike(self) -> None:
        if self._cluster.agenda.now_ms < self._end_ms:
            self._kinds[self._entropy.below(len(self._kinds))]()
            self._plan_next()

    def _pick(self) -> SimulatedReplica:
        """Pick a replica, half of the time one that leads."""
        leaders = self._cluster.leaders()
        if leaders and self._entropy.one_in(2):
            return leaders[self._entropy.below(len(leaders))]
        return self._cluster.replicas[self._entropy.below(len(self._cluster.replicas))]

    # Processes

    def _down_ms(self) -> float:
        return self._entropy.below(DOWN_MS_MAX)

    def _crash(self) -> None:
        self._cluster.crash(self._pick(), down_ms=self._down_ms())

    def _crash_all(self) -> None:
        self._cluster.cut_power(self._entropy, down_ms_max=DOWN_MS_MAX)

    def _pause(self) -> None:
        self._pick().pause(self._entropy.below(PAUSE_MS_MAX))

    def _wipe(self) -> None:
        """Lose the folder of a voter, and the leader with it, so that an election follows."""
        if self._cluster.agenda.now_ms < self._end_ms:
            voters = self._cluster.replicas[: self._cluster.founders]
            self._cluster.wipe(voters[self._entropy.below(len(voters))], down_ms=self._entropy.below(DOWN_MS_MAX // 4))
            for leader in self._cluster.leaders():
                self._cluster.crash(leader, down_ms=self._down_ms())

    # Links

    def _isolate(self) -> None:
        victim = self._pick().node_id
        self._cut(lambda source, to: victim in (source, to), f"isolate {victim}")

    def _cut_one_way(self) -> None:
        victim, outwards = self._pick().node_id, self._entropy.one_in(2)
        self._cut(lambda source, to: victim == (source if outwards else to), f"cut one way {victim}")

    def _split(self) -> None:
        sides = [self._entropy.one_in(2) for _ in self._cluster.replicas]
        self._cut(lambda source, to: sides[source] != sides[to], f"split {sides}")

    def _cut(self, is_cut: Callable[[int, int], bool], text: str) -> None:
        self._cluster.cut(is_cut, text)
        self._cluster.agenda.add(self._entropy.below(CUT_MS_MAX), self._cluster.links.heal)

    def heal(self) -> None:
        """End all faults."""
        self._cluster.note("heal")
        self._cluster.links.heal()
        self._cluster.links.habits = LinkHabits()
        for replica in self._cluster.replicas:
            self._cluster.start(replica)
