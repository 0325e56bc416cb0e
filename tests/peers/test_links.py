"""Links between nodes: requests and Raft messages arrive, broken links come back, and failures are reported at once."""

from typing import Any

import pytest

from headrace.broker.peers.events import PeerConnected, PeerLost, PeerRefused
from headrace.broker.peers.requests import PeerFailure
from headrace.model.errors import ErrorCode
from headrace.model.limits import PEER_RAFT_UNSENT_BYTES_MAX, PEER_REQUESTS_MAX, PEER_SILENT_MS_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse

from .nodes import PeerWorld


@pytest.fixture
def world():
    return PeerWorld()


def ask(world, source, to, *, timeout_ms=10_000, count=1):
    """Send requests, and return their outcomes once all have one."""
    outcomes: list[Any] = []
    for _ in range(count):
        source.links.send(
            to.node_id, ApiKey.METADATA, 12, MetadataRequest(topics=()), timeout_ms=timeout_ms, then=outcomes.append
        )
    assert not outcomes, "an outcome comes in a later turn"
    world.run_until(lambda: len(outcomes) == count)
    return outcomes if count > 1 else outcomes[0]


def test_a_request_gets_its_response(world):
    one, two = world.pair()
    outcome = ask(world, two, one)
    assert isinstance(outcome, MetadataResponse)
    assert outcome.cluster_id == "water"


def test_the_acceptor_learns_the_address_of_the_other_node(world):
    one, two = world.pair()
    assert isinstance(ask(world, one, two), MetadataResponse)
    assert one.has_link_to(two)


@pytest.mark.parametrize("seed", range(5))
def test_many_requests_share_one_connection(seed):
    world = PeerWorld(seed)
    one, two = world.pair()
    opened = one.node.metrics.connections_opened
    outcomes = ask(world, two, one, count=200)
    assert all(isinstance(outcome, MetadataResponse) for outcome in outcomes)
    assert one.node.metrics.connections_opened == opened


def test_raft_messages_arrive_in_order_with_their_sender(world):
    one, two = world.pair()
    messages = [bytes([number]) * 1000 for number in range(1, 101)]
    for message in messages:
        two.links.post(one.node_id, message)
    world.run_until(lambda: len(one.raft) == 100)
    assert one.raft == [(2, message) for message in messages]


