"""Stock clients on three brokers: they bootstrap from any of them and use all."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer

from compat.adapters import connect, features
from compat.cases import CASES, Case
from compat.cases.case import assert_same, sample
from compat.client import Client, Message
from headrace import Admin, Consumer, Producer
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")
ONE_BROKER = {"describe the cluster", "describe the broker's", "set and delete a broker's"}
"""Cases that expect exactly one broker."""
CASES_OF_CLUSTERS = [
    case for case in CASES if not case.auto_creation and case.name not in ONE_BROKER and not case.alone
]
WAIT_S_MAX = 60


@pytest.fixture(scope="module")
def client_of(cluster: EmbeddedCluster) -> Iterator[Callable[[str], Client]]:
    """A client by name, which knows one broker of the cluster when it starts."""
    clients: dict[str, Client] = {}
    with ExitStack() as stack:

        def get(name: str) -> Client:
            if name not in clients:
                clients[name] = connect(name, cluster.address(1 + CLIENTS.index(name) % 3))
                stack.callback(clients[name].close)
            return clients[name]

        yield get


def leaders(cluster: EmbeddedCluster, topic: str) -> set[int]:
    with Admin(cluster.bootstrap_servers) as admin:
        (described,) = admin.topics([topic])
    return {partition.leader for partition in described.partitions}


@pytest.mark.parametrize("name", CLIENTS)
def test_all_partitions_are_written_and_read(
    name: str, client_of: Callable[[str], Client], cluster: EmbeddedCluster, topic: str
) -> None:
    client = client_of(name)
    assert leaders(cluster, topic) == {1, 2, 3}
    sent = {partition: sample(200, seed=partition) for partition in range(6)}
    for partition, messages in sent.items():
        client.send(topic, [Message(key=each.key, value=each.value, partition=partition) for each in messages])
    for partition, messages in sent.items():
        assert_same(client.read(topic, len(messages), partition=partition), messages)


PAIRS = [("confluent-kafka", case) for case in CASES_OF_CLUSTERS if case.needs <= features("confluent-kafka")]


@pytest.mark.parametrize(("name", "case"), PAIRS, ids=[case.name.replace(" ", "_") for _, case in PAIRS])
def test_case(name: str, case: Case, client_of: Callable[[str], Client], cluster: EmbeddedCluster) -> None:
    made = cluster.unused_topic_name(f"{name}-{case.name}")
    if not case.without_topic:
        cluster.create_topic(made, partitions=case.partitions, configs=case.configs)
    case.run(client_of(name), made)


def test_topics_made_through_any_broker_are_known_to_all(cluster: EmbeddedCluster) -> None:
    for node_id in cluster.node_ids:
        name = f"made-through-{node_id}"
        client = connect("confluent-kafka", cluster.address(node_id))
        try:
            client.create_topic(name, partitions=3)
            assert client.describe_topic(name).partitions == 3  # the broker answers after it has applied the change
        finally:
            client.close()
        for other in cluster.node_ids:
            with Admin(cluster.address(other)) as admin:
                wait_until(partial(_knows, admin, name), name)


def test_our_client_writes_and_reads_as_a_group(cluster: EmbeddedCluster, topic: str) -> None:
    with Producer(cluster.address(2)) as producer:
        for number in range(600):
            producer.send(topic, b"%d" % number, partition=number % 6)
    received: list[int] = []
    with Consumer(
        topic, bootstrap_servers=cluster.address(3), group_id=f"group of {topic}", auto_offset_reset="earliest"
    ) as consumer:
        for record in consumer:
            assert record.value is not None
            received.append(int(record.value))
            if len(received) == 600:
                break
        consumer.commit()
    assert sorted(received) == list(range(600))
    with Admin(cluster.bootstrap_servers) as admin:
        committed = admin.group_offsets(f"group of {topic}")
    assert {partition.partition: at.offset for partition, at in committed.items()} == dict.fromkeys(range(6), 100)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_have_coordinators_on_several_brokers(cluster: EmbeddedCluster, topic: str, protocol: str) -> None:
    with Producer(cluster.bootstrap_servers) as producer:
        for number in range(60):
            producer.send(topic, b"%d" % number, partition=number % 6)
    for number in range(6):
        consumer = LibrdkafkaConsumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": f"{topic}-{number}",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        read: list[int] = []
        wait_until(partial(_has_read, consumer, read, 60), "the group has not read all")
        assert sorted(read) == list(range(60))
        consumer.commit(asynchronous=False)
        consumer.close()
    with Admin(cluster.bootstrap_servers) as admin:
        (offsets,) = admin.topics(["__consumer_offsets"])
    assert {partition.leader for partition in offsets.partitions} == {1, 2, 3}


def _knows(admin: Admin, name: str) -> bool:
    return name in {topic.name for topic in admin.topics()}


def _has_read(consumer: LibrdkafkaConsumer, read: list[int], count: int) -> bool:
    message = consumer.poll(0.2)
    if message is not None and message.error() is None:
        read.append(int(message.value()))
    return len(read) >= count
