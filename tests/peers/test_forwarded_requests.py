"""Requests for the controller work at any broker: forwarded with their client, answered when the change is visible."""

from typing import Any

import pytest

from headrace.broker.api import create_topics
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.controller.client_quotas import QuotaAlteration, QuotaChange
from headrace.core.controller.commands import CreatableTopic
from headrace.core.quotas.entities import MUTATION_RATE
from headrace.model.access import Principal
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.wire import frames
from headrace.wire.apis import ApiKey
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsRequestTopic
from headrace.wire.messages.forward_request import ForwardRequestRequest
from headrace.wire.messages.metadata import MetadataRequest

from .nodes import CLIENT_PORT, PeerWorld
from .test_listener import Caller

LONG_MS = 30_000


class Follower:
    """The controller of a node that does not lead: the test says which node does, and when the image follows."""

    def __init__(self, own, leader):
        self._own = own
        self.is_active = False
        self.active_controller = NodeId(leader)
        self.waiting = []
        self.follows = True

    def when_applied(self, offset, then):
        self.waiting.append((offset, then))
        if self.follows:
            self.catch_up()

    def catch_up(self):
        waiting, self.waiting = self.waiting, []
        for _offset, then in waiting:
            then()

    def create_topics(self, topics, *, validate_only=False):
        proposal: Proposal[Any] = Proposal()
        proposal.complete(ProposalFailed(ErrorCode.NOT_CONTROLLER, "this node is not the active controller"))
        return proposal

    def __getattr__(self, name):
        return getattr(self._own, name)


@pytest.fixture
def world():
    return PeerWorld()


@pytest.fixture
def pair(world):
    one, two = world.pair()
    two.node.broker.controller = Follower(two.node.broker.controller, leader=1)
    return one, two


@pytest.fixture
def one(pair):
    return pair[0]


@pytest.fixture
def two(pair):
    return pair[1]


def creation(*names, timeout_ms=LONG_MS, **fields):
    topics = tuple(CreateTopicsRequestTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, **fields)


def client_of(world, node, **options):
    return Caller(world, node, port=CLIENT_PORT, **options)


def topics_of(node):
    return set(node.node.broker.image.topics)


def test_a_topic_is_created_by_the_controller_for_a_client_of_another_broker(world, one, two):
    response = client_of(world, two).ask(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", 0)]
    assert "orders" in topics_of(one)
    again = client_of(world, two).ask(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    assert again.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_the_client_is_answered_when_this_broker_has_applied_the_change(world, one, two):
    two.node.broker.controller.follows = False
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders"), number=5)
    world.run_until(lambda: two.node.broker.controller.waiting)
    ((offset, _then),) = two.node.broker.controller.waiting
    assert offset == one.node.broker.image.version
    world.steps(50)
    assert not client.connection.receive()
    two.node.broker.controller.catch_up()
    number, response = client.answer(ApiKey.CREATE_TOPICS, 7)
    assert (number, response.topics[0].error_code) == (5, 0)


def test_later_requests_of_the_client_are_answered_behind_it(world, one, two):
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders"), number=1)
    client.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), number=2)
    assert client.answer(ApiKey.CREATE_TOPICS, 7)[0] == 1
    assert client.answer(ApiKey.API_VERSIONS, 0)[0] == 2


def test_the_controller_sees_the_client_and_not_the_broker(world, one, two, monkeypatch):
    seen = []
    handle = create_topics.handle

    def watched(request, ctx):
        connection = ctx.connection
        seen.append((str(ctx.principal), connection.by_token, connection.peer_host, ctx.listener_name, ctx.client_id))
        return handle(request, ctx)

    monkeypatch.setattr(create_topics, "handle", watched)
    client = client_of(world, two, from_host="10.9.8.7")
    client.ask(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    (connection,) = two.node.loop.connections.of_clients()
    connection.principal, connection.by_token = Principal("User", "alice"), True
    client.ask(ApiKey.CREATE_TOPICS, 7, creation("others"))
    assert seen == [
        ("User:ANONYMOUS", False, "10.9.8.7", "PLAINTEXT", "test"),
        ("User:alice", True, "10.9.8.7", "PLAINTEXT", "test"),
    ]


def test_a_request_waits_for_a_controller_and_is_answered_when_there_is_one(world, one, two):
    controller = two.node.broker.controller
    controller.active_controller = None
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    world.pass_time(2_000)
    assert not client.connection.receive()
    controller.active_controller = NodeId(1)
    assert client.answer(ApiKey.CREATE_TOPICS, 7)[1].topics[0].error_code == 0


def test_without_a_controller_the_client_gets_a_retriable_error_within_its_time(world, one, two):
    two.node.broker.controller.active_controller = None
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders", timeout_ms=2_000))
    world.pass_time(2_500)
    response = client.answer(ApiKey.CREATE_TOPICS, 7)[1]
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", ErrorCode.NOT_CONTROLLER)]


def test_a_request_follows_the_controller_to_another_node(world, one, two):
    """Node 1 leads no more when the request reaches it; the broker asks again and finds it leading."""
    own = one.node.broker.controller
    one.node.broker.controller = Follower(own, leader=2)
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    world.pass_time(1_000)
    assert not client.connection.receive()
    one.node.broker.controller = own
    assert client.answer(ApiKey.CREATE_TOPICS, 7)[1].topics[0].error_code == 0


def test_a_controller_that_loses_its_term_over_a_request_is_not_the_end_of_it(world, one, two, monkeypatch):
    """The proposal fails in the middle, with NOT_CONTROLLER for its topics; the broker sends the request again."""
    own = one.node.broker.controller
    losing = Follower(own, leader=1)
    losing.is_active, losing.term = True, own.term - 1
    proposals: list[Any] = []

    def create_topics(topics, *, validate_only=False):
        proposals.append(Proposal())
        return proposals[-1]

    monkeypatch.setattr(losing, "create_topics", create_topics)
    one.node.broker.controller = losing
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    world.run_until(lambda: proposals)
    one.node.broker.controller = own
    proposals[0].complete(ProposalFailed(ErrorCode.NOT_CONTROLLER, "another node leads"))
    assert client.answer(ApiKey.CREATE_TOPICS, 7)[1].topics[0].error_code == 0
    assert "orders" in topics_of(one)


def test_a_node_that_becomes_the_controller_answers_itself(world, one, two):
    follower = two.node.broker.controller
    follower.active_controller = None
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("here"))
    world.pass_time(500)
    two.node.broker.controller = follower._own
    follower.is_active = True
    assert client.answer(ApiKey.CREATE_TOPICS, 7)[1].topics[0].error_code == 0
    assert "here" in topics_of(two)
    assert "here" not in topics_of(one)


