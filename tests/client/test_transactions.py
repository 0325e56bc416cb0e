"""Transactions end to end: all or nothing, with offsets, fenced, and after errors."""

import pytest

from headrace.client import LATEST, Admin, Consumer, ConsumerRecord, Producer, TopicPartition
from headrace.client.core.calls import Operation
from headrace.client.core.cluster import Cluster
from headrace.client.core.transactions import TransactionManager
from headrace.client.errors import (
    ClientError,
    DeadlineExceeded,
    InvalidArgument,
    ProducerFenced,
    TransactionFailed,
)
from headrace.testing import EmbeddedBroker

WAIT_MS = 60_000
PARTITIONS = 2


pytestmark = [pytest.mark.process, pytest.mark.record_integrity, pytest.mark.usefixtures("front")]


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture(autouse=True, params=[1, 2])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The transaction.version that the client goes by: 1 as towards older clusters, 2 as the broker says (KIP-890)."""
    if request.param == 1:
        monkeypatch.setattr(Cluster, "feature", lambda _self, _name: 1)
    return int(request.param)


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=PARTITIONS)


def transactional(broker: EmbeddedBroker, topic: str, **options: object) -> Producer:
    return Producer(broker.bootstrap_servers, **{"transactional_id": f"t-{topic}", "max_block_ms": WAIT_MS, **options})


def values(broker: EmbeddedBroker, topic: str, *, isolation: str = "read_committed") -> list[bytes]:
    """All that is there; the end is what read_uncommitted sees, so an open transaction would time out."""
    with Admin(broker.bootstrap_servers) as admin:
        ends = admin.offsets({TopicPartition(topic, partition): LATEST for partition in range(PARTITIONS)})
    with Consumer(
        topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", isolation_level=isolation
    ) as consumer:
        found: list[ConsumerRecord] = []
        for _ in range(WAIT_MS // 100):
            found += consumer.poll(timeout_ms=100)
            if all(consumer.position(partition) >= end.offset for partition, end in ends.items()):
                return sorted(record.value for record in found)
    raise AssertionError(f"the end was not reached, only {len(found)} records")


def test_committed_and_aborted(broker: EmbeddedBroker, topic: str) -> None:
    with transactional(broker, topic) as producer:
        with producer.transaction():
            for partition in range(PARTITIONS):
                producer.send(topic, b"committed", partition=partition)
        with pytest.raises(ZeroDivisionError), producer.transaction():  # noqa: PT012  (the block is the point)
            producer.send(topic, b"aborted", partition=0).result(timeout_ms=WAIT_MS)
            raise ZeroDivisionError
        with producer.transaction() as transaction:
            producer.send(topic, b"aborted too", partition=1)
            transaction.abort()
        with producer.transaction() as transaction:
            producer.send(topic, b"last", partition=0)
            transaction.commit()
            with pytest.raises(InvalidArgument, match="has ended"):
                transaction.abort()
        with producer.transaction():
            pass
    assert values(broker, topic) == [b"committed", b"committed", b"last"]
    assert b"aborted" in values(broker, topic, isolation="read_uncommitted")


def test_what_is_read_is_committed_with_what_is_written(broker: EmbeddedBroker, topic: str) -> None:
    group, result = f"g-{topic}", broker.create_topic(broker.unused_topic_name("result"), partitions=PARTITIONS)
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    options: dict[str, object] = {"bootstrap_servers": broker.bootstrap_servers, "group_id": group}
    options["auto_offset_reset"] = "earliest"
    options |= {"enable_auto_commit": False, "isolation_level": "read_committed", "heartbeat_interval_ms": 200}
    for attempt in range(2):
        with Consumer(topic, **options) as consumer, transactional(broker, topic) as producer:
            done = 0
            for _ in range(WAIT_MS // 100):
                records = consumer.poll(timeout_ms=100, max_records=3)
                if not records:
                    if done == (5 if attempt == 0 else 10):
                        break
                    continue
                try:
                    with producer.transaction() as transaction:
                        for record in records:
                            producer.send(result, record.value * 2, partition=record.partition)
                        ends = {TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}
                        transaction.commit_offsets(ends, consumer.group_identity())
                        done += len(records)
                        if attempt == 0 and done > 5:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    break
                if attempt == 1 and len(values(broker, result)) == 10:
                    break
    assert values(broker, result) == sorted(b"%d" % number * 2 for number in range(10))


def test_a_second_producer_fences_the_first(broker: EmbeddedBroker, topic: str) -> None:
    with transactional(broker, topic) as first, transactional(broker, topic) as second:
        with first.transaction():
            first.send(topic, b"before", partition=0)
        zombie = first.transaction()
        first.send(topic, b"zombie", partition=0).result(timeout_ms=WAIT_MS)
        with second.transaction():
            second.send(topic, b"after", partition=0)
        with pytest.raises(ClientError):
            zombie.commit()
        with pytest.raises((ProducerFenced, TransactionFailed)):
            first.send(topic, b"never", partition=0)
    assert values(broker, topic) == [b"after", b"before"]


def test_a_transaction_with_a_lost_record_can_only_be_aborted(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic(
        broker.unused_topic_name("small"), partitions=PARTITIONS, configs={"max.message.bytes": "500"}
    )
    with transactional(broker, topic) as producer:
        with pytest.raises(TransactionFailed), producer.transaction():  # noqa: PT012  (the block is the point)
            producer.send(topic, b"small", partition=1)
            lost = producer.send(topic, bytes(1_000), partition=0)
            with pytest.raises(ClientError, match="MESSAGE_TOO_LARGE"):
                lost.result(timeout_ms=WAIT_MS)
            producer.send(topic, b"refused", partition=0)
        for round_number in range(2):
            with producer.transaction():
                producer.send(topic, b"good %d" % round_number, partition=0)
    assert values(broker, topic) == [b"good 0", b"good 1"]


def test_each_transaction_has_an_epoch_of_its_own(broker: EmbeddedBroker, topic: str, level: int) -> None:
    with transactional(broker, topic) as producer, Admin(broker.bootstrap_servers) as admin:
        epochs = []
        for _ in range(3):
            with producer.transaction():
                producer.send(topic, b"v", partition=0)
            described = admin.describe_transactions([f"t-{topic}"])[f"t-{topic}"]
            epochs.append(described.producer_epoch)
    assert [epoch - epochs[0] for epoch in epochs] == ([0, 0, 0] if level == 1 else [0, 1, 2])
    assert len(values(broker, topic)) == 3


def test_a_transaction_is_opened_here_written_there_and_ended_elsewhere(broker: EmbeddedBroker, topic: str) -> None:
    with transactional(broker, topic) as opener:
        opened = opener.transaction().hand_over()
    with transactional(broker, topic) as writer:
        transaction = writer.adopt(opened)
        writer.send(topic, b"written", partition=1)
        written = transaction.hand_over()
    assert written.partitions == (TopicPartition(topic, 1),)
    with Admin(broker.bootstrap_servers) as admin:
        admin.end_transaction(written, commit=True)
    assert values(broker, topic) == [b"written"]


def test_nothing_is_taken_while_a_transaction_ends(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may send just then: such a record would be delivered into no transaction, and be lost with it."""
    refused: list[str] = []
    end = TransactionManager.end

    def told(transactions: TransactionManager, *, commit: bool) -> Operation[None]:
        try:
            transactions.check_may_send()
        except InvalidArgument as error:
            refused.append(str(error))
        yield from end(transactions, commit=commit)

    monkeypatch.setattr(TransactionManager, "end", told)
    with transactional(broker, topic) as producer:
        with producer.transaction():
            producer.send(topic, b"first", partition=0)
        with producer.transaction() as transaction:
            producer.send(topic, b"aborted", partition=0).result(timeout_ms=WAIT_MS)
            transaction.abort()
        with producer.transaction():
            producer.send(topic, b"last", partition=0)
    assert refused == ["the transaction is being ended: send within the next one"] * 3
    assert values(broker, topic) == [b"first", b"last"]


