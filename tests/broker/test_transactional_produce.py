"""Batches of transactions through the wire: what the coordinator is asked, who waits for it, and what is refused."""

from typing import Any

import pytest

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.produce import transaction_hold
from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.messages import write_txn_markers
from headrace.wire.records.header import CONTROL_BIT

from .virtual import VirtualBroker, produce_frame, produce_request, sequenced

PRODUCER = 7


class FakeTransactions:
    """Stands for the coordinator: keeps every question until the test answers it."""

    def __init__(self):
        self.asked = []
        self.proposals = []
        self.always = None
        self.next = []

    def check(self, transactional_id, producer_id, producer_epoch, partitions, *, add):
        self.asked.append((transactional_id, producer_id, producer_epoch, tuple(partitions), add))
        proposal: Proposal[Any] = Proposal()
        self.proposals.append((proposal, tuple(partitions)))
        if self.next or self.always is not None:
            self.answer(self.next.pop(0) if self.next else self.always)
        return proposal

    def answer(self, error=E.NONE, **by_topic):
        proposal, partitions = self.proposals.pop(0)
        if isinstance(error, ProposalFailed):
            proposal.complete(error)
        else:
            proposal.complete({(topic, index): by_topic.get(topic, error) for topic, index in partitions})


@pytest.fixture
def broker():
    broker = VirtualBroker().with_topic("t", partitions=2).with_topic("u")
    broker.coordinator = broker.node.broker.produce.transaction_hold.transactions = FakeTransactions()
    return broker


def batch(client, sequence, *values, epoch=0, producer=PRODUCER):
    values = values or (b"v%d" % sequence,)
    return client.batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=True)


def send(client, *topics, version=11, transactional_id="bank", **options):
    return client.send(
        ApiKey.PRODUCE, version, produce_request(topics, transactional_id=transactional_id, version=version, **options)
    )


def send_one(client, content, *, topic="t", partition=0, **options):
    return send(client, (topic, [(partition, content)]), **options)


def errors(response):
    return [answer.error_code for topic in response.responses for answer in topic.partition_responses]


def marker(client, *, epoch=0, commit=True, version=0, producer=PRODUCER, coordinator_epoch=0, partitions=(("t", 0),)):
    topics = tuple(
        write_txn_markers.WriteTxnMarkersRequestTopic(name=name, partition_indexes=(index,))
        for name, index in partitions
    )
    one = write_txn_markers.WriteTxnMarkersRequestMarker(
        producer_id=producer,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    )
    answer = client.ask(ApiKey.WRITE_TXN_MARKERS, 2, write_txn_markers.WriteTxnMarkersRequest(markers=(one,)))
    found = [partition.error_code for topic in answer.markers[0].topics for partition in topic.partitions]
    return found[0] if len(found) == 1 else found


def test_the_first_batch_waits_for_the_coordinator_and_the_next_do_not(broker):
    client = broker.client()
    first = send_one(client, batch(client, 0))
    broker.steps()
    assert not client.has_answer(first)
    assert broker.coordinator.asked == [("bank", PRODUCER, 0, (("t", 0),), False)]
    broker.coordinator.answer()
    assert errors(client.wait(first)) == [E.NONE]
    for sequence in range(1, 5):
        assert errors(client.wait(send_one(client, batch(client, sequence)))) == [E.NONE]
    assert len(broker.coordinator.asked) == 1
    assert client.read_all("t") == [b"v%d" % sequence for sequence in range(5)]
    assert not broker.node.broker.produce.transaction_hold._queues
    assert broker.node.broker.produce.transaction_hold.bytes == 0


@pytest.mark.parametrize(("version", "adds"), [(3, False), (11, False), (12, True)])
def test_from_version_12_the_partition_is_added(broker, version, adds):
    client = broker.client()
    broker.coordinator.always = E.NONE
    assert errors(client.wait(send_one(client, batch(client, 0), version=version))) == [E.NONE]
    assert broker.coordinator.asked[0][-1] is adds


