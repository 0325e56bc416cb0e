"""Reads of committed transactions through the wire: offsets, lists of aborted ones, sessions, and waking of fetches."""

import pytest

from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.messages import describe_producers, list_offsets, write_txn_markers

from .test_transactional_produce import FakeTransactions, batch, errors, marker, send_one
from .virtual import VirtualBroker, values_of

COMMITTED = 1
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


@pytest.fixture
def broker():
    return with_coordinator(VirtualBroker().with_topic("t").with_topic("u"))


def with_coordinator(broker):
    coordinator = broker.node.broker.produce.transaction_hold.transactions = FakeTransactions()
    coordinator.always = E.NONE
    return broker


def write(client, sequence, *values, **options):
    assert errors(client.wait(send_one(client, batch(client, sequence, *values, **options)))) == [E.NONE]


def latest(client, isolation, timestamp=LATEST, version=7):
    asked = list_offsets.ListOffsetsRequestPartition(partition_index=0, timestamp=timestamp)
    topic = list_offsets.ListOffsetsRequestTopic(name="t", partitions=(asked,))
    request = list_offsets.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=(topic,))
    found = client.ask(ApiKey.LIST_OFFSETS, version, request).topics[0].partitions[0]
    assert found.error_code == E.NONE
    return found.offset


def aborted(answer):
    return [(entry.producer_id, entry.first_offset) for entry in answer.aborted_transactions]


@pytest.mark.parametrize("version", [4, 6, 7, 10, 11, 12])
def test_an_open_transaction_hides_what_follows_until_its_marker(broker, version):
    client = broker.client()
    assert client.produce_error("t", 0, client.batch(b"before")) == E.NONE
    write(client, 0, b"within")
    assert client.produce_error("t", 0, client.batch(b"behind")) == E.NONE
    answer = client.fetch("t", isolation=COMMITTED, version=version)
    assert values_of(answer.records) == [b"before"]
    assert (answer.last_stable_offset, answer.high_watermark) == (1, 3)
    assert aborted(answer) == []
    uncommitted = client.fetch("t", version=version)
    assert values_of(uncommitted.records) == [b"before", b"within", b"behind"]
    assert uncommitted.aborted_transactions is None
    assert marker(client, commit=False) == E.NONE
    answer = client.fetch("t", isolation=COMMITTED, version=version)
    assert len(values_of(answer.records)) == 4, "the reader drops them, by the list and the marker"
    assert aborted(answer) == [(7, 1)]
    assert answer.last_stable_offset == 4
    assert aborted(client.fetch("t", 0, 4, isolation=COMMITTED, version=version)) == []


def test_offsets_by_isolation_level(broker):
    client = broker.client()
    client.produce("t", 0, client.batch(b"a", timestamp=1000))
    write(client, 0, b"b")
    for isolation, end in ((0, 2), (COMMITTED, 1)):
        assert latest(client, isolation) == end
        assert latest(client, isolation, EARLIEST) == 0
        assert latest(client, isolation, 1001) == (1 if end == 2 else -1)
        assert latest(client, isolation, MAX_TIMESTAMP) == (1 if end == 2 else -1)
    assert marker(client) == E.NONE
    assert latest(client, COMMITTED) == 3


def test_only_the_transactions_of_what_is_read_are_listed(broker):
    client = broker.client()
    for number in range(30):
        write(client, number, b"x" * 2000)
        assert marker(client, commit=number % 3 == 0) == E.NONE
    expected = [(7, 2 * number) for number in range(30) if number % 3]
    assert aborted(client.fetch("t", isolation=COMMITTED)) == expected
    first = client.fetch("t", isolation=COMMITTED, partition_bytes=2000)
    assert aborted(first)[:1] in ([], expected[:1])
    assert len(aborted(first)) < 6, "not the whole log's"
    assert aborted(client.fetch("t", 0, 40, isolation=COMMITTED)) == [entry for entry in expected if entry[1] >= 40]


def test_a_parked_reader_is_woken_by_the_last_stable_offset_and_not_before(broker):
    client, reader, other = broker.client(), broker.client(), broker.client()
    write(client, 0, b"within")
    parked = reader.send_fetch(("t", 0, 0), isolation=COMMITTED, wait_ms=20_000)
    uncommitted = other.send_fetch(("t", 0, 1), wait_ms=20_000)
    broker.steps(5)
    for number in range(5):
        assert client.produce_error("t", 0, client.batch(b"plain-%d" % number)) == E.NONE
    assert other.wait(uncommitted)
    assert not reader.has_answer(parked), "nothing that it may see has come"
    assert marker(client) == E.NONE
    answer = reader.wait(parked).responses[0].partitions[0]
    assert values_of(answer.records)[:2] == [b"within", b"plain-0"]
    assert answer.last_stable_offset == 7


