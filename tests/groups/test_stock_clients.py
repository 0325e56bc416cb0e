"""Groups of stock clients against a broker process: rebalances, commits, restarts, kills, static members."""

import asyncio
import os
import signal
import time
from typing import Any

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import AdminClient

from headrace.testing import EmbeddedBroker
from tests.reserved_ports import reserved_address

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

PARTITIONS = 4
RECORDS = 80
WAIT_S = 60
SESSION_S = 30
"""librdkafka's close takes the whole of it where there is no coordinator."""


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(process=True, config={"group.consumer.heartbeat.interval.ms": "200"}) as broker:
        yield broker


def filled(broker, name):
    broker.create_topic(name, partitions=PARTITIONS)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(name, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0
    return name


def consumer(broker, group, **options):
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_S * 1000,
            "heartbeat.interval.ms": 200,
            **options,
        }
    )


def poll_until(consumers, reached):
    """Poll everyone in turn; the messages of each."""
    messages: list[list[Any]] = [[] for _ in consumers]
    deadline = time.monotonic() + WAIT_S
    while not reached(messages):
        assert time.monotonic() < deadline, f"not reached with {[len(each) for each in messages]} messages"
        for each, found in zip(consumers, messages, strict=True):
            message = each.poll(0.02)
            if message is not None and message.error() is None:
                found.append(message)
    return messages


def values(messages):
    return sorted(int(message.value()) for found in messages for message in found)


def committed(broker, group, topic):
    reader = consumer(broker, group)
    found = reader.committed(
        [confluent_kafka.TopicPartition(topic, each) for each in range(PARTITIONS)], timeout=WAIT_S
    )
    reader.close()
    return [each.offset for each in found]


