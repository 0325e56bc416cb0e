import math
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.calls import ANY_BROKER, Call
from headrace.client.core.cluster import Cluster, fetch_metadata
from headrace.client.core.engine import ClientEngine
from headrace.client.core.link import SILENCE_MS, THROTTLE_MS_MAX, Address
from headrace.client.core.links import Links
from headrace.client.errors import BadResponse, BrokerUnreachable, ClientError, DeadlineExceeded, UnsupportedByBroker
from headrace.client.types import Broker
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_topics, fetch, metadata, produce

from .scripted import ScriptedBroker, ScriptedNetwork, VirtualClock

ANSWER = metadata.MetadataResponse(cluster_id="c")
ASK = Call(metadata, metadata.MetadataRequest(topics=()))


class World:
    """Links on a network in memory."""

    def __init__(self, peers: dict[int, Any], *, ports: tuple[int, ...] = (1,), chunk_bytes: int = 2**30) -> None:
        self.clock = VirtualClock()
        self.network = ScriptedNetwork(self.clock, peers, chunk_bytes)
        self.cluster = Cluster()
        self.told: list[str] = []
        self.links = Links(
            network=self.network,
            clock=self.clock,
            bootstrap=[Address("here", port) for port in ports],
            client_id="tester",
            cluster=self.cluster,
            request_timeout_ms=5_000,
            connect_timeout_ms=2_000,
            tell=self.told.append,
        )

    def ask(self, call: Call = ASK, *, deadline_ms: float | None = None) -> Any:
        replies: list[Any] = []
        self.links.submit(call, replies.append, deadline_ms=deadline_ms)
        for _ in range(10_000):
            if replies:
                (reply,) = replies
                return reply
            self.links.turn(1_000)
        raise AssertionError("no reply")


def answering(response: Any = ANSWER) -> ScriptedBroker:
    return ScriptedBroker({ApiKey.METADATA: lambda request, version: response})


@pytest.mark.parametrize("chunk_bytes", [1, 3, 2**30])
def test_a_call_is_answered_however_the_bytes_are_cut(chunk_bytes: int) -> None:
    world = World({1: answering().feed}, chunk_bytes=chunk_bytes)
    assert world.ask() == ANSWER
    assert world.ask() == ANSWER
    assert world.network.connected_to == [1], "one connection serves both"
    assert world.links.in_flight() == 0


def test_the_next_bootstrap_server_is_tried() -> None:
    world = World({3: answering().feed}, ports=(1, 2, 3))
    assert world.ask() == ANSWER
    assert world.network.connected_to == [1, 2, 3]


def test_no_broker_is_there() -> None:
    world = World({}, ports=(1, 2))
    reply = world.ask()
    assert isinstance(reply, BrokerUnreachable)
    assert "check that a broker is running there, or start one with `headrace broker`" in str(reply)
    assert world.network.connected_to == [1, 2]


def test_a_dead_address_is_avoided_for_a_growing_while() -> None:
    world = World({})
    for _ in range(20):
        assert isinstance(world.ask(), BrokerUnreachable)
        world.clock.now_ms += 50
    assert 3 <= len(world.network.connected_to) <= 6
    world.network.peers[1] = answering().feed
    world.clock.now_ms += 1_000
    assert world.ask() == ANSWER


def test_it_is_reported_once_when_a_broker_is_gone_and_once_when_it_is_back() -> None:
    world = World({1: answering().feed})
    assert world.ask() == ANSWER
    assert world.told == []
    gone = world.network.peers.pop(1)
    world.network.transports[0]._peer = None
    for _ in range(5):
        world.ask()
        world.clock.now_ms += 1_200
    assert len(world.told) == 1
    assert world.told[0].endswith("; trying again")
    world.network.peers[1] = gone
    assert world.ask() == ANSWER
    assert world.told[1:] == ["here:1 can be reached again"]


def test_a_broker_that_accepts_and_says_nothing() -> None:
    world = World({1: lambda chunk: b""})
    began_ms = world.clock.now_ms
    assert isinstance(world.ask(), DeadlineExceeded)
    assert 2_000 <= world.clock.now_ms - began_ms < 2_100
    assert world.network.transports[0].is_closed


