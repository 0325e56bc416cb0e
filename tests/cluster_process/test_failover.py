"""Partitions with three replicas, stock clients with acks=all, and brokers that are killed."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from headrace.broker.coordinators.topic import partition_for
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

WAIT_S_MAX = 60
QUIET = {"log_level": 0}
COORDINATED_PARTITIONS = 6
MORE = 200
"""Records that are acknowledged before and after each fault."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> str:
    name = cluster.unused_topic_name(request.node.name)
    return cluster.create_topic(name, replicas=3, configs={"min.insync.replicas": "2"})


class IdempotentProducer:
    """Sends numbered records to partition 0 with acks=all, and notes which were acknowledged."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self.acknowledged: list[int] = []
        self.errors: list[str] = []
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 1, **QUIET}
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            value = message.value()
            assert value is not None
            self.acknowledged.append(int(value))

    def _run(self) -> None:
        for number in count():
            if self._stop.is_set():
                break
            self._producer.produce(self._topic, str(number), partition=0, on_delivery=self._delivered)
            self._producer.poll(0.001)
        self._producer.flush(WAIT_S_MAX)

    def wait_for_more(self) -> None:
        target = len(self.acknowledged) + MORE
        wait_until(lambda: len(self.acknowledged) >= target, "no further record was acknowledged", WAIT_S_MAX)

    @contextmanager
    def running(self) -> Iterator["IdempotentProducer"]:
        self._thread.start()
        try:
            self.wait_for_more()
            yield self
        finally:
            self._stop.set()
            self._thread.join(2 * WAIT_S_MAX)


def read_all(cluster: EmbeddedCluster, topic: str, **settings: str) -> list[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reader",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **QUIET,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + WAIT_S_MAX
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                value = message.value()
                assert value is not None
                found.append(int(value))
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        consumer.close()
    raise AssertionError(f"the end of {topic} was not reached; {len(found)} records were read")


def wait_until_in_sync(cluster: EmbeddedCluster, topic: str) -> None:
    wait_until(lambda: len(cluster.in_sync(topic, 0)) == 3, "the replicas did not become in sync again", WAIT_S_MAX)


def test_writes_continue_when_the_leader_is_killed_and_nothing_acknowledged_is_lost(
    cluster: EmbeddedCluster, topic: str
) -> None:
    with IdempotentProducer(cluster, topic).running() as producer:
        for _ in range(3):
            victim = cluster.leader(topic, 0)
            cluster.kill(victim)
            producer.wait_for_more()
            assert cluster.leader(topic, 0) not in (victim, -1)
            cluster.restart(victim)
            wait_until_in_sync(cluster, topic)
    assert producer.errors == []
    assert read_all(cluster, topic) == producer.acknowledged


def test_a_killed_follower_stalls_nothing_and_returns(cluster: EmbeddedCluster, topic: str) -> None:
    with IdempotentProducer(cluster, topic).running() as producer:
        victim = next(node_id for node_id in cluster.node_ids if node_id != cluster.leader(topic, 0))
        cluster.kill(victim)
        producer.wait_for_more()
        cluster.restart(victim)
        wait_until_in_sync(cluster, topic)
    assert producer.errors == []
    assert read_all(cluster, topic) == producer.acknowledged


def test_all_brokers_killed_at_once_recover_without_loss(cluster: EmbeddedCluster, topic: str) -> None:
    with IdempotentProducer(cluster, topic).running() as producer:
        for node_id in cluster.node_ids:
            cluster.kill(node_id)
        cluster.restart(*cluster.node_ids)
        producer.wait_for_more()
        wait_until_in_sync(cluster, topic)
    assert producer.errors == []
    assert read_all(cluster, topic) == producer.acknowledged


def test_a_clean_stop_of_the_leader_gives_clients_no_error(cluster: EmbeddedCluster, topic: str) -> None:
    with IdempotentProducer(cluster, topic).running() as producer:
        victim = cluster.leader(topic, 0)
        cluster.shut_down(victim)
        producer.wait_for_more()
        cluster.restart(victim)
        wait_until_in_sync(cluster, topic)
    assert producer.errors == []
    assert read_all(cluster, topic) == producer.acknowledged


def coordinator(cluster: EmbeddedCluster, internal_topic: str, key: str) -> int:
    return cluster.leader(internal_topic, partition_for(key, COORDINATED_PARTITIONS))


def send(cluster: EmbeddedCluster, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **QUIET})
    for number in numbers:
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(WAIT_S_MAX) == 0


def test_a_group_continues_from_its_committed_offsets_when_its_coordinator_is_killed(
    cluster: EmbeddedCluster, topic: str
) -> None:
    send(cluster, topic, range(200))
    group = f"{topic}-group"

    def take(consumer: Consumer, number: int) -> list[int]:
        found: list[int] = []
        deadline = time.monotonic() + WAIT_S_MAX
        while len(found) < number and time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                value = message.value()
                assert value is not None
                found.append(int(value))
        return found

    def commit(consumer: Consumer, offset: int) -> None:
        """Commit as an application does that tries again while the coordinator moves."""
        deadline = time.monotonic() + WAIT_S_MAX
        while True:
            try:
                consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
                return
            except KafkaException:
                assert time.monotonic() < deadline, "the offset was not committed"

    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **QUIET,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    assert take(consumer, 50) == list(range(50))
    commit(consumer, 50)
    victim = coordinator(cluster, "__consumer_offsets", group)
    cluster.kill(victim)
    assert take(consumer, 50) == list(range(50, 100))
    commit(consumer, 100)
    consumer.close()
    follower = Consumer(settings)
    follower.subscribe([topic])
    assert take(follower, 100) == list(range(100, 200))
    follower.close()
    cluster.restart(victim)
    wait_until_in_sync(cluster, topic)


def test_transactions_are_atomic_when_their_coordinator_is_killed(cluster: EmbeddedCluster, topic: str) -> None:
    transactional_id = f"{topic}-transactions"
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": transactional_id, **QUIET})
    producer.init_transactions(WAIT_S_MAX)
    committed: list[int] = []
    for number in range(6):
        values = range(100 * number, 100 * number + 100)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, str(value), partition=0)
        if number % 2:
            victim = coordinator(cluster, "__transaction_state", transactional_id)
            cluster.kill(victim)
        if number == 4:
            producer.abort_transaction(WAIT_S_MAX)
        else:
            producer.commit_transaction(WAIT_S_MAX)
            committed += values
        if number % 2:
            cluster.restart(victim)
            wait_until_in_sync(cluster, topic)
    assert read_all(cluster, topic, **{"isolation.level": "read_committed"}) == committed