def test_topic_ids(broker):
    client = broker.client()
    broker.coordinator.always = E.NONE
    topic_id = client.topic_id("t")
    assert errors(client.wait(send_one(client, batch(client, 0), topic=topic_id, version=13))) == [E.NONE]
    assert broker.coordinator.asked[0][3] == (("t", 0),)


def test_what_is_sent_behind_a_held_batch_keeps_its_order_and_its_bytes(broker):
    """Each request is received into the same memory; later ones and other clients' must not overwrite the held."""
    client, other = broker.client(), broker.client()
    sent = [send_one(client, batch(client, sequence, b"held-%d" % sequence)) for sequence in range(8)]
    plain = client.send_produce("u", 0, client.batch(b"plain"))
    broker.steps()
    for number in range(5):
        assert other.produce_error("u", 0, other.batch(bytes([number]) * 500)) == E.NONE
    assert not any(client.has_answer(correlation) for correlation in (*sent, plain)), "answers keep their order"
    broker.coordinator.answer()
    assert [errors(client.wait(correlation)) for correlation in sent] == [[E.NONE]] * 8
    assert errors(client.wait(plain)) == [E.NONE]
    assert client.read_all("t") == [b"held-%d" % sequence for sequence in range(8)]
    assert len(broker.coordinator.asked) == 1


def test_batches_of_another_producer_do_not_wait(broker):
    client, other = broker.client(), broker.client()
    held = send_one(client, batch(client, 0))
    broker.steps()
    assert other.produce_error("t", 0, sequenced(other, 0, b"idempotent", producer=99)) == E.NONE
    assert other.produce_error("t", 0, other.batch(b"plain")) == E.NONE
    broker.coordinator.answer()
    assert errors(client.wait(held)) == [E.NONE]


def test_a_request_is_appended_whole_or_by_partition_as_the_coordinator_says(broker):
    client = broker.client()
    asked = send(client, ("t", [(0, batch(client, 0)), (1, batch(client, 0))]), ("u", [(0, batch(client, 0))]))
    broker.steps()
    broker.coordinator.answer(u=E.INVALID_TXN_STATE)
    assert errors(client.wait(asked)) == [E.NONE, E.NONE, E.INVALID_TXN_STATE]
    assert broker.partition("u").log.end_offset == 0
    again = send(client, ("t", [(0, batch(client, 1))]), ("u", [(0, batch(client, 0))]))
    broker.steps()
    assert broker.coordinator.asked[1][3] == (("u", 0),), "only what is not open is asked for"
    broker.coordinator.answer()
    assert errors(client.wait(again)) == [E.NONE, E.NONE]


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (E.INVALID_TXN_STATE, 11, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, 10, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, 11, E.TRANSACTION_ABORTABLE),
        (E.PRODUCER_FENCED, 11, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_EPOCH, 11, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_ID_MAPPING, 11, E.INVALID_PRODUCER_ID_MAPPING),
        (E.CONCURRENT_TRANSACTIONS, 11, E.NOT_ENOUGH_REPLICAS),
        (E.CONCURRENT_TRANSACTIONS, 12, E.CONCURRENT_TRANSACTIONS),
        (E.NOT_COORDINATOR, 12, E.NOT_ENOUGH_REPLICAS),
        (E.COORDINATOR_NOT_AVAILABLE, 12, E.NOT_ENOUGH_REPLICAS),
        (E.COORDINATOR_LOAD_IN_PROGRESS, 9, E.NOT_ENOUGH_REPLICAS),
    ],
)
@pytest.mark.parametrize("failed", [False, True])
def test_the_error_that_a_producer_gets_for_a_refusal(broker, said, version, told, failed):
    client = broker.client()
    broker.coordinator.always = ProposalFailed(said, "no") if failed else said
    assert errors(client.wait(send_one(client, batch(client, 0), version=version))) == [told]
    assert broker.partition("t").log.end_offset == 0
    assert not broker.node.broker.produce.transaction_hold._queues


