"""Transactions of librdkafka and a broker process: all or nothing for readers, across kill -9 and after a timeout."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from headrace.client import Admin, NewTopic
from tests.broker_process.broker_process import BrokerProcess
from tests.reserved_ports import reserved_port
from tests.transactions.endings import wait_until_ended

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

CALL_S_MAX = 30.0
TIMEOUT_MS = 60_000
SHORT_TIMEOUT_MS = 5_000
SWEEP_MS = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
NEVER_MS = 3_600_000


def producer_of(broker: BrokerProcess, transactional_id: str = "bank", *, timeout_ms: int = TIMEOUT_MS) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    producer.init_transactions(CALL_S_MAX)
    return producer


def run_transaction(producer: Producer, values: list[bytes], *, commit: bool) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce("t", value)
    assert producer.flush(CALL_S_MAX) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(CALL_S_MAX)


def seen(broker: BrokerProcess, isolation_level: str) -> list[bytes]:
    """Everything up to the end that this isolation level has."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": isolation_level,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + CALL_S_MAX
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error():
            consumer.close()
            return found
        if message is not None:
            found.append(message.value())
    raise AssertionError("the end was not reached")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{reserved_port()}",
        "transaction.state.log.num.partitions": "3",
        SWEEP_MS: str(NEVER_MS),
    }
    with BrokerProcess(tmp_path, settings=settings) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            assert not admin.create_topics([NewTopic("t", configs={"segment.bytes": "2000"})])["t"].error
        yield broker


@pytest.mark.parametrize("abrupt", [False, True])
def test_an_open_transaction_survives_the_broker(broker: BrokerProcess, abrupt: bool) -> None:
    producer = producer_of(broker)
    values = [[b"%d-%d" % (number, place) for place in range(5)] for number in range(12)]
    for number, each in enumerate(values):
        run_transaction(producer, each, commit=number % 3 == 0)
    committed = [value for number, each in enumerate(values) if number % 3 == 0 for value in each]
    everything = [value for each in values for value in each]
    assert seen(broker, "read_committed") == committed
    assert seen(broker, "read_uncommitted") == everything

    producer.begin_transaction()
    producer.produce("t", b"open")
    assert producer.flush(CALL_S_MAX) == 0
    broker.kill() if abrupt else broker.stop()
    broker.start()
    assert seen(broker, "read_committed") == committed
    assert seen(broker, "read_uncommitted") == [*everything, b"open"]
    producer.produce("t", b"more")
    producer.commit_transaction(CALL_S_MAX)
    wait_until_ended(broker.bootstrap_servers)
    assert seen(broker, "read_committed") == [*committed, b"open", b"more"]


def test_a_zombie_is_fenced_and_what_it_left_open_is_thrown_away(broker: BrokerProcess) -> None:
    zombie = producer_of(broker)
    zombie.begin_transaction()
    zombie.produce("t", b"zombie")
    assert zombie.flush(CALL_S_MAX) == 0
    successor = producer_of(broker)
    run_transaction(successor, [b"successor"], commit=True)
    zombie.produce("t", b"late")
    with pytest.raises(KafkaException):
        zombie.commit_transaction(CALL_S_MAX)
    wait_until_ended(broker.bootstrap_servers)
    assert seen(broker, "read_committed") == [b"successor"]
    assert seen(broker, "read_uncommitted")[:2] == [b"zombie", b"successor"]


def test_a_transaction_whose_producer_is_gone_ends_by_itself(broker: BrokerProcess) -> None:
    """Also when the broker was killed meanwhile; readers wait for it, and then go on. Only the next broker looks for
    transactions that are over time, so that this one can be seen open first, however long that takes."""
    gone = producer_of(broker, "gone", timeout_ms=SHORT_TIMEOUT_MS)
    gone.begin_transaction()
    gone.produce("t", b"left open")
    assert gone.flush(CALL_S_MAX) == 0
    run_transaction(producer_of(broker), [b"behind it"], commit=True)
    assert seen(broker, "read_committed") == []
    broker.kill()
    broker.settings[SWEEP_MS] = "200"
    broker.start()
    deadline = time.monotonic() + CALL_S_MAX
    while not (found := seen(broker, "read_committed")) and time.monotonic() < deadline:
        pass
    assert found == [b"behind it"]
