"""Brokers that let a client in for a limited time (KIP-368): it says again who it is, on the same connection."""

from typing import Any

from headrace.client.core.authentication import PlainExchange
from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.client.core.link import Address, Security
from headrace.client.core.links import Links
from headrace.client.errors import AuthenticationFailed, BrokerUnreachable
from headrace.wire.apis import ApiKey
from headrace.wire.messages import metadata, sasl_authenticate, sasl_handshake

from .scripted import ScriptedBroker, ScriptedNetwork, VirtualClock

ANSWER = metadata.MetadataResponse(cluster_id="c")
LIFETIME_MS = 1_000


class World:
    """A broker that counts the authentications and forgets each after a second."""

    def __init__(self, lifetime_ms: int = LIFETIME_MS) -> None:
        self.clock = VirtualClock()
        self.known_until_ms = 0.0
        self.lifetime_ms = lifetime_ms
        self.passwords: list[bytes] = []
        self.strangers = 0
        self.password = "first"
        self.broker = ScriptedBroker(
            {
                ApiKey.SASL_HANDSHAKE: lambda _r, _v: sasl_handshake.SaslHandshakeResponse(mechanisms=("PLAIN",)),
                ApiKey.SASL_AUTHENTICATE: self.authenticate,
                ApiKey.METADATA: self.describe,
            }
        )
        self.network = ScriptedNetwork(self.clock, {1: self.broker.feed})
        self.links = Links(
            network=self.network,
            clock=self.clock,
            bootstrap=[Address("here", 1)],
            client_id="c",
            cluster=Cluster(),
            security=Security(exchange=lambda: PlainExchange("alice", self.password)),
        )

    def authenticate(self, request: Any, _version: int) -> sasl_authenticate.SaslAuthenticateResponse:
        password = bytes(request.auth_bytes).rsplit(b"\0", 1)[1]
        self.passwords.append(password)
        if password == b"wrong":
            return sasl_authenticate.SaslAuthenticateResponse(error_code=58, error_message="no longer")
        self.known_until_ms = self.clock.now_ms + (self.lifetime_ms or float("inf"))
        return sasl_authenticate.SaslAuthenticateResponse(session_lifetime_ms=self.lifetime_ms)

    def describe(self, _request: Any, _version: int) -> metadata.MetadataResponse:
        self.strangers += self.clock.now_ms > self.known_until_ms
        return ANSWER

    def submit(self, replies: list[Any]) -> None:
        self.links.submit(Call(metadata, metadata.MetadataRequest(topics=())), replies.append)

    def ask(self) -> Any:
        replies: list[Any] = []
        self.submit(replies)
        while not replies:
            self.links.turn(10)
        return replies[0]


def test_before_its_time_is_over_the_client_says_again_who_it_is() -> None:
    world = World()
    for number in range(60):
        world.password = f"token {number // 20}"
        assert world.ask() == ANSWER
        world.clock.now_ms += 50
    assert world.strangers == 0
    assert world.network.connected_to == [1], "on the same connection"
    assert 3 <= len(world.passwords) <= 5
    assert world.passwords[-1] == b"token 2", "with what is true by then"


def test_without_an_end_it_is_said_once() -> None:
    world = World(lifetime_ms=0)
    for _ in range(10):
        assert world.ask() == ANSWER
        world.clock.now_ms += 10_000
    assert len(world.passwords) == 1


def test_calls_around_it_are_answered_in_order() -> None:
    world = World()
    replies: list[Any] = []
    for _ in range(100):
        world.submit(replies)
        world.links.turn(0)
        world.clock.now_ms += 37
    while len(replies) < 100:
        world.links.turn(10)
    assert replies == [ANSWER] * 100
    assert world.strangers == 0
    assert world.network.connected_to == [1]


def test_a_member_that_is_not_known_any_more_learns_it() -> None:
    world = World()
    assert world.ask() == ANSWER
    world.password = "wrong"
    world.clock.now_ms += LIFETIME_MS
    reply = world.ask()
    assert isinstance(reply, AuthenticationFailed | BrokerUnreachable)
    assert "no longer" in str(reply)
    world.password = "right"
    world.clock.now_ms += 5_000
    assert world.ask() == ANSWER
    assert world.network.connected_to == [1, 1]