def test_a_transaction_that_is_almost_over_is_waited_for_a_little(broker):
    client = broker.client()
    broker.coordinator.next = [E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS, E.NONE]
    assert errors(client.wait(send_one(client, batch(client, 0), version=12))) == [E.NONE]
    assert len(broker.coordinator.asked) == 3


def test_a_coordinator_that_does_not_answer_is_waited_for_so_long(broker):
    client = broker.client()
    sent = [send_one(client, batch(client, sequence)) for sequence in range(3)]
    assert [errors(client.wait(correlation)) for correlation in sent] == [[E.NOT_ENOUGH_REPLICAS]] * 3
    broker.coordinator.answer()
    broker.steps()
    assert broker.partition("t").log.end_offset == 0, "an answer that comes too late changes nothing"


def test_behind_a_batch_that_must_come_again_none_gets_ahead(broker):
    """Kafka's rule of the lowest sequence seen: the log knows nothing of the producer and would take any."""
    client = broker.client()
    first = send_one(client, batch(client, 0))
    broker.steps()
    broker.coordinator.answer(E.NOT_COORDINATOR)
    assert errors(client.wait(first)) == [E.NOT_ENOUGH_REPLICAS]
    broker.coordinator.always = E.NONE
    assert errors(client.wait(send_one(client, batch(client, 1)))) == [E.OUT_OF_ORDER_SEQUENCE_NUMBER]
    for sequence in (0, 1):
        assert errors(client.wait(send_one(client, batch(client, sequence)))) == [E.NONE]


