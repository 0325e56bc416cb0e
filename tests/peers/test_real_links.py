"""Links between nodes on real sockets: found by name, reset and refused when a process ends, and back when it is."""

from functools import partial
from typing import Any

import pytest

from headrace.broker.node import Node
from headrace.broker.peers.events import PeerConnected, PeerLost, PeerRefused
from headrace.broker.process import real_ports
from headrace.log.cluster_key import write_cluster_key
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId
from headrace.ports.real.disk import RealDisk
from headrace.wire.apis import ApiKey
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.reserved_ports import reserved_port

from .nodes import KEY

pytestmark = pytest.mark.process

TURNS_MAX = 20_000
LARGE_BYTES_MIN = 1 << 20


class RealNodes:
    """Nodes that take turns in one thread."""

    def __init__(self, folder):
        self._folder = folder
        self._ports = {}
        self.running = {}
        self.events = []

    def start(self, node_id, *, peers=()):
        port = self._ports.setdefault(node_id, reserved_port())
        home = self._folder / str(node_id)
        write_cluster_key(RealDisk(), str(home), KEY)
        texts = {
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
            "controller.quorum.bootstrap.servers": ",".join(f"localhost:{self._ports[peer]}" for peer in peers),
            "log.dirs": str(home),
            "headrace.log.level": "error",
        }
        self.running[node_id] = node = Node(BrokerConfig.from_texts(texts), real_ports())
        node.broker.peers.subscribe(lambda event: self.events.append((node_id, event)))
        return node

    def run_until(self, reached):
        for _ in range(TURNS_MAX):
            if reached():
                return
            for node in self.running.values():
                node.turn(1.0)
        raise AssertionError(f"not reached: {self.events}")

    def stop(self, node_id):
        self.running.pop(node_id).close()

    def stop_all(self):
        for node_id in tuple(self.running):
            self.stop(node_id)


@pytest.fixture
def nodes(tmp_path):
    nodes = RealNodes(tmp_path)
    yield nodes
    nodes.stop_all()


def events_of(nodes, node_id):
    return [event for source, event in nodes.events if source == node_id]


def test_a_process_that_ends_is_reset_then_refused_and_found_again(nodes):
    nodes.start(1)
    two = nodes.start(2, peers=[1])
    nodes.run_until(lambda: two.broker.peers.connected())
    outcomes: list[Any] = []
    request = MetadataRequest(topics=())
    two.broker.peers.send(NodeId(1), ApiKey.METADATA, 12, request, timeout_ms=10_000, then=outcomes.append)
    nodes.run_until(lambda: outcomes)
    assert isinstance(outcomes[0], MetadataResponse)

    nodes.stop(1)
    nodes.run_until(lambda: any(isinstance(event, PeerRefused) for event in events_of(nodes, 2)))
    assert [type(event) for event in events_of(nodes, 2)] == [PeerConnected, PeerLost, PeerRefused]
    two.broker.peers.send(NodeId(1), ApiKey.METADATA, 12, request, timeout_ms=10_000, then=outcomes.append)
    nodes.run_until(lambda: len(outcomes) == 2)
    assert outcomes[1].connection_refused

    nodes.start(1)
    nodes.run_until(lambda: two.broker.peers.connected())


def test_a_link_carries_large_messages_in_both_directions(nodes):
    one, two = nodes.start(1), nodes.start(2, peers=[1])
    received: dict[int, list[Any]] = {1: [], 2: []}

    def collect(node_id, source, message):
        if len(message) >= LARGE_BYTES_MIN:  # the quorums of the nodes send their own messages too
            received[node_id].append((source, message))

    one.broker.deliver_raft = partial(collect, 1)
    two.broker.deliver_raft = partial(collect, 2)
    nodes.run_until(lambda: two.broker.peers.connected())
    large = bytes(range(256)) * (9 << 12)
    two.broker.peers.post(NodeId(1), large)
    one.broker.peers.post(NodeId(2), large)
    nodes.run_until(lambda: received[1] and received[2])
    assert (received[1], received[2]) == ([(2, large)], [(1, large)])
