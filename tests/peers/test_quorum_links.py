"""Three virtual nodes that find each other by their links: one cluster, whichever of them a client asks."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsRequestTopic

from .nodes import CLIENT_PORT, PeerWorld
from .test_listener import Caller

LONG_MS = 30_000
STEPS_MAX = 60_000


def _is_settled(quorum):
    return len(quorum.voters) == 3 and quorum.committed_offset == quorum.end_offset


class Cluster:
    def __init__(self, seed):
        self.world = PeerWorld(seed)
        self.nodes = [self.world.node(1)]
        self.nodes += [self.world.node(number, peers=[1]) for number in (2, 3)]
        self.run_until(lambda: all(node.node.ready for node in self.nodes))
        self.run_until(lambda: all(_is_settled(node.node.quorum) for node in self.nodes))

    def run_until(self, reached):
        self.world.world.run_until(reached, limit_steps=STEPS_MAX)

    def running(self):
        return [node for node in self.nodes if node.node is not None]

    def controller(self):
        active = [node for node in self.running() if node.node.broker.controller.is_active]
        return active[0] if active else self.running()[0]

    def create_at(self, node, name):
        """Create a topic by a client of this node, and return the error code."""
        topic = CreateTopicsRequestTopic(name=name, num_partitions=3, replication_factor=1)
        client = Caller(self.world, node, port=CLIENT_PORT)
        client.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,), timeout_ms=LONG_MS))
        _number, response = client.answer(ApiKey.CREATE_TOPICS, 7)
        return response.topics[0].error_code


@pytest.mark.parametrize("seed", range(3))
def test_a_client_creates_topics_at_any_node_and_sees_them_there(seed):
    cluster = Cluster(seed)
    for number, node in enumerate(cluster.nodes):
        assert cluster.create_at(node, f"t{number}") == ErrorCode.NONE
        assert f"t{number}" in node.node.broker.image.topics, "the client is answered when its broker has the change"
    assert cluster.create_at(cluster.nodes[2], "t0") == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("seed", range(3))
def test_topics_are_created_after_the_loss_of_the_controller(seed):
    cluster = Cluster(seed)
    lost = cluster.controller()
    lost.machine.kill()
    survivor = cluster.running()[0]
    assert cluster.create_at(survivor, "after") == ErrorCode.NONE
    assert cluster.controller() is not lost
    assert "after" in survivor.node.broker.image.topics
    lost.boot()
    cluster.run_until(lambda: lost.node.ready and "after" in lost.node.broker.image.topics)


def test_without_a_majority_the_client_gets_a_retriable_error():
    cluster = Cluster(7)
    for node in cluster.nodes[1:]:
        node.machine.kill()
    (alone,) = cluster.running()
    topic = CreateTopicsRequestTopic(name="never", num_partitions=1, replication_factor=1)
    client = Caller(cluster.world, alone, port=CLIENT_PORT)
    cluster.world.pass_time(10_000)
    client.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,), timeout_ms=2_000))
    _number, response = client.answer(ApiKey.CREATE_TOPICS, 7)
    assert response.topics[0].error_code in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
