"""The CONTROLLER listener: only authenticated nodes are served, and nothing that comes there harms the node."""

import random

import pytest

from headrace.broker.api.registry import INTERNAL
from headrace.core.peers.handshake import NONCE_BYTES, Initiator, PeerIdentity
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.model.limits import (
    PEER_CONNECTIONS_PER_NODE_MAX,
    PEER_HANDSHAKE_BYTES_MAX,
    PEER_HANDSHAKE_MS_MAX,
    PEERS_UNAUTHENTICATED_MAX,
)
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.authenticate_peer import AuthenticatePeerRequest
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.raft_messages import RaftMessagesRequest
from headrace.wire.messages.write_txn_markers import WriteTxnMarkersRequest

from .nodes import CLIENT_PORT, KEY, PEER_PORT, PeerWorld


def identity(node_id, cluster_id=KEY.cluster_id):
    return PeerIdentity(
        node_id=NodeId(node_id), directory_id=bytes([node_id]) * 16, cluster_id=cluster_id, host="host7", port=1
    )


class Caller:
    """A process at another host that connects to a node and says what it likes."""

    def __init__(self, world, node, *, port=PEER_PORT, from_host="10.0.0.9"):
        self._world = world
        self.connection = world.world.connect(node.host, port, from_host=from_host)

    def send(self, api_key, version, message, *, number=0):
        body = codec(api_key).encode_request(message, version)
        self.connection.send(frames.request_frame(api_key, version, number, "test", body))

    def answer(self, api_key, version):
        """Return (number, response) of the next response; None if the node closes the connection."""
        received = self.connection.receive()
        self._world.run_until(lambda: len(self.connection.receive()) >= 4 or self.connection.is_closed())
        if len(received) < 4:
            return None
        size = int.from_bytes(received[:4], "big")
        self._world.run_until(lambda: len(self.connection.receive()) >= 4 + size)
        frame = bytes(received[4 : 4 + size])
        del received[: 4 + size]
        number, position = frames.read_response_header(frame, 0, size, api_key=api_key, api_version=version)
        return number, codec(api_key).decode_response(frame, position, size, version)

    def ask(self, api_key, version, message):
        self.send(api_key, version, message)
        answered = self.answer(api_key, version)
        return None if answered is None else answered[1]

    def authenticate(self, *, node_id=7, key=KEY.secret, cluster_id=KEY.cluster_id):
        handshake = Initiator(identity(node_id, cluster_id), key, bytes(NONCE_BYTES))
        proof = handshake.receive(self.ask(ApiKey.AUTHENTICATE_PEER, 0, handshake.hello()))
        if not isinstance(proof, AuthenticatePeerRequest):
            return proof
        return handshake.receive(self.ask(ApiKey.AUTHENTICATE_PEER, 0, proof))

    def wait_closed(self):
        self._world.run_until(lambda: self.connection.receive() is not None and self.connection.is_closed())


@pytest.fixture
def world():
    return PeerWorld()


@pytest.fixture
def node(world):
    node = world.node(1)
    world.run_until(lambda: node.node.ready)
    return node


def test_an_authenticated_node_is_served(world, node):
    caller = Caller(world, node)
    assert caller.authenticate().node_id == 1
    assert caller.ask(ApiKey.METADATA, 12, MetadataRequest(topics=())).cluster_id == "water"
    caller.send(ApiKey.RAFT_MESSAGES, 0, RaftMessagesRequest(messages=(b"vote",)))
    world.run_until(lambda: node.raft)
    assert node.raft == [(7, b"vote")]


@pytest.mark.parametrize(
    ("api_key", "version", "message"),
    [
        (ApiKey.API_VERSIONS, 0, ApiVersionsRequest()),
        (ApiKey.METADATA, 12, MetadataRequest(topics=())),
        (ApiKey.RAFT_MESSAGES, 0, RaftMessagesRequest(messages=(b"vote",))),
    ],
)
def test_nothing_is_served_before_authentication(world, node, api_key, version, message):
    caller = Caller(world, node)
    caller.send(api_key, version, message)
    caller.wait_closed()
    assert not caller.connection.received
    assert node.raft == []
    between = Caller(world, node)
    hello = Initiator(identity(7), bytes(32), bytes(NONCE_BYTES)).hello()
    assert between.ask(ApiKey.AUTHENTICATE_PEER, 0, hello).error_code == 0
    between.send(api_key, version, message)
    between.wait_closed()
    assert node.raft == []


def test_another_key_is_refused_with_the_reason_once(world, node):
    for _ in range(3):
        refusal = Caller(world, node).authenticate(key=bytes(32))
        assert refusal.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert "cluster.key" in refusal.message
    assert len(node.said("could not prove")) == 1