def test_what_is_out_of_place(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as plain:
        with pytest.raises(InvalidArgument, match="need a transactional_id"):
            plain.transaction()
    with transactional(broker, topic) as producer:
        with pytest.raises(InvalidArgument, match=r"within `with producer\.transaction"):
            producer.send(topic, b"v")
        with producer.transaction():
            with pytest.raises(InvalidArgument, match="open already"):
                producer.transaction()
    with pytest.raises(DeadlineExceeded), transactional(broker, topic, max_block_ms=0.001) as producer:
        producer.transaction()


def test_the_end_of_those_who_read_committed_records(broker: EmbeddedBroker, topic: str) -> None:
    place = TopicPartition(topic, 0)
    options = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
    with (
        transactional(broker, topic) as producer,
        Consumer(topic, **options, isolation_level="read_committed") as committed,
        Consumer(topic, **options) as uncommitted,
    ):
        transaction = producer.transaction()
        producer.send(topic, b"open", partition=0).result(timeout_ms=WAIT_MS)
        assert committed.end_offsets([place]) == {place: 0}
        assert uncommitted.end_offsets([place]) == {place: 1}
        transaction.commit()
        assert next(committed).value == b"open", "its marker is written some time after the commit"
        assert committed.end_offsets([place]) == uncommitted.end_offsets([place]) == {place: 2}
