"""A coordinator whose transactions have partitions on another broker, which the test plays."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from tests.broker.other_brokers import OTHER, commit_and_wait, elect, registration
from tests.transactions.fake_peers import FakePeers
from tests.transactions.test_markers import response
from tests.transactions.wire import TransactionClient, known, transaction_broker

NONE = ErrorCode.NONE


@pytest.fixture
def broker():
    """Coordinates "id" and leads two partitions of "t"; partition 1 is on the other broker."""
    broker = transaction_broker()
    broker.node.broker.peers = FakePeers()
    commit_and_wait(broker, registration())
    elect(broker, "t", 1, OTHER, replicas=(OTHER,))
    return broker


@pytest.fixture
def client(broker):
    client = TransactionClient(broker)
    assert client.init() is NONE
    return client


def sent(broker):
    """Wait for the request to the other broker, and take it."""
    peers = broker.node.broker.peers
    broker.run_until(lambda: peers.sent)
    return peers.take()


def test_a_transaction_is_complete_when_the_other_broker_has_its_marker(broker, client):
    assert client.add(0, 1) == [NONE, NONE]
    assert client.commit() is NONE
    request = sent(broker)
    assert (request.node_id, request.api_key) == (OTHER, ApiKey.WRITE_TXN_MARKERS)
    assert [marker.topics[0].partition_indexes for marker in request.message.markers] == [(1,)]
    broker.steps()
    assert (known(broker).state, client.markers()) == ("PrepareCommit", ["COMMIT"])
    request.answer(response(request, NONE))
    broker.steps()
    assert known(broker).state == "CompleteCommit"


def test_a_restarted_coordinator_sends_the_marker_again(broker, client):
    assert client.add(1) == [NONE]
    assert client.abort() is NONE
    first = sent(broker)
    broker.restart()
    broker.node.broker.peers = FakePeers()
    again = sent(broker)
    (marker,), (repeated,) = first.message.markers, again.message.markers
    assert (repeated.producer_id, repeated.producer_epoch) == (marker.producer_id, marker.producer_epoch)
    assert repeated.coordinator_epoch > marker.coordinator_epoch
    assert not repeated.transaction_result
    again.answer(response(again, NONE))
    broker.run_until(lambda: known(broker) is not None and known(broker).state == "CompleteAbort")


def test_the_record_of_a_transaction_has_the_metadata_offset_of_its_partitions(broker, client):
    assert client.add(0) == [NONE]
    assert known(broker).metadata_offset == broker.node.broker.image.version
    broker.with_topic("later")
    assert client.add(0, topic="later") == [NONE]
    assert known(broker).metadata_offset == broker.node.broker.image.version
