"""Linearizable reads: DescribeConfigs and DescribeTopicPartitions show every change acknowledged before them."""

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.linearizable_reads import LinearizableReads
from headrace.broker.timers import Timers
from headrace.core.raft.effects import ReadAllowed, RequestRefusal, RequestRefused
from headrace.core.raft.settings import READS_PENDING_MAX
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.model.limits import FORWARD_RETRY_MS, FORWARD_WAIT_MS
from headrace.sim.workloads import requests
from headrace.wire.apis import ApiKey
from headrace.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from headrace.wire.messages.read_index import ReadIndexRequest, ReadIndexResponse
from tests.cluster.pairs import Pair
from tests.cluster.three_brokers import Three
from tests.transactions.fake_peers import BROKEN, FakePeers

HERE, OTHER = NodeId(1), NodeId(2)


class Clock:
    def __init__(self):
        self.now_ms = 0.0

    def monotonic_ms(self):
        return self.now_ms


class Controller:
    """The part of ControllerHost that reads need; the test decides what the quorum and the image say."""

    def __init__(self, active):
        self.active_controller = active
        self.asked: list[Any] = []
        self.waiting: list[Any] = []
        self.quorum = SimpleNamespace(read=self.asked.append)

    @property
    def is_active(self):
        return self.active_controller == HERE

    def when_applied(self, offset, then):
        self.waiting.append((offset, then))


class Reader:
    """A node whose reads a test watches."""

    def __init__(self, active):
        self.clock, self.peers, self.controller = Clock(), FakePeers(), Controller(active)
        self.timers = Timers(self.clock)
        self.reads = LinearizableReads(self.controller, node_id=HERE, peers=self.peers, timers=self.timers)
        self.outcomes = []

    def read(self):
        self.reads.confirm(self.outcomes.append)

    def pass_time(self, duration_ms):
        self.clock.now_ms += duration_ms
        self.timers.run_due(self.clock.now_ms)

    def reach(self, offset):
        """Let the image of this node reach the offset."""
        (expected, then) = self.controller.waiting.pop(0)
        assert expected == offset
        then()


def test_a_read_waits_for_the_controller_and_then_for_the_image():
    reader = Reader(OTHER)
    reader.read()
    request = reader.peers.take()
    assert (request.node_id, request.api_key) == (OTHER, ApiKey.READ_INDEX)
    request.answer(ReadIndexResponse(metadata_offset=17))
    assert not reader.outcomes
    reader.reach(17)
    assert reader.outcomes == [True]


def test_reads_that_come_while_a_request_is_under_way_share_the_next_one():
    """The answer to the first request may be older than a change that was acknowledged before the second read."""
    reader = Reader(OTHER)
    for _ in range(3):
        reader.read()
    reader.peers.take().answer(ReadIndexResponse(metadata_offset=1))
    reader.reach(1)
    assert reader.outcomes == [True]
    reader.peers.take().answer(ReadIndexResponse(metadata_offset=2))
    reader.reach(2)
    assert reader.outcomes == [True] * 3
    assert not reader.peers.sent


@pytest.mark.parametrize("answer", [BROKEN, ReadIndexResponse(error_code=ErrorCode.NOT_CONTROLLER)])
def test_a_read_follows_the_controller(answer):
    reader = Reader(OTHER)
    reader.read()
    reader.peers.take().answer(answer)
    reader.controller.active_controller = HERE
    reader.pass_time(FORWARD_RETRY_MS)
    (confirm,) = reader.controller.asked
    confirm(ReadAllowed(ticket=None, index=5))
    reader.reach(5)
    assert reader.outcomes == [True]


def test_a_read_that_no_controller_confirms_is_refused_in_time():
    reader = Reader(None)
    reader.read()
    reader.pass_time(FORWARD_WAIT_MS - 1)
    assert not reader.outcomes
    reader.pass_time(1)
    assert reader.outcomes == [False]
    assert not reader.peers.sent


def test_a_leader_without_a_majority_confirms_nothing():
    reader = Reader(HERE)
    reader.read()
    reader.controller.asked.pop()(RequestRefused(ticket=None, reason=RequestRefusal.LEADERSHIP_LOST))
    reader.pass_time(FORWARD_WAIT_MS)
    assert reader.outcomes == [False]
    assert not reader.controller.waiting


def test_reads_above_the_limit_are_refused():
    reader = Reader(OTHER)
    for _ in range(READS_PENDING_MAX + 2):
        reader.read()
    reader.pass_time(0)
    reader.pass_time(0)  # the turn after the one in which the read came
    assert reader.outcomes == [False]


def test_the_active_controller_names_the_offset_of_its_committed_metadata():
    pair = Pair()
    pair.start()
    answer = pair.ask(ApiKey.READ_INDEX, 0, ReadIndexRequest())
    assert (answer.error_code, answer.metadata_offset) == (ErrorCode.NONE, pair.image.version)


class Readers(Three):
    """Three brokers, and a client that sets a config of a topic and reads it back."""

    def set_retention(self, virtual, value):
        change = requests.config_change("t", "retention.ms", value)
        answer = self.ask(virtual, ApiKey.INCREMENTAL_ALTER_CONFIGS, requests.ALTER_CONFIGS, change)
        assert answer.responses[0].error_code == ErrorCode.NONE

    def send_read(self, virtual):
        wanted = requests.config_of("t", "retention.ms")
        return self.send(virtual, ApiKey.DESCRIBE_CONFIGS, requests.DESCRIBE_CONFIGS, wanted)


@pytest.fixture(scope="module")
def three():
    three = Readers()
    created = three.ask(
        three.cluster.nodes[0], ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, requests.new_topic("t", 1)
    )
    assert created.topics[0].error_code == ErrorCode.NONE
    return three


@pytest.mark.slow
def test_every_broker_shows_an_acknowledged_change_and_one_without_a_quorum_shows_nothing(three):
    first, second, third = three.cluster.nodes
    three.set_retention(first, "1000")
    for virtual in three.cluster.nodes:
        assert three.answer(three.send_read(virtual)).results[0].configs[0].value == "1000"

    three.isolate(third)
    waiting = three.send_read(third)
    three.world.step()
    three.set_retention(first if first.running.quorum.leader != 3 else second, "2000")
    refused = three.answer(waiting).results[0]
    assert (refused.error_code, refused.configs) == (ErrorCode.NOT_CONTROLLER, ())
    assert "try again" in refused.error_message
    for topics in ((), ("t",)):
        wanted = requests.partitions_of("t") if topics else DescribeTopicPartitionsRequest()
        answer = three.ask(third, ApiKey.DESCRIBE_TOPIC_PARTITIONS, requests.DESCRIBE_TOPIC_PARTITIONS, wanted)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.NOT_CONTROLLER]

    waiting = three.send_read(third)
    three.world.fabric.links.heal()
    assert three.answer(waiting).results[0].configs[0].value == "2000"