def test_another_cluster_is_refused_with_the_reason(world, node):
    caller = Caller(world, node)
    refusal = caller.authenticate(cluster_id="fire")
    assert refusal.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    caller.wait_closed()
    assert node.said("belongs to cluster 'fire'")


def test_a_node_with_the_same_id_is_refused(world, node):
    assert Caller(world, node).authenticate(node_id=1).code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert node.said("two nodes have the id 1")


def test_a_large_frame_is_refused_before_authentication(world, node):
    caller = Caller(world, node)
    caller.connection.send(
        frames.request_frame(ApiKey.AUTHENTICATE_PEER, 0, 0, None, bytes(PEER_HANDSHAKE_BYTES_MAX + 1))
    )
    caller.wait_closed()
    huge = Caller(world, node)
    huge.connection.send((50 << 20).to_bytes(4, "big") + bytes(20_000))
    huge.wait_closed()


def test_a_silent_connection_is_closed(world, node):
    caller = Caller(world, node)
    world.pass_time(PEER_HANDSHAKE_MS_MAX + 1_000)
    assert caller.connection.is_closed()
    assert node.said("did not authenticate")


def test_unauthenticated_connections_are_limited_and_do_not_keep_nodes_out(world, node):
    callers = [Caller(world, node) for _ in range(PEERS_UNAUTHENTICATED_MAX + 10)]
    world.run_until(lambda: sum(caller.connection.is_closed() for caller in callers) >= 10)
    assert Caller(world, node).authenticate().node_id == 1
    closed = [caller.connection.is_closed() for caller in callers]
    assert closed == [True] * 11 + [False] * (PEERS_UNAUTHENTICATED_MAX - 1)


def test_a_node_that_reconnects_replaces_its_oldest_connection(world, node):
    callers = [Caller(world, node) for _ in range(PEER_CONNECTIONS_PER_NODE_MAX + 1)]
    for caller in callers:
        assert caller.authenticate().node_id == 1
    callers[0].wait_closed()
    assert not callers[1].connection.is_closed()


def test_nodes_are_outside_the_limits_of_clients(world):
    node = world.node(1, settings={"max.connections.per.ip": "1", "max.connections": "1"})
    world.run_until(lambda: node.node.ready)
    peers = [Caller(world, node, from_host="10.0.0.5") for _ in range(3)]
    for number, peer in enumerate(peers):
        assert peer.authenticate(node_id=7 + number).node_id == 1
    client = Caller(world, node, port=CLIENT_PORT, from_host="10.0.0.5")
    assert client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    further = Caller(world, node, port=CLIENT_PORT, from_host="10.0.0.5")
    further.wait_closed()


@pytest.mark.parametrize("api", INTERNAL, ids=lambda api: api.key.name)
def test_clients_are_refused_what_is_between_nodes(world, node, api):
    client = Caller(world, node, port=CLIENT_PORT)
    served = {each.api_key for each in client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).api_keys}
    assert int(api.key) not in served
    client.connection.send(frames.request_frame(api.key, api.max_version, 1, "test", bytes(64)))
    client.wait_closed()


def test_markers_are_accepted_from_nodes_of_other_machines(world, node):
    caller = Caller(world, node, from_host="10.0.0.9")
    caller.authenticate()
    assert caller.ask(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=())).markers == ()


def test_a_slow_request_does_not_delay_a_later_one(world, node):
    """A request that waits for a commit is answered after a heartbeat that came later."""
    from headrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsRequestTopic

    caller = Caller(world, node)
    caller.authenticate()
    node.machine.spawner.hold(name_contains="")
    topic = CreateTopicsRequestTopic(name="t", num_partitions=1, replication_factor=1)
    caller.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,), timeout_ms=30_000), number=1)
    caller.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), number=2)
    assert caller.answer(ApiKey.API_VERSIONS, 0)[0] == 2
    node.machine.spawner.release()
    number, response = caller.answer(ApiKey.CREATE_TOPICS, 7)
    assert (number, response.topics[0].error_code) == (1, 0)


@pytest.mark.parametrize("seed", range(30))
def test_garbage_closes_only_its_own_connection(seed):
    source = random.Random(seed)
    world = PeerWorld(seed)
    node = world.node(1)
    world.run_until(lambda: node.node.ready)
    good = Caller(world, node)
    assert good.authenticate().node_id == 1
    for _ in range(20):
        bad = Caller(world, node)
        if source.random() < 0.5:
            bad.authenticate()
        payload = source.randbytes(source.randrange(1, 400))
        if source.random() < 0.7:
            key = source.choice(list(ApiKey))
            payload = frames.request_frame(key, source.randrange(0, 3), 1, "x", payload)
        bad.connection.send(payload)
        world.steps(5)
        bad.connection.close()
    assert good.ask(ApiKey.METADATA, 12, MetadataRequest(topics=())).cluster_id == "water"
    assert node.node.metrics.handler_failures == 0