@pytest.mark.parametrize("seed", range(5))
def test_requests_survive_links_that_reset(seed):
    world = PeerWorld(seed)
    one, two = world.pair()
    two.node.broker.controller = Follower(two.node.broker.controller, leader=1)
    world.link(one, two).reset_one_in = 3
    client = client_of(world, two)
    for number in range(10):
        code = client.ask(ApiKey.CREATE_TOPICS, 7, creation(f"t{number}")).topics[0].error_code
        assert code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), "a request that is sent twice is carried out once"
    assert {f"t{number}" for number in range(10)} <= topics_of(one)


def test_a_malformed_request_closes_the_connection_of_its_client_alone(world, one, two):
    bad, good = client_of(world, two), client_of(world, two)
    bad.connection.send(frames.request_frame(ApiKey.CREATE_TOPICS, 7, 0, "x", b"\xff" * 20))
    bad.wait_closed()
    assert good.ask(ApiKey.CREATE_TOPICS, 7, creation("orders")).topics[0].error_code == 0


def test_a_large_request_is_forwarded_and_decoded_in_slices(world, one, two):
    names = [f"topic-{number:05}-{'x' * 100}" for number in range(1_500)]
    request = creation(*names, validate_only=True)
    response = client_of(world, two).ask(ApiKey.CREATE_TOPICS, 7, request)
    assert [topic.error_code for topic in response.topics] == [0] * len(names)


def test_a_client_that_disconnects_leaves_nothing_behind(world, one, two):
    two.node.broker.controller.active_controller = None
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    world.steps(20)
    client.connection.close()
    world.steps(20)
    two.node.broker.controller.active_controller = NodeId(1)
    world.pass_time(1_000)
    assert "orders" not in topics_of(one)
    assert two.node.broker.controller_requests._count == 0


def test_a_stopping_broker_answers_what_it_has_forwarded(world, one, two):
    two.node.broker.controller.active_controller = None
    client = client_of(world, two)
    client.send(ApiKey.CREATE_TOPICS, 7, creation("orders"))
    world.steps(20)
    two.node.begin_stop()
    assert client.answer(ApiKey.CREATE_TOPICS, 7)[1].topics[0].error_code == ErrorCode.NOT_CONTROLLER
    world.run_until(lambda: two.node.drained)


def test_a_topic_is_created_automatically_by_the_controller(world, one, two):
    done = []
    two.node.broker.create_topics([CreatableTopic(name="automatic", partition_count=2)], lambda: done.append(True))
    world.run_until(lambda: done)
    assert len(one.node.broker.image.topics["automatic"].partitions) == 2


@pytest.mark.parametrize("api_key", [ApiKey.METADATA, ApiKey.FORWARD_REQUEST, ApiKey.PRODUCE, 999])
def test_only_requests_for_the_controller_are_carried(world, one, api_key):
    peer = Caller(world, one)
    peer.authenticate()
    inner = frames.request_frame(api_key, 0, 0, "x", bytes(50))[4:]
    response = peer.ask(ApiKey.FORWARD_REQUEST, 0, ForwardRequestRequest(frame=inner))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.frame == b""


def test_an_inactive_controller_says_so(world, two):
    peer = Caller(world, two)
    peer.authenticate()
    response = peer.ask(ApiKey.FORWARD_REQUEST, 0, ForwardRequestRequest(frame=b"x" * 20))
    assert response.error_code == ErrorCode.NOT_CONTROLLER


def test_other_requests_stay_at_the_broker(world, two):
    client = client_of(world, two)
    assert client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=())).cluster_id == "water"


def test_the_quota_of_the_controller_mutes_the_client_at_its_broker(world, one, two):
    changes = (QuotaChange(MUTATION_RATE, 1.0),)
    one.node.broker.controller.alter_quotas([QuotaAlteration((("user", "ANONYMOUS"),), changes)])
    world.run_until(lambda: one.node.broker.image.client_quotas)
    client = client_of(world, two)
    response = client.ask(ApiKey.CREATE_TOPICS, 7, creation(*(f"t{number}" for number in range(15))))
    codes = [topic.error_code for topic in response.topics]
    assert codes == [0] * 12 + [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 3, "11 are saved up, and one is a debt"
    assert 0 < response.throttle_time_ms <= 1_000
    assert two.node.metrics.throttled_requests[MUTATION_RATE] == 1
    assert one.node.metrics.throttled_requests[MUTATION_RATE] == 0
    began = two.machine.clock.monotonic_ms()
    assert client.ask(ApiKey.CREATE_TOPICS, 7, creation("late")).topics[0].error_code == 0
    assert two.machine.clock.monotonic_ms() - began >= response.throttle_time_ms / 2
