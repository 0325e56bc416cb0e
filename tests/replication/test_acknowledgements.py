"""Responses of leaders while followers are behind, and after another one has taken over."""

import pytest

from headrace.core.replication.leader import Leader
from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.messages import list_offsets
from headrace.wire.records.builder import NewRecord, build_batch
from tests.broker.virtual import produce_request
from tests.replication.requests import send, wait
from tests.replication.trios import LAG_MS, TOPIC, Trio

LATEST = -1


def produce(trio, number, sequence=0, *, acks=-1, transactional=False):
    content = build_batch(
        [NewRecord(timestamp=0, key=None, value=b"v%d" % sequence)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=transactional,
    )
    return send(trio, number, ApiKey.PRODUCE, 9, produce_request([(TOPIC, [(0, bytes(content))])], acks=acks))


def produced(trio, connection):
    answer = wait(trio, connection).responses[0].partition_responses[0]
    return E(answer.error_code), answer.base_offset


def is_quiet(trio, *connections):
    trio.peers.pass_time(LAG_MS // 4)
    return not any(connection.poll() for connection in connections)


def test_a_retried_duplicate_waits_for_the_followers_as_the_first_one_does():
    trio = Trio()
    trio.peers.cut(trio.nodes[2], trio.nodes[1])
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    first = produce(trio, 2)
    trio.run_until(lambda: trio.replica(2).log.end_offset == 1)
    again = produce(trio, 2)
    assert is_quiet(trio, first, again)
    assert trio.replica(2).log.end_offset == 1
    trio.peers.heal()
    assert produced(trio, first) == produced(trio, again) == (E.NONE, 0)


def test_a_write_that_waits_fails_when_too_few_replicas_are_left_in_sync():
    trio = Trio(configs=(("min.insync.replicas", "3"),))
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    waiting = produce(trio, 2)
    trio.run_until(lambda: trio.replica(2).log.end_offset == 1)
    trio.peers.pass_time(2 * LAG_MS)
    assert produced(trio, waiting)[0] is E.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert produced(trio, produce(trio, 2, 1))[0] is E.NOT_ENOUGH_REPLICAS
    assert produced(trio, produce(trio, 2, 1, acks=1)) == (E.NONE, 1)
    trio.peers.heal()
    trio.run_until(lambda: len(trio.role(2).isr) == 3)
    assert produced(trio, produce(trio, 2, 0)) == (E.NONE, 0), "sent again, as the error asks for"


def test_a_minimum_above_the_number_of_replicas_is_that_number():
    trio = Trio(configs=(("min.insync.replicas", "5"),))
    assert produced(trio, produce(trio, 2)) == (E.NONE, 0)
    assert trio.role(2).effective_min_insync_replicas == 3


def latest(trio, number, version=7):
    partition = list_offsets.ListOffsetsRequestPartition(partition_index=0, timestamp=LATEST)
    topic = list_offsets.ListOffsetsRequestTopic(name=TOPIC, partitions=(partition,))
    request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=(topic,))
    answer = wait(trio, send(trio, number, ApiKey.LIST_OFFSETS, version, request)).topics[0].partitions[0]
    return E(answer.error_code), answer.offset


@pytest.fixture
def taken_over():
    """Broker 1 leads, with a record of which it does not know that it is committed; broker 3 cannot fetch from it."""
    trio = Trio()
    trio.peers.cut(trio.nodes[1], trio.nodes[3])
    waiting = produce(trio, 2)
    assert produced(trio, waiting) == (E.NONE, 0)
    trio.nodes[2].machine.kill()
    trio.run_until(lambda: isinstance(trio.role(1), Leader))
    return trio


def test_a_new_leader_does_not_name_the_latest_offset_before_it_knows_what_is_committed(taken_over):
    trio = taken_over
    trio.role(1).high_watermark = min(trio.role(1).high_watermark, 0)
    assert trio.replica(1).log.end_offset == trio.role(1).epoch_start_offset == 1
    assert latest(trio, 1) == (E.OFFSET_NOT_AVAILABLE, -1)
    assert latest(trio, 1, version=4)[0] is E.LEADER_NOT_AVAILABLE
    trio.peers.heal()
    trio.run_until(lambda: trio.role(1).high_watermark == 1)
    assert latest(trio, 1) == (E.NONE, 1)


def marker(trio, number, *, coordinator_epoch, producer_epoch=0):
    return trio.replica(number).append_marker(
        7, producer_epoch, commit=True, coordinator_epoch=coordinator_epoch, transaction_version=0, wall_ms=0
    )


def transactional_batch(sequence):
    return build_batch(
        [NewRecord(timestamp=0, key=None, value=b"t")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )


def test_no_leader_takes_a_marker_of_a_coordinator_that_was_replaced():
    """The coordinator moved from A to B, and back to A; the leader of the data moves as well."""
    trio = Trio()

    def committed(end):
        trio.run_until(lambda: all(trio.role(number).high_watermark >= end for number in trio.nodes))

    def open_transaction(number, sequence):
        batch = transactional_batch(sequence)
        trio.replica(number).append_own(bytearray(batch), 0)

    open_transaction(2, 0)
    end = marker(trio, 2, coordinator_epoch=4)
    committed(end)
    trio.nodes[2].machine.kill()
    trio.run_until(lambda: isinstance(trio.role(1), Leader))
    open_transaction(1, 1)
    assert marker(trio, 1, coordinator_epoch=3) is E.TRANSACTION_COORDINATOR_FENCED
    end = marker(trio, 1, coordinator_epoch=5)
    trio.nodes[2].boot()
    trio.run_until(lambda: trio.nodes[2].node.ready and trio.has(2))
    committed(end)
    trio.nodes[1].node.broker.controller.balance_leaders([TOPIC])
    trio.run_until(lambda: isinstance(trio.role(2), Leader))
    open_transaction(2, 2)
    assert marker(trio, 2, coordinator_epoch=4) is E.TRANSACTION_COORDINATOR_FENCED
    assert marker(trio, 2, coordinator_epoch=5) == trio.replica(2).log.staged_end_offset
