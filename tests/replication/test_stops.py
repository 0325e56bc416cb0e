"""A leader that is stopped serves its clients until another broker leads, and tells them which."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE
from headrace.wire.apis import ApiKey
from headrace.wire.messages.produce import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic
from headrace.wire.records.builder import NewRecord, build_batch
from tests.peers.nodes import CLIENT_PORT
from tests.peers.test_listener import Caller
from tests.replication.trios import TOPIC, Trio

LEADER = 2
VERSION = 10
"""The first version whose responses name the leader (KIP-951)."""
ACKS_ALL = -1


@pytest.fixture
def trio():
    trio = Trio()
    end = trio.append(b"a")
    trio.run_until(lambda: all(trio.role(number).high_watermark == end for number in trio.nodes))
    return trio


def produced(client):
    """Send a record and return the result for the partition."""
    batch = bytes(build_batch([NewRecord(timestamp=0, key=None, value=b"b")]))
    topic = ProduceRequestTopic(name=TOPIC, partition_data=(ProduceRequestPartition(index=0, records=batch),))
    request = ProduceRequest(acks=ACKS_ALL, timeout_ms=10_000, topic_data=(topic,))
    return client.ask(ApiKey.PRODUCE, VERSION, request).responses[0].partition_responses[0]


def test_a_client_of_a_leader_that_stops_learns_who_leads_now(trio):
    leader = trio.nodes[LEADER]
    client = Caller(trio.peers, leader, port=CLIENT_PORT)
    assert produced(client).error_code == ErrorCode.NONE
    leader.node.begin_stop()
    found = produced(client)
    while found.current_leader.leader_id == NO_NODE:  # a request that waits for followers gets the error alone
        assert found.error_code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        found = produced(client)
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found.current_leader.leader_id != LEADER
    trio.run_until(lambda: leader.node.drained)


def test_new_clients_are_served_until_the_leadership_has_moved(trio):
    leader = trio.nodes[LEADER]
    leader.node.begin_stop()
    assert produced(Caller(trio.peers, leader, port=CLIENT_PORT)).error_code in (
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )
    trio.run_until(lambda: leader.node.drained)
