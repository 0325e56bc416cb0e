"""Markers to leaders on other brokers: sent to the leader of now, and written only when that leader says so."""

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.coordinators.marker_requests import MARKER_REQUESTS_IN_FLIGHT_MAX, MARKERS_PER_REQUEST_MAX
from headrace.broker.coordinators.markers import (
    MARKER_RETRY_MS_MAX,
    MARKER_RETRY_MS_MIN,
    MarkerSender,
    TransactionMarker,
)
from headrace.broker.marker_writes import MarkerFields
from headrace.broker.timers import Timers
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from headrace.model.errors import ErrorCode
from headrace.sim.clock import VirtualClock, VirtualTime
from headrace.wire.apis import ApiKey
from headrace.wire.messages.write_txn_markers import (
    WriteTxnMarkersResponse,
    WriteTxnMarkersResponseMarker,
    WriteTxnMarkersResponsePartition,
    WriteTxnMarkersResponseTopic,
)
from tests.transactions.fake_peers import BROKEN, FakePeers

HERE, OTHER, THIRD, NO_LEADER = 1, 2, 3, -1
NONE, NOT_LEADER = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER
UNKNOWN_PARTITION = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
FIELDS = MarkerFields(12, 6, True, 3, 2)


class Harness:
    """A sender on broker 1, whose image the test changes, and peers that the test plays."""

    def __init__(self):
        self.time = VirtualTime()
        clock = VirtualClock(self.time)
        self.timers = Timers(clock)
        self.image = MetadataImage()
        self.peers = FakePeers()
        self.errors_logged: list[Any] = []
        services = SimpleNamespace(image=self.image, node_id=HERE, peers=self.peers, clock=clock, partitions=None)
        logger = SimpleNamespace(error=lambda event, **fields: self.errors_logged.append(fields["error"]))
        self.sender = MarkerSender(services, SimpleNamespace(timers=self.timers, logger=logger))
        self.done = 0
        self.void = False

    def turn(self, duration_ms=0.0):
        self.time.advance(duration_ms)
        for _ in range(20):
            self.timers.run_due(self.timers.now_ms())

    def apply(self, record):
        self.image.apply(record)
        self.image.version += 1

    def topic(self, name="t", *, leader=OTHER, partitions=1, topic_id=None):
        topic_id = topic_id or name.encode().ljust(16)
        self.apply(TopicRecord(name, topic_id))
        for index in range(partitions):
            self.apply(PartitionRecord(topic_id, index, (OTHER,), (OTHER,), leader, 0, 0, (bytes(16),)))

    def elect(self, leader, name="t"):
        self.apply(PartitionChangeRecord(self.image.topics[name].topic_id, 0, leader=leader))

    def send(self, *partitions, metadata_offset=0):
        def done():
            self.done += 1

        marker = TransactionMarker(FIELDS, frozenset(partitions or {("t", 0)}), metadata_offset)
        self.sender.send(marker, done, lambda: self.void)
        self.turn()


