"""Roles of nodes: a controller without partitions and clients, and brokers that never vote."""

import pytest

from headrace.core.controller.commands import CreatableTopic
from tests.peers.nodes import PEER_PORT, PeerWorld


class Cluster:
    """Node 1 is only a controller; nodes 2 and 3 are only brokers."""

    def __init__(self):
        self.world = PeerWorld()
        alone = {"process.roles": "controller", "listeners": f"CONTROLLER://host1:{PEER_PORT}"}
        self.controller = self.world.node(1, settings=alone)
        self.world.run_until(lambda: self.controller.node.ready)
        self.brokers = [self.world.node(node_id, peers=[1], settings={"process.roles": "broker"}) for node_id in (2, 3)]
        self.world.run_until(lambda: all(broker.node.ready for broker in self.brokers))

    def create(self, name, partitions):
        new = CreatableTopic(name=name, partition_count=partitions)
        proposal = self.controller.node.broker.controller.create_topics([new])
        self.world.run_until(lambda: proposal.outcome is not None)


@pytest.fixture
def cluster():
    return Cluster()


def test_a_controller_registers_no_broker_and_gets_no_partition(cluster):
    image = cluster.controller.node.broker.image
    assert sorted(image.brokers) == [2, 3]
    cluster.create("orders", 6)
    assert sorted(state.leader for state in image.topics["orders"].partitions) == [2, 2, 2, 3, 3, 3]
    assert len(cluster.controller.node.broker.partitions) == 0


def test_brokers_do_not_become_voters(cluster):
    cluster.world.pass_time(3_000, step_ms=10)
    assert [voter.node_id for voter in cluster.controller.node.quorum.voters] == [1]


def test_both_stop_and_start_again(cluster):
    cluster.create("orders", 2)
    for node in (*cluster.brokers, cluster.controller):
        node.node.begin_stop()
        cluster.world.run_until(lambda node=node: node.node.drained)
        node.node.close()
        node.machine.stopped()
    for node in (cluster.controller, *cluster.brokers):
        node.boot()
    cluster.world.run_until(lambda: all(broker.node.ready for broker in cluster.brokers))
    leaders = [state.leader for state in cluster.controller.node.broker.image.topics["orders"].partitions]
    assert sorted(leaders) == [2, 3]
