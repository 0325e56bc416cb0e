"""Partitions whose leader changes while clients use them."""

import pytest

from headrace.broker.partitions.fetch_waiters import ReadBound
from headrace.broker.partitions.produced_batch import append_produced
from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    create_topics,
    delete_records,
    describe_producers,
    list_offsets,
    offset_for_leader_epoch,
)
from tests.broker.other_brokers import NO_LEADER, OTHER, THIS, commit, commit_and_wait, elect, election
from tests.broker.virtual import LONG_MS, VirtualBroker, new_topic, sequenced, values_of


@pytest.fixture
def broker():
    return VirtualBroker().with_topic("t")


@pytest.fixture
def client(broker):
    return broker.client()


def list_offsets_error(client):
    asked = list_offsets.ListOffsetsRequestPartition(partition_index=0, timestamp=-1)
    topic = list_offsets.ListOffsetsRequestTopic(name="t", partitions=(asked,))
    request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=(topic,))
    return client.ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0].error_code


def epoch_end_error(client):
    asked = offset_for_leader_epoch.OffsetForLeaderEpochRequestPartition(partition=0, leader_epoch=0)
    topic = offset_for_leader_epoch.OffsetForLeaderEpochRequestTopic(topic="t", partitions=(asked,))
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,))
    return client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions[0].error_code


def delete_records_error(client):
    asked = delete_records.DeleteRecordsRequestPartition(partition_index=0, offset=0)
    topic = delete_records.DeleteRecordsRequestTopic(name="t", partitions=(asked,))
    request = delete_records.DeleteRecordsRequest(topics=(topic,), timeout_ms=1_000)
    return client.ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0].error_code


def describe_producers_error(client):
    topic = describe_producers.DescribeProducersRequestTopic(name="t", partition_indexes=(0,))
    request = describe_producers.DescribeProducersRequest(topics=(topic,))
    return client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics[0].partitions[0].error_code


@pytest.mark.parametrize("leader", [OTHER, NO_LEADER], ids=["another", "none"])
def test_after_the_leadership_has_moved_every_request_is_refused(broker, client, leader):
    assert client.produce_error("t") == E.NONE
    elect(broker, "t", 0, leader)
    errors = {
        client.produce_error("t"),
        client.fetch("t").error_code,
        list_offsets_error(client),
        epoch_end_error(client),
        delete_records_error(client),
        describe_producers_error(client),
    }
    assert errors == {E.NOT_LEADER_OR_FOLLOWER}


def test_a_partition_that_is_led_again_has_its_records_and_a_new_epoch(broker, client):
    client.produce("t", content=client.batch(b"before"))
    epoch = broker.partition("t").role.leader_epoch
    elect(broker, "t", 0, NO_LEADER)
    elect(broker, "t", 0, THIS)
    assert client.produce("t", content=client.batch(b"after")).base_offset == 1
    assert client.values("t") == [b"before", b"after"]
    assert broker.partition("t").log.epochs.epoch_at(1) == epoch + 2


def test_a_new_epoch_of_the_same_leader_serves_on(broker, client):
    client.produce("t")
    epoch = broker.partition("t").role.leader_epoch
    waiting = client.send_fetch(("t", 0, 1), wait_ms=LONG_MS)
    broker.steps()
    elect(broker, "t", 0, THIS)
    assert not client.has_answer(waiting)
    producer = broker.client()
    assert producer.produce_error("t") == E.NONE
    answer = client.wait(waiting).responses[0].partitions[0]
    assert (answer.error_code, values_of(answer.records)) == (E.NONE, [b"v"])
    assert producer.fetch("t", leader_epoch=epoch).error_code == E.FENCED_LEADER_EPOCH
    assert producer.fetch("t", leader_epoch=epoch + 1).error_code == E.NONE
    assert producer.fetch("t", leader_epoch=epoch + 2).error_code == E.UNKNOWN_LEADER_EPOCH


def test_a_parked_fetch_is_answered_at_once(broker, client):
    waiting = client.send_fetch(("t", 0, 0), wait_ms=LONG_MS)
    broker.steps()
    elect(broker, "t", 0, OTHER)
    assert client.wait(waiting).responses[0].partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER
    assert broker.world.time.now_ms < LONG_MS