def close_all(consumers):
    began = time.monotonic()
    for each in consumers:
        each.close()
    assert time.monotonic() - began < SESSION_S


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_librdkafka_shares_the_partitions_and_takes_over(broker, strategy):
    topic, group = filled(broker, f"shared-{strategy}"), f"group-{strategy}"
    options = {"partition.assignment.strategy": strategy}
    consumers = [consumer(broker, group, **options) for _ in range(2)]
    for each in consumers:
        each.subscribe([topic])
    messages = poll_until(
        consumers,
        lambda found: (
            set(values(found)) == set(range(RECORDS)) and all(len(each.assignment()) == 2 for each in consumers)
        ),
    )
    assert set(values(messages)) == set(range(RECORDS))
    owned = sorted(each.partition for one in consumers for each in one.assignment())
    assert owned == list(range(PARTITIONS))
    for each in consumers:
        positions = [
            confluent_kafka.TopicPartition(topic, part.partition, RECORDS // PARTITIONS) for part in each.assignment()
        ]
        each.commit(offsets=positions, asynchronous=False)
    close_all(consumers[1:])
    poll_until(consumers[:1], lambda found: len(consumers[0].assignment()) == PARTITIONS)
    close_all(consumers[:1])
    assert committed(broker, group, topic) == [RECORDS // PARTITIONS] * PARTITIONS


def test_librdkafka_in_a_group_of_the_new_protocol(broker):
    topic, group = filled(broker, "assigned"), "assigned"

    def member(**options):
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **options,
            }
        )

    consumers = [member(), member(**{"group.remote.assignor": "range"})]
    for each in consumers:
        each.subscribe([topic])
    poll_until(
        consumers,
        lambda found: (
            set(values(found)) == set(range(RECORDS)) and all(len(each.assignment()) == 2 for each in consumers)
        ),
    )
    owned = sorted(each.partition for one in consumers for each in one.assignment())
    assert owned == list(range(PARTITIONS))
    for each in consumers:
        positions = [confluent_kafka.TopicPartition(topic, part.partition, 20) for part in each.assignment()]
        each.commit(offsets=positions, asynchronous=False)
    close_all(consumers[1:])
    poll_until(consumers[:1], lambda found: len(consumers[0].assignment()) == PARTITIONS)
    close_all(consumers[:1])
    assert committed(broker, group, topic) == [RECORDS // PARTITIONS] * PARTITIONS
    matching = member()
    matching.subscribe(["^assign.*"])
    poll_until([matching], lambda found: len(matching.assignment()) == PARTITIONS)
    close_all([matching])
    internal = member(**{"group.id": "internal"})
    internal.subscribe(["^__consumer_.*"])
    poll_until([internal], lambda found: {each.topic for each in internal.assignment()} == {"__consumer_offsets"})
    close_all([internal])


def test_a_static_member_of_librdkafka_comes_back_without_a_rebalance(broker):
    topic = filled(broker, "static")
    options = {"session.timeout.ms": SESSION_S * 1000}
    first = consumer(broker, "static", **options, **{"group.instance.id": "one"})
    second = consumer(broker, "static", **options, **{"group.instance.id": "two"})
    both = [first, second]
    for each in both:
        each.subscribe([topic])
    poll_until(both, lambda found: all(len(each.assignment()) == 2 for each in both))
    owned = {part.partition for part in first.assignment()}
    first.close()
    first = consumer(broker, "static", **options, **{"group.instance.id": "one"})
    first.subscribe([topic])
    poll_until([first, second], lambda found: len(first.assignment()) == 2)
    assert {part.partition for part in first.assignment()} == owned
    assert len(second.assignment()) == 2
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    described = admin.describe_consumer_groups(["static"])["static"].result(WAIT_S)
    assert described.state == confluent_kafka.ConsumerGroupState.STABLE
    assert {member.group_instance_id for member in described.members} == {"one", "two"}
    close_all([first, second])


def test_librdkafka_administers_groups(broker):
    topic = filled(broker, "administered")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    part = confluent_kafka.TopicPartition(topic, 1, 17)
    wanted = confluent_kafka.ConsumerGroupTopicPartitions("administered", [part])
    assert admin.alter_consumer_group_offsets([wanted])["administered"].result(WAIT_S).topic_partitions[0].offset == 17
    assert "administered" in {group.group_id for group in admin.list_consumer_groups().result(WAIT_S).valid}
    listed = admin.list_consumer_group_offsets([confluent_kafka.ConsumerGroupTopicPartitions("administered")])
    assert [each.offset for each in listed["administered"].result(WAIT_S).topic_partitions] == [17]
    admin.delete_consumer_groups(["administered"])["administered"].result(WAIT_S)
    assert committed(broker, "administered", topic) == [confluent_kafka.OFFSET_INVALID] * PARTITIONS


def test_kafka_python_joins_reads_and_commits(broker):
    topic = filled(broker, "python")
    reader = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        group_id="python",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=WAIT_S * 1000,
    )
    found = [int(next(reader).value) for _ in range(RECORDS)]
    assert sorted(found) == list(range(RECORDS))
    reader.commit()
    reader.close()
    assert committed(broker, "python", topic) == [RECORDS // PARTITIONS] * PARTITIONS


def test_aiokafka_joins_reads_and_commits(broker):
    topic = filled(broker, "asyncio")

    async def read():
        reader = AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap_servers,
            group_id="asyncio",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await reader.start()
        found = [int((await asyncio.wait_for(reader.getone(), WAIT_S)).value) for _ in range(RECORDS)]
        await reader.commit()
        await reader.stop()
        return found

    assert sorted(asyncio.run(read())) == list(range(RECORDS))
    assert committed(broker, "asyncio", topic) == [RECORDS // PARTITIONS] * PARTITIONS


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_group_continues_after_the_broker_died(tmp_path, end):
    address = f"PLAINTEXT://{reserved_address()}"
    config = {"listeners": address, "advertised.listeners": address}
    first = EmbeddedBroker(process=True, data_dir=str(tmp_path), config=config).start()
    topic = filled(first, "kept")
    reader = consumer(first, "kept", **{"reconnect.backoff.max.ms": 200})
    reader.subscribe([topic])
    messages = poll_until([reader], lambda found: len(found[0]) >= RECORDS // 2)
    reader.commit(asynchronous=False)
    before = committed(first, "kept", topic)
    os.kill(first.process_id, end)
    first.stop()
    with EmbeddedBroker(process=True, data_dir=str(tmp_path), config=config) as second:
        more = poll_until([reader], lambda found: len(messages[0]) + len(found[0]) >= RECORDS)
        assert set(values(messages + more)) == set(range(RECORDS))
        assert committed(second, "kept", topic) == before
        reader.commit(asynchronous=False)
        assert committed(second, "kept", topic) == [RECORDS // PARTITIONS] * PARTITIONS
        close_all([reader])
