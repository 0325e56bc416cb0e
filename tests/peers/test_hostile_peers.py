"""A node that calls an address where something else answers: it closes the connection, says why, and goes on."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headrace.broker.peers.requests import PeerFailure
from headrace.core.peers.handshake import NONCE_BYTES, Acceptor, PeerIdentity
from headrace.model.ids import NodeId
from headrace.ports.network import READABLE
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse

from .nodes import KEY, PEER_PORT, PeerWorld


class Impostor:
    """A process that listens where a node is expected, and answers as a test says."""

    def __init__(self, world, node_id, *, key=KEY.secret):
        self.host = f"host{node_id}"
        self.machine = world.world.machine(self.host)
        (self.listener,) = self.machine.network.listen(self.host, PEER_PORT)
        self.machine.network.watch(self.listener.token, READABLE)
        self.identity = PeerIdentity(
            node_id=NodeId(node_id), directory_id=b"9" * 16, cluster_id="water", host=self.host, port=PEER_PORT
        )
        self.key = key
        self.accepted = 0
        self.answer: Callable[[int, bytes], bytes] = lambda number, request: b""
        """Called with each request after the handshake; returns the bytes to send."""
        self.greet = None
        """Called instead of a handshake."""
        self.closes_at_once = False
        """True to close every connection after the handshake."""
        self._open = {}
        self.machine.node = self

    def turn(self, _timeout_ms=0.0):
        while (transport := self.listener.accept()) is not None:
            self.accepted += 1
            self._open[transport] = (bytearray(), Acceptor(self.identity, self.key, bytes(NONCE_BYTES)))
            if self.greet is not None:
                transport.send(self.greet())
        for transport, (received, handshake) in list(self._open.items()):
            room = memoryview(bytearray(4096))
            try:
                while (count := transport.recv_into(room)) > 0:
                    received += room[:count]
                del self._open[transport]
                transport.close()
                continue
            except BlockingIOError:
                pass
            except OSError:
                del self._open[transport]
                transport.close()
                continue
            self._serve(transport, received, handshake)

    def _serve(self, transport, received, handshake):
        while len(received) >= 4 and len(received) >= 4 + (size := int.from_bytes(received[:4], "big")):
            frame = bytes(received[4 : 4 + size])
            del received[: 4 + size]
            header = frames.read_request_header(frame, 0, size)
            if header.api_key == ApiKey.RAFT_MESSAGES:
                continue  # they have no responses
            if header.api_key == ApiKey.AUTHENTICATE_PEER:
                wire = codec(ApiKey.AUTHENTICATE_PEER)
                response = handshake.receive(wire.decode_request(frame, header.body_position, size, 0))
                sent = frames.response_frame(
                    ApiKey.AUTHENTICATE_PEER, 0, header.correlation_id, wire.encode_response(response, 0)
                )
            else:
                sent = self.answer(header.correlation_id, frame)
            while sent:
                sent = sent[transport.send(sent) :]
        if self.closes_at_once and handshake.peer is not None:
            del self._open[transport]
            transport.close()


def asked(world, node, *, of=9, timeout_ms=3_000):
    outcomes: list[Any] = []
    node.links.send(of, ApiKey.METADATA, 12, MetadataRequest(topics=()), timeout_ms=timeout_ms, then=outcomes.append)
    world.run_until(lambda: outcomes)
    return outcomes[0]


def metadata_response(number):
    body = codec(ApiKey.METADATA).encode_response(MetadataResponse(cluster_id="water"), 12)
    return frames.response_frame(ApiKey.METADATA, 12, number, body)


@pytest.fixture
def world():
    return PeerWorld()


def test_the_double_answers_like_a_node(world):
    impostor = Impostor(world, 9)
    impostor.answer = lambda number, request: metadata_response(number)
    node = world.node(1, peers=[9])
    world.run_until(lambda: node.links.connected())
    assert isinstance(asked(world, node), MetadataResponse)


def test_a_wrong_key_is_noticed_and_logged_once(world):
    impostor = Impostor(world, 9, key=bytes(32))
    node = world.node(1, peers=[9])
    world.pass_time(8_000)
    assert impostor.accepted >= 3
    assert node.links.connected() == []
    assert len(node.said("could not prove")) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda number: metadata_response(number + 1),
        lambda number: metadata_response(number) + metadata_response(number),
        lambda number: (1 << 30).to_bytes(4, "big"),
        lambda number: (-1).to_bytes(4, "big", signed=True),
        lambda number: metadata_response(number)[:-3] + b"\xff\xff\xff",
        lambda number: (6).to_bytes(4, "big") + number.to_bytes(4, "big") + b"\0\0",
    ],
    ids=["unknown number", "answered twice", "huge", "negative", "damaged", "too short"],
)
def test_a_bad_response_closes_the_link_and_fails_its_requests(world, answer):
    impostor = Impostor(world, 9)
    impostor.answer = lambda number, request: answer(number)
    node = world.node(1, peers=[9])
    world.run_until(lambda: node.links.connected())
    outcome = asked(world, node)
    world.run_until(lambda: impostor.accepted > 1)
    assert isinstance(outcome, PeerFailure | MetadataResponse)
    assert node.said("no link to another node")
    impostor.answer = lambda number, request: metadata_response(number)
    world.pass_time(2_000)
    assert isinstance(asked(world, node), MetadataResponse)


@pytest.mark.parametrize("seed", range(20))
def test_garbage_instead_of_a_handshake_does_no_harm(seed):
    source = random.Random(seed)
    world = PeerWorld(seed)
    impostor = Impostor(world, 9)
    impostor.greet = lambda: source.randbytes(source.randrange(1, 200))
    node = world.node(1, peers=[9])
    world.pass_time(3_000)
    assert node.links.connected() == []
    assert isinstance(asked(world, node), PeerFailure)
    assert node.node.metrics.handler_failures == 0


def test_a_peer_that_closes_every_link_is_not_called_without_end(world):
    impostor = Impostor(world, 9)
    node = world.node(1, peers=[9])
    impostor.closes_at_once = True
    world.pass_time(5_000, step_ms=5)
    assert 3 < impostor.accepted < 60
    assert node.node.metrics.handler_failures == 0


def test_another_node_at_the_address_is_not_taken_for_the_expected_one(world):
    impostor = Impostor(world, 9)
    impostor.answer = lambda number, request: metadata_response(number)
    node = world.node(1, peers=[9])
    world.run_until(lambda: node.links.connected())
    node.links.introduced(replace(impostor.identity, node_id=NodeId(5)))
    outcome = asked(world, node, of=5)
    assert "node 9 answers where node 5 was expected" in outcome.message