def test_a_transaction_of_version_2_begins_at_sequence_0(broker):
    client = broker.client()
    broker.coordinator.always = E.NONE
    assert errors(client.wait(send_one(client, batch(client, 3), version=12))) == [E.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert errors(client.wait(send_one(client, batch(client, 3), version=11))) == [E.NONE]


def test_a_marker_while_the_coordinator_is_asked_voids_its_answer(broker):
    client, coordinator = broker.client(), broker.client()
    late = send_one(client, batch(client, 0))
    broker.steps()
    assert marker(coordinator, commit=False) == E.NONE
    broker.coordinator.answer()
    assert errors(client.wait(late)) == [E.INVALID_TXN_STATE]
    assert broker.partition("t").log.producers.open == {}


def test_a_late_batch_after_the_marker_is_fenced_by_its_epoch(broker):
    client = broker.client()
    broker.coordinator.always = E.NONE
    assert errors(client.wait(send_one(client, batch(client, 0), version=12))) == [E.NONE]
    assert marker(client, epoch=1, commit=False, version=2) == E.NONE
    assert errors(client.wait(send_one(client, batch(client, 1), version=12))) == [E.INVALID_PRODUCER_EPOCH]
    assert errors(client.wait(send_one(client, batch(client, 0, epoch=1), version=12))) == [E.NONE]


def test_markers_of_both_versions(broker):
    client = broker.client()
    broker.coordinator.always = E.NONE
    client.wait(send_one(client, batch(client, 0, epoch=3)))
    assert marker(client, epoch=2) == E.INVALID_PRODUCER_EPOCH
    assert marker(client, epoch=3, version=2) == E.INVALID_PRODUCER_EPOCH, "such a marker has an epoch of its own"
    assert marker(client, epoch=4, version=2, coordinator_epoch=5) == E.NONE
    assert marker(client, epoch=4, version=2, coordinator_epoch=5) == E.NONE, "it may come again"
    assert marker(client, epoch=4, version=0, coordinator_epoch=4) == E.TRANSACTION_COORDINATOR_FENCED
    assert marker(client, epoch=9, partitions=(("t", 0), ("nowhere", 0), ("t", 9))) == [
        E.TRANSACTION_COORDINATOR_FENCED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]


@pytest.mark.parametrize("by_topic", [True, False], ids=["the topic syncs each batch", "the request asks for a sync"])
def test_a_marker_is_answered_when_it_is_committed(broker, by_topic):
    broker.with_topic("synced", **({"flush_messages": 1} if by_topic else {}))
    client = broker.client()
    broker.hold_syncs()
    one = write_txn_markers.WriteTxnMarkersRequestMarker(
        producer_id=PRODUCER,
        producer_epoch=0,
        transaction_result=True,
        topics=(write_txn_markers.WriteTxnMarkersRequestTopic(name="synced", partition_indexes=(0,)),),
        sync=not by_topic,
    )
    request = write_txn_markers.WriteTxnMarkersRequest(markers=(one,))
    asked = client.send(ApiKey.WRITE_TXN_MARKERS, 2, request)
    broker.steps()
    assert not client.has_answer(asked)
    broker.release_syncs()
    assert client.wait(asked).markers[0].topics[0].partitions[0].error_code == E.NONE


def test_a_marker_waits_for_a_leader_that_knows_the_metadata_of_the_coordinator(broker):
    """Until then the leader may have the former topic of the same name."""
    client = broker.client()
    one = write_txn_markers.WriteTxnMarkersRequestMarker(
        producer_id=PRODUCER,
        producer_epoch=0,
        transaction_result=True,
        topics=(write_txn_markers.WriteTxnMarkersRequestTopic(name="t", partition_indexes=(0,)),),
    )
    reached = broker.node.broker.image.version
    for offset, error in ((reached + 1, E.NOT_LEADER_OR_FOLLOWER), (reached, E.NONE)):
        request = write_txn_markers.WriteTxnMarkersRequest(markers=(one,), metadata_offset=offset)
        answer = client.ask(ApiKey.WRITE_TXN_MARKERS, 2, request)
        assert answer.markers[0].topics[0].partitions[0].error_code == error
    assert broker.partition("t", 0).log.end_offset == 1


def test_very_many_markers_take_several_turns_and_none_is_written_twice(broker):
    client = broker.client()
    topic = write_txn_markers.WriteTxnMarkersRequestTopic(name="t", partition_indexes=(0, 0, 1, 99, 0))
    request = write_txn_markers.WriteTxnMarkersRequest(
        markers=tuple(
            write_txn_markers.WriteTxnMarkersRequestMarker(
                producer_id=producer, producer_epoch=0, transaction_result=True, topics=(topic,)
            )
            for producer in range(1500)
        )
    )
    answer = client.ask(ApiKey.WRITE_TXN_MARKERS, 1, request)
    told = [[each.error_code for each in marked.topics[0].partitions] for marked in answer.markers]
    assert told == [[E.NONE, E.NONE, E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION, E.NONE]] * 1500
    assert [broker.partition("t", index).log.end_offset for index in (0, 1)] == [1500, 1500]


def test_plain_batches_of_a_producer_within_a_transaction_are_refused(broker):
    client = broker.client()
    broker.coordinator.always = E.NONE
    client.wait(send_one(client, batch(client, 0)))
    plain = client.batch(b"x", producer_id=PRODUCER, producer_epoch=0, base_sequence=1)
    assert client.produce_error("t", 0, plain) == E.INVALID_TXN_STATE
    assert client.produce_error("t", 0, sequenced(client, 0, producer=99)) == E.NONE


def test_one_producer_and_no_control_batches(broker):
    client = broker.client()
    two = send(client, ("t", [(0, batch(client, 0)), (1, batch(client, 0, producer=8))]))
    assert errors(client.wait(two)) == [E.INVALID_PRODUCER_ID_MAPPING] * 2
    two_epochs = send(client, ("t", [(0, batch(client, 0)), (1, batch(client, 0, epoch=1))]))
    assert errors(client.wait(two_epochs)) == [E.INVALID_PRODUCER_ID_MAPPING] * 2
    broker.coordinator.always = E.NONE
    control = client.batch(
        b"x", producer_id=PRODUCER, producer_epoch=0, base_sequence=0, transactional=True, control=True
    )
    assert control[22] & CONTROL_BIT
    assert errors(client.wait(send_one(client, control))) == [E.INVALID_RECORD]
    assert broker.partition("t").log.end_offset == 0


def test_a_request_without_the_id_is_refused_also_within_a_transaction_that_is_open(broker):
    """And also when it looks like one before it: the id is part of what is recognised."""
    client = broker.client()
    broker.coordinator.always = E.NONE
    for sequence in range(3):
        assert errors(client.wait(send_one(client, batch(client, sequence)))) == [E.NONE]
    assert client.produce_error("t", 0, client.batch(b"plain")) == E.NONE
    assert client.produce_error("t", 0, client.batch(b"plain")) == E.NONE
    bare = client.produce_error("t", 0, batch(client, 3))
    assert bare == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert errors(client.wait(send_one(client, batch(client, 3)))) == [E.NONE]


def test_a_recognised_request_of_the_next_transaction_is_checked_again(broker):
    client = broker.client()
    broker.coordinator.always = E.NONE
    for number in range(4):
        for sequence in (2 * number, 2 * number + 1):
            assert errors(client.wait(send_one(client, batch(client, sequence)))) == [E.NONE]
        assert marker(client) == E.NONE
        assert len(broker.coordinator.asked) == number + 1


def test_too_much_that_waits_is_refused_for_now(broker, monkeypatch):
    monkeypatch.setattr(transaction_hold, "TRANSACTIONS_HELD_BYTES_MAX", 1000)
    client = broker.client()
    held = send_one(client, batch(client, 0, b"x" * 500))
    too_much = send_one(client, batch(client, 1, b"x" * 600))
    broker.steps()
    broker.coordinator.answer()
    assert errors(client.wait(held)) == [E.NONE]
    assert errors(client.wait(too_much)) == [E.NOT_ENOUGH_REPLICAS]
    assert errors(client.wait(send_one(client, batch(client, 1, b"x" * 600)))) == [E.NONE]


def test_acks_0_is_appended_without_an_answer_and_closes_on_a_refusal(broker):
    client = broker.client()
    client.connection.send(frame_of(batch(client, 0)))
    broker.steps()
    broker.coordinator.answer()
    broker.run_until(lambda: broker.partition("t").log.end_offset == 1)
    assert not client.is_closed()
    broker.coordinator.always = E.INVALID_TXN_STATE
    client.connection.send(frame_of(batch(client, 0, producer=55)))
    client.wait_closed()


def frame_of(content):
    request = produce_request([("t", [(0, content)])], transactional_id="bank", acks=0, version=11)
    return produce_frame(request, 11)


def test_a_client_that_is_gone_has_its_records_appended(broker):
    client = broker.client()
    send_one(client, batch(client, 0))
    broker.steps()
    client.close()
    broker.steps()
    broker.coordinator.answer()
    broker.run_until(lambda: broker.partition("t").log.end_offset == 1)


def test_a_stop_answers_those_who_wait(broker):
    client = broker.client()
    sent = [send_one(client, batch(client, sequence)) for sequence in range(3)]
    broker.steps()
    broker.node.begin_stop()
    assert [errors(client.wait(correlation)) for correlation in sent] == [[E.NOT_ENOUGH_REPLICAS]] * 3
    broker.run_until(lambda: broker.node.drained)


def test_internal_and_unknown_topics_are_refused_without_a_question(broker):
    broker.with_topic("__consumer_offsets")
    client = broker.client()
    asked = send(client, ("__consumer_offsets", [(0, batch(client, 0))]), ("nowhere", [(0, batch(client, 0))]))
    assert errors(client.wait(asked)) == [E.INVALID_TOPIC_EXCEPTION, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert broker.coordinator.asked == []


def test_a_topic_deleted_meanwhile(broker):
    client = broker.client()
    held = send_one(client, batch(client, 0))
    broker.steps()
    assert broker.client().delete_topic("t") == E.NONE
    broker.coordinator.answer()
    assert errors(client.wait(held)) == [E.UNKNOWN_TOPIC_OR_PARTITION]
