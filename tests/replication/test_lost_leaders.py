"""Metadata while the leader may be dead: clients are not sent to it again, and hear of the next one."""

import pytest

from headrace.broker.cluster.lost_peers import LOST_MS_MAX
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE
from headrace.wire.apis import ApiKey
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.peers.nodes import CLIENT_PORT
from tests.peers.test_listener import Caller
from tests.replication.trios import TOPIC, Trio

LEADER, ASKED = 2, 3
VERSION = 9


@pytest.fixture
def trio():
    """Followers have a link to the leader; only node 1 has links to all."""
    trio = Trio()
    end = trio.append(b"a")
    trio.run_until(lambda: all(trio.role(number).high_watermark == end for number in trio.nodes))
    return trio


def metadata(trio):
    """Ask another broker than the leader; return the partition and the node ids of the brokers."""
    client = Caller(trio.peers, trio.nodes[ASKED], port=CLIENT_PORT)
    request = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))
    response = client.ask(ApiKey.METADATA, VERSION, request)
    return response.topics[0].partitions[0], {broker.node_id for broker in response.brokers}


def test_a_leader_that_was_lost_is_not_named_and_its_address_is(trio):
    assert metadata(trio)[0].leader_id == LEADER
    asked = trio.nodes[ASKED].node.broker.topic_metadata
    asked.peer_lost(LEADER)
    partition, brokers = metadata(trio)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, NO_NODE)
    assert LEADER in brokers
    asked.peer_returned(LEADER)
    assert metadata(trio)[0].leader_id == LEADER


def test_clients_hear_of_the_next_leader_of_a_broker_that_was_killed(trio):
    trio.nodes[LEADER].machine.kill()
    trio.run_until(lambda: metadata(trio)[0].leader_id != LEADER)
    trio.run_until(lambda: metadata(trio)[0].leader_id not in (LEADER, NO_NODE))
    assert LEADER in metadata(trio)[1], "librdkafka may drop the new leader when it hears both at once"
    trio.peers.pass_time(LOST_MS_MAX)
    assert LEADER not in metadata(trio)[1]


def test_a_broker_whose_link_is_reset_is_named_again_when_the_link_returns(trio):
    asked = trio.nodes[ASKED].node
    links = asked._peers.fetch_links
    route = links._routes[LEADER]
    links._drop(route.link, ConnectionResetError())
    assert metadata(trio)[0].leader_id in (LEADER, NO_NODE)
    trio.run_until(lambda: metadata(trio)[0].leader_id == LEADER)
    assert not asked.broker.image.brokers[LEADER].fenced
