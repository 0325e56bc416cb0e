"""Clients of a Raft run: proposals, reads, and an operator that changes voters, transfers leadership and snapshots."""

from functools import partial

from headrace.core.raft.ids import ReplicaKey
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.raft_cluster import RaftCluster
from headrace.sim.machines.replica import SimulatedReplica

REQUEST_INTERVAL_MS_MAX = 60
GREETING_MS_MAX = 20
OPERATOR_INTERVALS_MS_MAX = (30, 100, 300)


class RaftClients:
    """Clients ask every replica that believes it leads, so that a former leader can respond wrongly."""

    def __init__(self, cluster: RaftCluster, entropy: SeededEntropy, *, voters: int, restless: bool) -> None:
        self._cluster = cluster
        self._entropy = entropy
        self._interval_ms_max = OPERATOR_INTERVALS_MS_MAX[entropy.below(len(OPERATOR_INTERVALS_MS_MAX))]
        self._voters = voters
        """The size of the voter set that the operator aims at."""
        self.restless = restless
        """True if the operator changes voters without need."""
        self._request()
        self._operate()
        cluster.invariants.on_elected.append(self._propose_early)

    def _request(self) -> None:
        for leader in self._cluster.leaders():
            if self._entropy.one_in(2):
                self._cluster.propose(leader)
            else:
                self._cluster.read(leader)
        self._cluster.agenda.add(1 + self._entropy.below(REQUEST_INTERVAL_MS_MAX), self._request)

    def _propose_early(self, leader: SimulatedReplica) -> None:
        """Request a change from a new leader before it has committed anything."""
        if self.restless:
            self._cluster.agenda.add(self._entropy.below(GREETING_MS_MAX), partial(self._remove_some, leader))

    def _remove_some(self, leader: SimulatedReplica) -> None:
        if leader.machine is not None:
            voters = leader.machine.state.voters
            self._cluster.remove_voter(leader, voters[self._entropy.below(len(voters))])

    def _operate(self) -> None:
        for leader in self._cluster.leaders():
            self._repair(leader)
            if self.restless:
                self._meddle(leader)
        self._cluster.agenda.add(1 + self._entropy.below(self._interval_ms_max), self._operate)

    def _repair(self, leader: SimulatedReplica) -> None:
        """Remove a voter whose folder was lost, and promote an observer while there are too few voters."""
        assert leader.machine is not None
        voters = leader.machine.state.voters
        present = [replica.key for replica in self._cluster.replicas]
        gone = [voter for voter in voters if voter not in present]
        if gone and len(voters) > 1:
            self._cluster.remove_voter(leader, gone[0])
        elif len(voters) < self._voters:
            self._promote(leader, [key for key in present if key not in voters])

    def _promote(self, leader: SimulatedReplica, observers: list[ReplicaKey]) -> None:
        if observers and leader.machine is not None:
            self._cluster.add_voter(leader, observers[self._entropy.below(len(observers))])

    def _meddle(self, leader: SimulatedReplica) -> None:
        assert leader.machine is not None
        voters = leader.machine.state.voters
        choice = self._entropy.below(5)
        if choice == 0:
            self._remove_some(leader)
        elif choice == 1:
            observers = [each.key for each in self._cluster.replicas if each.key not in voters]
            self._promote(leader, observers)
        elif choice == 2:
            self._cluster.transfer(leader, None)
        else:
            self._cluster.replicas[self._entropy.below(len(self._cluster.replicas))].take_snapshot()