def test_raft_messages_are_dropped_above_the_limit(world):
    one, two = world.pair()
    world.link(two, one).is_cut = True
    for _ in range(20):
        two.links.post(one.node_id, b"x" * (PEER_RAFT_UNSENT_BYTES_MAX // 4))
    world.steps(20)
    world.heal()
    world.run_until(lambda: len(one.raft) == 4)
    world.pass_time(5_000)
    assert len(one.raft) == 4


def test_requests_above_the_limit_fail_at_once(world):
    one, two = world.pair()
    world.cut(one, two)
    outcomes: list[Any] = []
    for _ in range(PEER_REQUESTS_MAX + 1):
        two.links.send(
            one.node_id, ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), timeout_ms=60_000, then=outcomes.append
        )
    world.run_until(lambda: outcomes)
    assert [outcome.code for outcome in outcomes] == [ErrorCode.REQUEST_TIMED_OUT]
    world.heal()
    world.run_until(lambda: len(outcomes) == PEER_REQUESTS_MAX + 1)
    assert isinstance(outcomes[-1], ApiVersionsResponse | PeerFailure)


def test_an_unknown_node_fails(world):
    one = world.node(1)
    outcomes: list[Any] = []
    one.links.send(9, ApiKey.METADATA, 12, MetadataRequest(topics=()), timeout_ms=1_000, then=outcomes.append)
    world.run_until(lambda: outcomes)
    assert "address of node 9 is not known" in outcomes[0].message


def test_a_killed_node_is_reported_as_reset_and_then_refused(world):
    one, two = world.pair()
    one.machine.kill()
    world.run_until(lambda: two.events and isinstance(two.events[-1], PeerRefused))
    connected, lost, refused = two.events
    assert isinstance(connected, PeerConnected)
    assert lost == PeerLost(peer=connected.peer, reset=True)
    assert refused.node_id == one.node_id
    failure = ask(world, two, one)
    assert failure.connection_refused

    one.boot()
    two.links.post(one.node_id, b"hello")
    world.pass_time(3_000)
    two.links.post(one.node_id, b"hello again")
    world.run_until(lambda: two.has_link_to(one))
    assert isinstance(ask(world, two, one), MetadataResponse)


def test_a_bootstrap_server_is_found_again_without_a_request(world):
    one = world.node(1)
    two = world.node(2, peers=[1])
    world.run_until(lambda: two.has_link_to(one))
    one.machine.kill()
    world.run_until(lambda: not two.has_link_to(one))
    one.boot()
    world.run_until(lambda: two.has_link_to(one))


def test_a_reset_alone_is_not_reported_as_refused(world):
    one, two = world.pair()
    link = world.link(one, two)
    link.reset_one_in = 1
    outcome = ask(world, two, one)
    link.reset_one_in = 0
    assert outcome.reset
    world.run_until(lambda: two.has_link_to(one))
    assert [type(event) for event in two.events] == [PeerConnected, PeerLost, PeerConnected]


def test_a_request_that_is_not_answered_times_out_and_the_silent_link_is_replaced(world):
    one, two = world.pair()
    world.cut(one, two)
    outcome = ask(world, two, one, timeout_ms=500)
    assert outcome.code is ErrorCode.REQUEST_TIMED_OUT
    assert two.events[-1] == PeerLost(peer=two.events[0].peer, reset=False)
    world.heal()
    world.pass_time(5_000)
    assert isinstance(ask(world, two, one), MetadataResponse)
    assert not any(isinstance(event, PeerRefused) for event in two.events)


def test_a_link_that_only_carries_raft_messages_is_tested(world):
    one, two = world.pair()
    world.cut(one, two)
    two.links.post(one.node_id, b"lost")
    world.pass_time(PEER_SILENT_MS_MAX + 3_000)
    assert any(isinstance(event, PeerLost) for event in two.events)
    world.heal()
    world.pass_time(12_000)
    two.links.post(one.node_id, b"heard")
    world.run_until(lambda: (2, b"heard") in one.raft)


@pytest.mark.parametrize("seed", range(10))
def test_every_request_has_one_outcome_on_bad_links(seed):
    world = PeerWorld(seed)
    one, two = world.pair()
    for link in (world.link(one, two), world.link(two, one)):
        link.delay_ms_max, link.lost_one_in, link.reset_one_in = 20, 10, 20
    outcomes: list[Any] = []
    for number in range(300):
        two.links.send(
            one.node_id,
            ApiKey.METADATA,
            12,
            MetadataRequest(topics=()),
            timeout_ms=5_000,
            then=lambda outcome, number=number: outcomes.append((number, outcome)),
        )
        world.pass_time(20, step_ms=10)
    world.heal()
    world.pass_time(8_000)
    assert sorted(number for number, _ in outcomes) == list(range(300))
    assert any(isinstance(outcome, MetadataResponse) for _, outcome in outcomes)
    assert isinstance(ask(world, two, one), MetadataResponse)


def test_a_name_that_does_not_resolve_never_delays_a_turn(world):
    two = world.node(2, peers=[7])
    two.machine.spawner.hold(name_contains="resolve_name")
    world.pass_time(12_000)
    outcomes: list[Any] = []
    two.links.send(7, ApiKey.METADATA, 12, MetadataRequest(topics=()), timeout_ms=100, then=outcomes.append)
    world.run_until(lambda: outcomes)
    assert isinstance(outcomes[0], PeerFailure)


def test_a_node_whose_own_address_is_a_bootstrap_server_does_not_connect_to_itself(world):
    one = world.node(
        1, settings={"advertised.listeners": "PLAINTEXT://host1:9092,CONTROLLER://elsewhere:9093"}, peers=[1]
    )
    world.pass_time(3_000)
    assert one.links.connected() == []
    assert not one.said("no link")


def test_a_killed_node_may_accept_once_more_before_it_refuses(world):
    """The kernel accepts for a listener until the process is gone, and then resets what it has accepted."""
    one, two = world.pair()
    route = two.links._routes[one.node_id]
    route.was_reset = True
    reset = PeerFailure(code=ErrorCode.NETWORK_EXCEPTION, message="reset in the handshake")
    refused = PeerFailure(code=ErrorCode.NETWORK_EXCEPTION, message="refused", connection_refused=True)
    for failure in (reset, refused, refused):
        two.links._failed(route, failure)
    assert [event for event in two.events if isinstance(event, PeerRefused)] == [PeerRefused(node_id=one.node_id)]