def silent(chunk: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("ports", [(1, 3), (1, 2, 3), (3, 1), (4, 1, 3)])
def test_silent_addresses_do_not_hide_one_that_answers(ports: tuple[int, ...]) -> None:
    """1 and 2 accept and say nothing, 4 refuses; the others are tried after a short silence each."""
    world = World({1: silent, 2: silent, 3: answering().feed}, ports=ports)
    began_ms = world.clock.now_ms
    assert world.ask() == ANSWER
    silences = ports[: ports.index(3)].count(1) + ports[: ports.index(3)].count(2)
    assert world.clock.now_ms - began_ms < SILENCE_MS * silences + 100
    assert world.ask() == ANSWER
    assert world.network.connected_to[-1] == 3, "the one that answers is used from then on"


def test_the_deadline_is_for_all_silent_addresses_together() -> None:
    world = World({1: silent, 2: silent, 3: silent}, ports=(1, 2, 3))
    began_ms = world.clock.now_ms
    reply = world.ask()
    assert isinstance(reply, DeadlineExceeded)
    assert "none of here:1, here:2, here:3 responded in time" in str(reply)
    assert 2_000 <= world.clock.now_ms - began_ms < 2_100
    assert world.network.connected_to == [1, 2, 3]


@pytest.mark.parametrize("ports", [(1, 3), (1, 2, 3), (1, 4, 2, 3)])
def test_addresses_that_hang_after_the_versions_do_not_hide_one_that_answers(ports: tuple[int, ...]) -> None:
    """1 and 2 answer ApiVersions and nothing else, 4 refuses."""
    world = World({1: answering(None).feed, 2: answering(None).feed, 3: answering().feed}, ports=ports)
    began_ms = world.clock.now_ms
    assert world.ask() == ANSWER
    hanging = len({1, 2} & {*ports})
    assert world.clock.now_ms - began_ms < SILENCE_MS * hanging + 100
    began_ms = world.clock.now_ms
    assert world.ask() == ANSWER
    assert world.clock.now_ms - began_ms < SILENCE_MS, "the one that answers is used from then on"


def test_a_broker_that_answers_after_the_call_was_repeated() -> None:
    """Its late answer is taken, and the answer of the other address is not taken for another call's."""
    slow, heard = answering(), bytearray()

    def hear(chunk: bytes) -> bytes:
        heard.extend(chunk)
        return answering(None).feed(chunk)

    other = answering(None)
    world = World({1: hear, 2: other.feed}, ports=(1, 2))
    replies: list[Any] = []
    world.links.submit(ASK, replies.append)
    while not other.seen:
        world.links.turn(1_000)
    first = world.network.transports[0]
    first.incoming += slow.feed(bytes(heard))[len(answering(None).feed(bytes(heard))) :]
    first._peer = slow.feed
    for _ in range(10):
        world.links.turn(1)
    assert replies == [ANSWER]
    assert world.ask() == ANSWER
    assert world.network.connected_to == [1, 2]


def test_what_must_not_be_done_twice_is_not_repeated() -> None:
    call = Call(create_topics, create_topics.CreateTopicsRequest(topics=()))
    peers = [ScriptedBroker({ApiKey.CREATE_TOPICS: lambda request, version: None}) for _ in range(2)]
    world = World({1: peers[0].feed, 2: peers[1].feed}, ports=(1, 2))
    assert isinstance(world.ask(call), DeadlineExceeded)
    assert [len(peer.seen) for peer in peers] == [1, 0]


@given(kinds=st.lists(st.sampled_from(("silent", "hanging", "refusing", "garbled", "good")), min_size=1, max_size=6))
def test_a_call_is_answered_whenever_one_address_is_good(kinds: list[str]) -> None:
    peers: dict[str, Any] = {
        "silent": lambda: silent,
        "garbled": lambda: lambda chunk: b"\xff" * 8,
        "hanging": lambda: answering(None).feed,
        "good": lambda: answering().feed,
    }
    world = World(
        {port: peers[kind]() for port, kind in enumerate(kinds, start=1) if kind != "refusing"},
        ports=tuple(range(1, len(kinds) + 1)),
    )
    began_ms = world.clock.now_ms
    reply = world.ask()
    took_ms = world.clock.now_ms - began_ms
    before = kinds[: kinds.index("good")] if "good" in kinds else []
    silences_ms = SILENCE_MS * (before.count("silent") + before.count("hanging")) if "good" in kinds else math.inf
    if silences_ms < 2_000:
        assert reply == ANSWER
        assert took_ms < silences_ms + 100
    else:
        assert isinstance(reply, ClientError)
        limit_ms = 5_100 if "hanging" in kinds else 2_100
        assert took_ms < limit_ms, "one deadline for all of them"


def test_a_slow_broker_answers_after_a_further_one_was_tried() -> None:
    slow = answering()
    heard = bytearray()

    def hear(chunk: bytes) -> bytes:
        heard.extend(chunk)
        return b""

    world = World({1: hear, 2: silent}, ports=(1, 2))
    replies: list[Any] = []
    world.links.submit(ASK, replies.append)
    while len(world.network.connected_to) < 2:
        world.links.turn(1_000)
    first = world.network.transports[0]
    first.incoming += slow.feed(bytes(heard))
    first._peer = slow.feed
    for _ in range(10):
        world.links.turn(1)
    assert replies == [ANSWER]


def test_an_address_that_refused_is_tried_again_while_another_one_is_silent() -> None:
    world = World({1: silent}, ports=(1, 2))
    replies: list[Any] = []
    world.links.submit(ASK, replies.append)
    while world.network.connected_to.count(2) < 1:
        world.links.turn(1_000)
    world.network.peers[2] = answering().feed
    while not replies:
        world.links.turn(1_000)
    assert replies == [ANSWER]


def test_a_broker_that_never_answers_the_call() -> None:
    world = World({1: answering(None).feed})
    began_ms = world.clock.now_ms
    assert isinstance(world.ask(), DeadlineExceeded)
    assert 5_000 <= world.clock.now_ms - began_ms < 5_100
    assert world.network.transports[0].is_closed, "a late answer must not be taken for another's"


def test_the_deadline_of_the_caller_is_kept() -> None:
    world = World({1: lambda chunk: b""})
    began_ms = world.clock.now_ms
    assert isinstance(world.ask(deadline_ms=began_ms + 300), DeadlineExceeded)
    assert 300 <= world.clock.now_ms - began_ms < 400


def test_a_long_poll_may_take_longer() -> None:
    world = World({1: answering(None).feed})
    began_ms = world.clock.now_ms
    assert isinstance(world.ask(ASK._replace(wait_ms_max=3_000)), DeadlineExceeded)
    assert 8_000 <= world.clock.now_ms - began_ms < 8_100


def test_a_connection_cut_in_flight_fails_every_call_on_it() -> None:
    world = World({1: answering(None).feed})
    replies: list[Any] = []
    for _ in range(3):
        world.links.submit(ASK, replies.append)
    for _ in range(5):  # the hello, its answer, and the calls that waited for it
        world.links.turn(0)
    assert world.links.in_flight() == 3
    world.network.transports[0].is_broken = True
    world.links.turn(0)
    assert [type(reply) for reply in replies] == [BrokerUnreachable] * 3


def test_an_idle_connection_that_the_broker_closes_is_made_again() -> None:
    world = World({1: answering().feed})
    world.ask()
    world.network.transports[0].is_broken = True
    world.links.turn(0)
    assert world.ask() == ANSWER
    assert world.network.connected_to == [1, 1]


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 200 OK\r\n\r\n", b"\x00\x00\x00\x05\xff\xff\xff\xff\x00", bytes(9)])
def test_garbage_closes_the_connection(garbage: bytes) -> None:
    world = World({1: lambda chunk: garbage})
    assert isinstance(world.ask(), BadResponse)
    assert world.network.transports[0].is_closed


def test_a_broken_broker_does_not_hide_a_good_one() -> None:
    world = World({1: lambda chunk: b"garbage!", 2: answering().feed}, ports=(1, 2))
    assert world.ask() == ANSWER


def test_calls_go_to_the_node_they_are_for() -> None:
    one, two = answering(), answering(metadata.MetadataResponse(cluster_id="two"))
    world = World({1: one.feed, 2: two.feed})
    world.cluster.brokers = {1: Broker(1, "here", 1), 2: Broker(2, "here", 2)}
    assert world.ask(ASK._replace(target=2)).cluster_id == "two"
    assert world.ask(ASK._replace(target=1)).cluster_id == "c"
    assert isinstance(world.ask(ASK._replace(target=3)), BrokerUnreachable)
    assert set(world.links.versions_of(2)) == {ApiKey.METADATA, ApiKey.API_VERSIONS}
    assert world.links.versions_of(ANY_BROKER)


def test_what_a_broker_does_not_serve_is_said_without_closing() -> None:
    world = World({1: answering().feed})
    assert isinstance(world.ask(Call(fetch, fetch.FetchRequest())), UnsupportedByBroker)
    assert world.ask() == ANSWER
    assert world.network.connected_to == [1]


def test_acks_0_is_done_when_it_is_written() -> None:
    broker = ScriptedBroker({ApiKey.PRODUCE: lambda request, version: None})
    world = World({1: broker.feed})
    assert world.ask(Call(produce, produce.ProduceRequest(acks=0), is_answered=False)) is None
    world.links.turn(0)
    assert [key for key, _version, _request in broker.seen] == [ApiKey.PRODUCE]


def test_close_ends_every_connection() -> None:
    world = World({1: answering(None).feed})
    replies: list[ClientError] = []
    world.links.submit(ASK, replies.append)
    world.links.turn(0)
    world.links.close()
    assert [transport.is_closed for transport in world.network.transports] == [True]
    assert world.links.in_flight() == 0


def test_a_throttled_connection_is_left_alone_and_others_are_not() -> None:
    answers = [metadata.MetadataResponse(throttle_time_ms=700, cluster_id="slow"), ANSWER, ANSWER]
    broker = ScriptedBroker({ApiKey.METADATA: lambda request, version: answers.pop(0)})
    world = World({1: broker.feed})
    assert world.ask().cluster_id == "slow"
    began_ms = world.clock.now_ms
    replies: list[tuple[str, Any, float]] = []

    def reply_to(name: str, reply: Any) -> None:
        replies.append((name, reply, world.clock.now_ms))

    for name in ("first", "second"):
        world.links.submit(ASK, partial(reply_to, name))
    assert world.links.in_flight() == 2
    for _ in range(20):
        world.links.turn(1_000)
    assert [(name, reply) for name, reply, _when_ms in replies] == [("first", ANSWER), ("second", ANSWER)]
    assert all(began_ms + 650 <= when_ms <= began_ms + 800 for _name, _reply, when_ms in replies)
    assert world.network.connected_to == [1]


def test_a_broker_that_throttles_for_ever_does_not_hold_up_a_call_beyond_its_deadline() -> None:
    endless = metadata.MetadataResponse(throttle_time_ms=2**31 - 1)
    world = World({1: answering(endless).feed})
    world.ask()
    reply = world.ask(deadline_ms=world.clock.now_ms + 400)
    assert isinstance(reply, DeadlineExceeded)
    assert "check its quotas" in str(reply)
    world.clock.now_ms += THROTTLE_MS_MAX
    assert world.ask() == endless


def test_a_broker_of_another_cluster_sends_us_back_to_the_beginning() -> None:
    foreign = metadata.MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    served = {ApiKey.METADATA: (0, 13)}
    stranger = ScriptedBroker({ApiKey.METADATA: lambda request, version: foreign}, served)
    own = answering()
    world = World({1: own.feed, 7: stranger.feed}, ports=(1,))
    world.cluster.brokers = {4: Broker(4, "here", 7, None)}
    world.cluster.learn_features(9, {"transaction.version": 2})
    assert world.ask() == foreign
    assert world.cluster.brokers == {}
    assert world.cluster.feature("transaction.version") == 0
    assert world.ask() == ANSWER
    assert world.network.connected_to == [7, 1]
    world.cluster.brokers = {4: Broker(4, "here", 7, None)}
    world.clock.now_ms += 10_000
    replies: list[Any] = []
    engine = ClientEngine(world.links, world.clock)
    engine.start(fetch_metadata((), target=4), deadline_ms=world.clock.now_ms + 5_000, ended=replies.append)
    for _ in range(100):
        if not replies:
            engine.step()
            world.links.turn(100)
    assert replies == [ANSWER]