def test_a_produce_request_that_waits_for_its_commit_is_answered_at_once():
    broker = VirtualBroker().with_topic("t", flush_messages=1)
    client = broker.client()
    broker.hold_syncs()
    waiting = client.send_produce("t")
    broker.run_until(lambda: broker.partition("t").log.end_offset == 1)
    elect(broker, "t", 0, OTHER)
    assert client.wait(waiting).responses[0].partition_responses[0].error_code == E.NOT_LEADER_OR_FOLLOWER
    broker.release_syncs()
    elect(broker, "t", 0, THIS)
    broker.steps()
    assert client.values("t") == [b"v"], "it was written, so it may be read after all"


def test_batches_of_the_turn_in_which_the_leadership_moves_are_taken_back(broker, client):
    """The idempotent producer sends them again to the next leader, under the same sequence numbers."""
    client.produce("t", content=sequenced(client, 0))
    replica = broker.partition("t")
    batch = memoryview(bytearray(sequenced(client, 1)))
    state = broker.node.broker.image.topics["t"].partitions[0]
    assert append_produced(replica, batch, 0, len(batch), 9, -1, client.now()).base_offset == 1
    replica.resign(state._replace(leader=OTHER, leader_epoch=state.leader_epoch + 1))
    assert (replica.log.staged_end_offset, replica.log.staged) == (1, False)
    replica.lead(THIS, state._replace(leader_epoch=state.leader_epoch + 2), replica_lag_ms_max=30_000)
    assert client.produce("t", content=sequenced(client, 1)).base_offset == 1
    assert client.values("t") == [b"s0", b"s1"]


def test_the_leadership_moves_while_the_partition_is_being_created():
    broker = VirtualBroker()
    client = broker.client()
    broker.machine.spawner.hold(name_contains="open_logs")
    request = create_topics.CreateTopicsRequest(topics=(new_topic("late"),), timeout_ms=LONG_MS)
    client.send(ApiKey.CREATE_TOPICS, 7, request)
    broker.run_until(lambda: "late" in broker.node.broker.image.topics)
    commit(broker.node, election(broker, "late", 0, OTHER))
    broker.steps()
    broker.machine.spawner.release()
    broker.run_until(lambda: broker.partition("late") is not None)
    assert broker.client().produce_error("late") == E.NOT_LEADER_OR_FOLLOWER


class WokenWaiter:
    def __init__(self):
        self.woken = []

    def readable(self, partition, new_bytes):
        self.woken.append(new_bytes)


def test_a_waiter_on_the_log_end_is_woken_before_the_commit():
    broker = VirtualBroker().with_topic("t", flush_messages=1)
    client, at_end, at_high_watermark = broker.client(), WokenWaiter(), WokenWaiter()
    broker.partition("t").add_waiter(at_end, ReadBound.LOG_END)
    broker.partition("t").add_waiter(at_high_watermark)
    broker.hold_syncs()
    content = client.batch(b"x")
    client.send_produce("t", content=content)
    broker.run_until(lambda: at_end.woken)
    assert (at_end.woken, at_high_watermark.woken) == ([len(content)], [])
    broker.release_syncs()
    broker.run_until(lambda: at_high_watermark.woken)
    assert len(at_end.woken) == 1
    broker.partition("t").remove_waiter(at_end)
    client.produce("t")
    assert len(at_end.woken) == 1


def test_a_partition_that_cannot_take_its_role_does_not_keep_others_from_theirs():
    broker = VirtualBroker().with_topic("t", partitions=2)
    elect(broker, "t", 0, NO_LEADER)
    elect(broker, "t", 1, NO_LEADER)
    broker.node.loop.strict = False
    broker.partition("t", 0).log.begin_epoch = lambda leader_epoch: 1 / 0
    commit_and_wait(broker, election(broker, "t", 0, THIS), election(broker, "t", 1, THIS))
    assert broker.client().produce_error("t", 1) == E.NONE