def response(request, *errors):
    """Answer each marker of the request with its error; with one error, all of them."""
    codes = errors * len(request.message.markers) if len(errors) == 1 else errors
    return WriteTxnMarkersResponse(
        markers=tuple(
            WriteTxnMarkersResponseMarker(
                producer_id=marker.producer_id,
                topics=tuple(
                    WriteTxnMarkersResponseTopic(
                        name=topic.name,
                        partitions=tuple(
                            WriteTxnMarkersResponsePartition(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker, code in zip(request.message.markers, codes, strict=True)
        )
    )


@pytest.fixture
def harness():
    return Harness()


def test_a_marker_goes_to_the_leader_and_is_written_when_it_says_so(harness):
    harness.topic()
    harness.send()
    request = harness.peers.take()
    assert (request.node_id, request.api_key) == (OTHER, ApiKey.WRITE_TXN_MARKERS)
    (marker,) = request.message.markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (12, 6, True)
    assert (marker.coordinator_epoch, marker.transaction_version, marker.sync) == (3, 2, False)
    assert request.message.metadata_offset == harness.image.version
    assert (harness.done, harness.sender.unwritten) == (0, 1)
    request.answer(response(request, NONE))
    assert (harness.done, harness.sender.unwritten) == (1, 0)


@pytest.mark.parametrize("answer", [NOT_LEADER, UNKNOWN_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, None])
def test_a_marker_that_is_refused_or_lost_is_sent_to_the_leader_of_then(harness, answer):
    """No answer of another broker proves that a partition is deleted: only the own image does."""
    harness.topic()
    harness.send()
    request = harness.peers.take()
    request.answer(BROKEN if answer is None else response(request, answer))
    harness.elect(THIRD)
    harness.turn()
    assert not harness.peers.sent
    harness.turn(MARKER_RETRY_MS_MIN)
    request = harness.peers.take()
    assert request.node_id == THIRD
    assert harness.done == 0
    request.answer(response(request, NONE))
    assert harness.done == 1


def test_the_pause_between_attempts_grows_to_its_limit(harness):
    harness.topic()
    harness.send()
    pauses = []
    for _ in range(6):
        request = harness.peers.take()
        request.answer(response(request, NOT_LEADER))
        begun_ms = harness.time.now_ms
        while not harness.peers.sent:
            harness.turn(50)
        pauses.append(harness.time.now_ms - begun_ms)
    assert pauses[0] == MARKER_RETRY_MS_MIN
    assert pauses == sorted(pauses)
    assert pauses[-1] == MARKER_RETRY_MS_MAX


def test_a_partition_without_a_leader_is_waited_for(harness):
    harness.topic(leader=NO_LEADER)
    harness.send()
    assert (harness.peers.sent, harness.done) == ([], 0)
    harness.elect(OTHER)
    harness.turn(MARKER_RETRY_MS_MIN)
    request = harness.peers.take()
    request.answer(response(request, NONE))
    assert harness.done == 1


def test_a_topic_that_a_lagging_image_lacks_is_not_deleted(harness):
    harness.send(metadata_offset=2)
    harness.turn(MARKER_RETRY_MS_MAX)
    assert (harness.peers.sent, harness.done, harness.sender.unwritten) == ([], 0, 1)
    harness.topic()
    harness.turn(MARKER_RETRY_MS_MAX)
    request = harness.peers.take()
    request.answer(response(request, NONE))
    assert harness.done == 1


def test_a_lagging_image_may_show_the_former_topic_of_the_name(harness):
    harness.topic(leader=OTHER)
    reached = harness.image.version
    harness.send(metadata_offset=reached + 3)
    harness.turn(MARKER_RETRY_MS_MAX)
    assert not harness.peers.sent, "this leader has no records of the transaction"
    harness.apply(RemoveTopicRecord(harness.image.topics["t"].topic_id))
    harness.topic(leader=THIRD, topic_id=b"another topic id")
    harness.turn(MARKER_RETRY_MS_MAX)
    assert harness.peers.take().node_id == THIRD


def test_a_deleted_partition_needs_no_marker(harness):
    harness.topic()
    known_at = harness.image.version
    harness.apply(RemoveTopicRecord(harness.image.topics["t"].topic_id))
    harness.send(metadata_offset=known_at)
    assert (harness.peers.sent, harness.done, harness.sender.unwritten) == ([], 1, 0)


def test_a_marker_is_done_when_the_last_of_its_partitions_has_it(harness):
    harness.topic("a", leader=OTHER)
    harness.topic("b", leader=THIRD)
    harness.send(("a", 0), ("b", 0))
    first, second = harness.peers.sent
    assert {first.node_id, second.node_id} == {OTHER, THIRD}
    first.answer(response(first, NONE))
    assert harness.done == 0
    second.answer(response(second, NONE))
    assert harness.done == 1


def test_a_partition_that_the_response_leaves_out_is_not_written(harness):
    harness.topic()
    harness.send()
    harness.peers.take().answer(WriteTxnMarkersResponse(markers=()))
    assert harness.done == 0
    harness.turn(MARKER_RETRY_MS_MIN)
    assert len(harness.peers.sent) == 1


def test_a_fenced_marker_is_given_up_and_logged(harness):
    harness.topic()
    harness.send()
    request = harness.peers.take()
    request.answer(response(request, ErrorCode.TRANSACTION_COORDINATOR_FENCED))
    assert harness.done == 1
    assert harness.errors_logged == ["TRANSACTION_COORDINATOR_FENCED"]


def test_a_lost_coordinator_leaves_its_markers_to_the_next_one(harness):
    harness.topic()
    harness.send()
    request = harness.peers.take()
    harness.void = True
    request.answer(response(request, NOT_LEADER))
    harness.turn(MARKER_RETRY_MS_MAX)
    assert (harness.peers.sent, harness.done, harness.sender.unwritten) == ([], 0, 0)


def test_a_late_answer_to_a_lost_coordinator_ends_nothing(harness):
    harness.topic()
    harness.send()
    harness.void = True
    request = harness.peers.take()
    request.answer(response(request, NONE))
    assert (harness.done, harness.sender.unwritten) == (0, 0)


def test_many_markers_share_few_requests(harness):
    count = MARKER_REQUESTS_IN_FLIGHT_MAX * MARKERS_PER_REQUEST_MAX
    harness.topic(partitions=count)
    harness.send(*(("t", index) for index in range(count)))
    for _ in range(count):
        harness.turn()
    assert len(harness.peers.sent) == MARKER_REQUESTS_IN_FLIGHT_MAX
    answered = 0
    while harness.peers.sent:
        assert len(harness.peers.sent) <= MARKER_REQUESTS_IN_FLIGHT_MAX
        request = harness.peers.sent.pop(0)
        answered += 1
        request.answer(response(request, NONE))
    assert (harness.done, harness.sender.unwritten) == (1, 0)
    assert answered <= 2 * MARKER_REQUESTS_IN_FLIGHT_MAX


def test_a_broker_that_cannot_be_reached_is_left_alone_for_a_while(harness):
    harness.topic(partitions=2)
    harness.send(("t", 0))
    harness.peers.take().answer(BROKEN)
    harness.send(("t", 1))
    assert not harness.peers.sent
    harness.turn(MARKER_RETRY_MS_MIN)
    (request,) = harness.peers.sent
    assert len(request.message.markers) == 2