def test_the_begin_of_a_transaction_wakes_no_reader_that_may_not_see_it(broker):
    client, reader, other = broker.client(), broker.client(), broker.client()
    client.produce("t", 0, client.batch(b"before"))
    parked = reader.send_fetch(("t", 0, 1), isolation=COMMITTED, wait_ms=20_000)
    uncommitted = other.send_fetch(("t", 0, 1), wait_ms=20_000)
    broker.steps(5)
    write(client, 0, b"within")
    assert other.wait(uncommitted)
    assert not reader.has_answer(parked)
    assert marker(client) == E.NONE
    assert values_of(reader.wait(parked).responses[0].partitions[0].records)[0] == b"within"


def test_of_two_open_transactions_the_end_of_the_first_wakes(broker):
    client, reader = broker.client(), broker.client()
    write(client, 0, b"first")
    write(client, 0, b"second", producer=8)
    parked = reader.send_fetch(("t", 0, 0), isolation=COMMITTED, wait_ms=20_000)
    broker.steps(5)
    assert marker(client) == E.NONE
    answer = reader.wait(parked).responses[0].partitions[0]
    assert values_of(answer.records) == [b"first"]
    assert answer.last_stable_offset == 1


def test_a_marker_that_is_not_committed_is_not_seen():
    broker = with_coordinator(VirtualBroker().with_topic("t", flush_messages=1))
    client, writer = broker.client(), broker.client()
    write(client, 0, b"within")
    broker.hold_syncs()
    one = write_txn_markers.WriteTxnMarkersRequestMarker(
        producer_id=7,
        producer_epoch=0,
        transaction_result=True,
        topics=(write_txn_markers.WriteTxnMarkersRequestTopic(name="t", partition_indexes=(0,)),),
    )
    asked = writer.send(ApiKey.WRITE_TXN_MARKERS, 1, write_txn_markers.WriteTxnMarkersRequest(markers=(one,)))
    broker.steps()
    assert broker.partition("t").log.end_offset == 2
    answer = client.fetch("t", isolation=COMMITTED)
    assert (values_of(answer.records), answer.last_stable_offset) == ([], 0)
    broker.release_syncs()
    writer.wait(asked)
    assert client.fetch("t", isolation=COMMITTED).last_stable_offset == 2


def test_within_a_session(broker):
    client = broker.client()
    write(client, 0, b"within")
    opened = client.wait(client.send_fetch(("t", 0, 0), ("u", 0, 0), isolation=COMMITTED, session_epoch=0))
    session = opened.session_id
    assert session
    following = client.send_fetch(isolation=COMMITTED, session_id=session, session_epoch=1, wait_ms=20_000)
    broker.steps(5)
    assert not client.has_answer(following)
    assert marker(broker.client(), commit=False) == E.NONE
    [topic] = client.wait(following).responses
    [answer] = topic.partitions
    assert (topic.topic, aborted(answer), len(values_of(answer.records))) == ("t", [(7, 0)], 2)


def test_open_transactions_are_described_and_survive_a_restart(broker):
    client = broker.client()
    client.produce("t", 0, client.batch(b"before"))
    write(client, 0, b"within", epoch=3)
    write(client, 0, b"other", producer=8)
    assert marker(client, producer=8, commit=False, coordinator_epoch=6) == E.NONE
    for restart in (lambda: None, broker.restart):
        restart()
        with_coordinator(broker)
        client = broker.client()
        topic = describe_producers.DescribeProducersRequestTopic(name="t", partition_indexes=(0,))
        request = describe_producers.DescribeProducersRequest(topics=(topic,))
        found = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics[0].partitions[0].active_producers
        told = {
            each.producer_id: (each.producer_epoch, each.current_txn_start_offset, each.coordinator_epoch)
            for each in found
        }
        assert told == {7: (3, 1, -1), 8: (0, -1, 6)}
        assert latest(client, COMMITTED) == 1
    write(client, 1, b"more", epoch=3)
    assert broker.node.broker.produce.transaction_hold.transactions.asked == [], "the transaction is open here"
    assert marker(client, epoch=3) == E.NONE
    answer = client.fetch("t", isolation=COMMITTED)
    assert (answer.last_stable_offset, aborted(answer)) == (6, [(8, 2)])


def test_records_deleted_below_an_open_transaction_and_above_it(broker):
    client = broker.client()
    client.produce("t", 0, client.batch(b"before"))
    write(client, 0, b"within")
    client.produce("t", 0, client.batch(b"behind"))
    partitions = broker.node.broker.partitions
    partitions.advance_start(broker.partition("t"), 1)
    assert latest(client, COMMITTED) == 1
    partitions.advance_start(broker.partition("t"), 2)
    assert latest(client, COMMITTED) == 2, "not below the log's start"
