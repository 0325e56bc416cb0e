"""Members of a cluster at the active controller: registrations and heartbeats of peers, sessions, and their ends."""

import pytest

from headrace.core.controller.commands import CreatableTopic
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.wire.messages.report_broker_gone import ReportBrokerGoneRequest
from tests.cluster.pairs import TWO, Pair
from tests.peers.nodes import PEER_PORT

SESSION_MS = 6_000


@pytest.fixture
def pair():
    return Pair()


def test_a_peer_registers_and_is_unfenced_when_it_has_caught_up(pair):
    answer = pair.register(rack="left", host="here", is_controller=True)
    assert answer.error_code == ErrorCode.NONE
    broker = pair.image.brokers[TWO]
    assert (broker.broker_epoch, broker.fenced, broker.rack, broker.host) == (answer.broker_epoch, True, "left", "here")
    assert broker.is_controller
    assert broker.endpoints["CONTROLLER"].port == PEER_PORT
    behind = pair.beat(broker.broker_epoch, metadata_offset=broker.broker_epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    reached = pair.beat(broker.broker_epoch)
    assert (reached.is_caught_up, reached.is_fenced) == (True, False)
    assert not pair.image.brokers[TWO].fenced


def test_a_second_process_with_the_same_node_id_is_refused_with_the_reason(pair):
    pair.start()
    refused = pair.register(incarnation=b"2" * 16, metadata_directory=b"d" * 16)
    assert refused.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert "give this broker another node.id" in refused.error_message
    pair.peers.pass_time(SESSION_MS + 1_000)
    assert pair.register(incarnation=b"2" * 16, metadata_directory=b"d" * 16).error_code == ErrorCode.NONE


def test_a_broker_of_another_cluster_is_refused(pair):
    refused = pair.register(cluster_id="wine")
    assert refused.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert "belongs to cluster wine, this is cluster water" in refused.error_message


def test_a_node_speaks_for_itself_alone(pair):
    epoch = pair.image.brokers[NodeId(1)].broker_epoch
    beat = pair.beat(epoch, node_id=NodeId(1), wants_shut_down=True)
    assert beat.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert pair.register(broker_id=1).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    ids = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    assert pair.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, ids).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_silent_broker_is_fenced_after_its_session_and_loses_its_partitions(pair):
    epoch = pair.start()
    pair.peers.pass_time(SESSION_MS - 1_500)
    assert not pair.image.brokers[TWO].fenced
    assert not pair.beat(epoch).is_fenced
    pair.peers.pass_time(SESSION_MS - 1_500)
    assert not pair.image.brokers[TWO].fenced
    pair.peers.pass_time(3_000)
    assert pair.image.brokers[TWO].fenced
    assert pair.one.said("broker 2 sent no heartbeat for 6 s and is fenced")
    assert not pair.image.brokers[NodeId(1)].fenced
    assert not pair.beat(epoch).is_fenced  # it lives after all, and comes back under its epoch


def test_the_partitions_of_a_lost_broker_wait_for_it(pair):
    epoch = pair.start()
    proposal = pair.controller.create_topics([CreatableTopic(name="orders", partition_count=4, replication_factor=1)])
    pair.peers.run_until(lambda: proposal.outcome is not None)
    assert [state.leader for state in pair.image.topics["orders"].partitions].count(2) == 2
    pair.peers.pass_time(SESSION_MS + 1_500)
    leaders = [state.leader for state in pair.image.topics["orders"].partitions]
    assert (leaders.count(1), leaders.count(NO_NODE)) == (2, 2)
    pair.beat(epoch)
    assert [state.leader for state in pair.image.topics["orders"].partitions].count(2) == 2


def test_a_killed_broker_is_fenced_at_once(pair):
    pair.start()
    pair.one.links.post(TWO, b"hello")
    pair.peers.run_until(lambda: pair.one.has_link_to(pair.two))
    pair.two.machine.kill()
    pair.peers.pass_time(500)
    assert pair.image.brokers[TWO].fenced
    assert pair.one.said("broker 2 refuses connections and is fenced")


def test_a_reset_alone_fences_no_broker(pair):
    pair.start()
    pair.one.links.post(TWO, b"hello")
    pair.peers.run_until(lambda: pair.one.has_link_to(pair.two))
    for _route, link in tuple(pair.one.links._by_token.values()):
        pair.one.links._drop(link, ConnectionResetError("a machine between the two has reset it"))
    pair.peers.pass_time(1_000)
    assert pair.one.has_link_to(pair.two)
    assert not pair.image.brokers[TWO].fenced


def test_a_report_about_an_earlier_epoch_is_ignored(pair):
    earlier = pair.start()
    epoch = pair.register(incarnation=b"2" * 16).broker_epoch
    pair.beat(epoch)
    pair.ask(ApiKey.REPORT_BROKER_GONE, 0, ReportBrokerGoneRequest(broker_id=2, broker_epoch=earlier))
    pair.peers.steps()
    assert not pair.image.brokers[TWO].fenced
    pair.ask(ApiKey.REPORT_BROKER_GONE, 0, ReportBrokerGoneRequest(broker_id=2, broker_epoch=epoch))
    pair.peers.run_until(lambda: pair.image.brokers[TWO].fenced)


def test_a_controlled_shutdown_fences_the_broker_and_the_next_process_may_register(pair):
    epoch = pair.start()
    assert pair.beat(epoch, wants_shut_down=True).should_shut_down
    broker = pair.image.brokers[TWO]
    assert (broker.fenced, broker.in_controlled_shutdown) == (True, True)
    assert pair.register(incarnation=b"2" * 16, metadata_directory=b"d" * 16).error_code == ErrorCode.NONE


def test_producer_ids_for_a_peer(pair):
    epoch = pair.start()
    blocks = [
        pair.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch))
        for _ in range(2)
    ]
    assert blocks[0].producer_id_len == 1_000
    assert blocks[1].producer_id_start == blocks[0].producer_id_start + 1_000
    stale = pair.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch - 1))
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_restarted_controller_probes_every_broker_at_once(pair):
    pair.start()
    pair.one.machine.kill()
    pair.two.machine.kill()
    pair.one.boot()
    pair.peers.run_until(lambda: pair.one.node.ready)
    pair.peers.pass_time(1_000)
    assert pair.one.node.broker.image.brokers[TWO].fenced
