"""Controller hosts under crashes, power cuts, cut links, full disks and lost folders: nothing answered is lost."""

import pytest

from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import TopicResult
from headrace.sim.faults import DISK_FULL
from tests.cluster.quorum_nodes import METADATA_FOLDER, QuorumCluster, QuorumNode

ROUNDS = 25
HEALING_MS = 30_000


class FaultyRun:
    def __init__(self, seed: int) -> None:
        self.cluster = QuorumCluster(seed=seed, snapshot_interval_bytes=800, entries_kept_max=0).boot()
        self.draw = self.cluster.world.entropy.branch("faults").below
        self.acked: set[str] = set()
        self.number = 0

    def run(self) -> None:
        for _ in range(ROUNDS):
            action = (self.create, self.create, self.create, self.crash, self.cut, self.fill_disk, self.wipe)
            action[self.draw(len(action))]()
            self.cluster.run_for(10 * self.draw(150))
            self.check()
        self.heal()

    def create(self) -> None:
        for node in self.cluster.running:
            if node.host.is_active:
                for _ in range(1 + self.draw(4)):
                    self.number += 1
                    name = f"topic-{self.number}"
                    proposal = node.create(name)
                    proposal.then(lambda outcome, name=name: self.answered(name, outcome))  # type: ignore[misc]

    def answered(self, name: str, outcome: tuple[TopicResult, ...] | ProposalFailed) -> None:
        if not isinstance(outcome, ProposalFailed) and not outcome[0].error:
            self.acked.add(name)

    def crash(self) -> None:
        node = self.any_node()
        node.machine.disk.faults.heal()
        if node.running:
            node.kill(power=bool(self.draw(2)))
        else:
            node.boot()

    def cut(self) -> None:
        self.cluster.cut = {self.any_node().node_id} if self.draw(3) else set()

    def fill_disk(self) -> None:
        node = self.any_node()
        if node.running:
            node.machine.disk.faults.fail("write_vector", code=DISK_FULL, path_contains=METADATA_FOLDER)

    def wipe(self) -> None:
        """Lose a folder, but never that of a second voter before the first has been replaced."""
        node = self.any_node()
        others = [each for each in self.cluster.nodes.values() if each is not node]
        if self.cluster.cut or self.draw(2) or not all(each.running for each in others):
            return
        if all({each.key for each in self.cluster.nodes.values()} == {*other.quorum.voters} for other in others):
            self.cluster.settle_running(others)
            if node.running:
                node.kill()
            node.wipe()
            node.boot()

    def any_node(self) -> QuorumNode:
        return self.cluster.node(1 + self.draw(len(self.cluster.nodes)))

    def check(self) -> None:
        leaders = [node for node in self.cluster.running if node.host.is_active]
        terms = [node.quorum.term for node in leaders]
        assert len(terms) == len({*terms}), "a term has two leaders"
        for node in leaders:
            newest = max(node.quorum.term for node in leaders)
            if node.quorum.term == newest:
                assert {*self.acked} <= {*node.topics}, "the controller lacks a topic that was acknowledged"
        by_version: dict[int, list[str]] = {}
        for node in self.cluster.running:
            assert node.host.offline is None
            assert by_version.setdefault(node.host.image.version, node.topics) == node.topics

    def heal(self) -> None:
        self.cluster.cut = set()
        for node in self.cluster.nodes.values():
            node.machine.disk.faults.heal()
            if not node.running:
                node.boot()
        self.cluster.run_for(HEALING_MS)
        assert self.cluster.active is not None
        self.cluster.create("last")
        self.cluster.settle()
        self.check()
        assert self.cluster.has_voters(3)
        assert {*self.acked, "last"} <= {*self.cluster.node(1).topics}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    FaultyRun(seed).run()
