"""Virtual nodes with CONTROLLER listeners, which share a cluster key unless a test says otherwise."""

from headrace.broker.node import Node
from headrace.core.peers.handshake import PeerIdentity
from headrace.core.raft.message_codec import FORMAT_VERSION
from headrace.log.cluster_key import ClusterKey, write_cluster_key
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId
from headrace.ports.bundle import Ports
from headrace.sim.world import World

CLIENT_PORT, PEER_PORT = 9092, 9093
KEY = ClusterKey("water", bytes(range(32)))


class PeerNode:
    """One machine and the node on it; its machine's name is its host name."""

    def __init__(self, world, node_id, *, peers=(), key=KEY, settings=None):
        self.world = world
        self.node_id = NodeId(node_id)
        self.host = f"host{node_id}"
        self.machine = world.machine(self.host)
        self.settings = {
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{self.host}:{CLIENT_PORT},CONTROLLER://{self.host}:{PEER_PORT}",
            "controller.quorum.bootstrap.servers": ",".join(f"host{peer}:{PEER_PORT}" for peer in peers),
            "log.dirs": "data",
            "headrace.log.format": "json",
            **(settings or {}),
        }
        self.log_lines = []
        self.events = []
        self.raft = []
        if key is not None:
            write_cluster_key(self.machine.disk, "data", key)
        self.boot()

    def boot(self):
        self.machine.boot(self._start)

    def _start(self, machine):
        ports = Ports(machine.clock, machine.disk, machine.network, machine.entropy, machine.spawner)
        node = Node(BrokerConfig.from_texts(self.settings), ports, write_log=self.log_lines.append)
        node.loop.strict = True
        deliver = node.broker.deliver_raft
        node.broker.deliver_raft = lambda source, message: self._receive(deliver, source, message)
        node.broker.peers.subscribe(self.events.append)
        return node

    def _receive(self, deliver, source, message):
        """Keep what a test has posted; messages of the quorum begin with the version of their format."""
        if message[0] == FORMAT_VERSION:
            deliver(source, message)
        else:
            self.raft.append((source, message))

    @property
    def node(self):
        return self.machine.node

    @property
    def links(self):
        return self.node.broker.peers

    def has_link_to(self, other):
        return other.node_id in {peer.node_id for peer in self.links.connected()}

    def said(self, text):
        return [line for line in self.log_lines if text in line]


def identity_of(node):
    return PeerIdentity(
        node_id=node.node_id, directory_id=bytes(16), cluster_id=KEY.cluster_id, host=node.host, port=PEER_PORT
    )


class PeerWorld:
    def __init__(self, seed=1):
        self.world = World(seed)

    def node(self, node_id, **options):
        return PeerNode(self.world, node_id, **options)

    def pair(self, **options):
        """Two nodes with one key, each a quorum of its own; the second has a link to the first."""
        one, two = self.node(1, **options), self.node(2, **options)
        two.links.introduced(identity_of(one))
        two.links.post(one.node_id, b"hello")
        self.run_until(lambda: one.raft and one.node.ready and two.node.ready)
        one.raft.clear()
        return one, two

    def link(self, source, to):
        return self.world.fabric.links.between(source.host, to.host)

    def cut(self, one, two):
        self.link(one, two).is_cut = self.link(two, one).is_cut = True

    def heal(self):
        self.world.fabric.links.heal()

    def run_until(self, reached):
        self.world.run_until(reached)

    def steps(self, count=100):
        for _ in range(count):
            self.world.step()

    def pass_time(self, duration_ms, *, step_ms=50):
        for _ in range(int(duration_ms / step_ms)):
            self.world.time.advance(step_ms)
            self.world.step()
