"""Stock clients read a topic that a real broker compacted in a process of its own, and go on writing to it."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest

from headrace import Consumer
from headrace.client import Admin
from headrace.client.blocking.whole_topics import read_topic
from headrace.client.types import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from headrace.model.ids import TopicPartition
from headrace.testing import EmbeddedBroker

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

TOPIC = "table"
KEYS = 40
RECORDS = 4000
TOMBSTONES = 5
WAIT_SECONDS = 100
CONFIGS = {"cleanup.policy": "compact", "segment.bytes": "20000", "min.cleanable.dirty.ratio": "1"}

Row = tuple[int, bytes, bytes | None]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC, configs=CONFIGS)
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "enable.idempotence": True,
                "compression.type": "lz4",
                "batch.num.messages": 50,
            }
        )
        for number in range(RECORDS):
            producer.produce(TOPIC, key=b"key-%d" % (number % KEYS), value=b"value-%d" % number)
            producer.poll(0)
        for number in range(TOMBSTONES):
            producer.produce(TOPIC, key=b"key-%d" % number, value=None)
        producer.flush(WAIT_SECONDS)
        compact(broker, "1")
        producer.produce(TOPIC, key=b"after", value=b"the same producer goes on")
        assert producer.flush(WAIT_SECONDS) == 0
        yield broker


def compact(broker: EmbeddedBroker, request: str) -> None:
    """Ask for a pass and wait until it is over: its segments are swapped in some at a time."""
    change = ConfigChange(ConfigOperation.SET, "headrace.compact.request", request)
    with Admin(broker.bootstrap_servers) as admin:
        before = size(admin)
        (outcome,) = admin.alter_configs({ConfigResource(ResourceType.TOPIC, TOPIC): [change]}).values()
        assert not outcome.error
        for _ in range(WAIT_SECONDS * 10):
            if sum(1 for _ in read_topic({"bootstrap.servers": broker.bootstrap_servers}, TOPIC)) <= KEYS:
                assert size(admin) < before // 4
                return
            threading.Event().wait(0.1)
    raise AssertionError("some keys have more than their last record")


def size(admin: Admin) -> int:
    return sum(r.size_bytes for folder in admin.log_dirs() for r in folder.replicas if r.topic == TOPIC)


def expected() -> list[Row]:
    values = [
        (number, b"key-%d" % (number % KEYS), b"value-%d" % number)
        for number in range(RECORDS - KEYS, RECORDS)
        if number % KEYS >= TOMBSTONES
    ]
    deletions = [(RECORDS + number, b"key-%d" % number, None) for number in range(TOMBSTONES)]
    return [*values, *deletions, (RECORDS + TOMBSTONES, b"after", b"the same producer goes on")]


def by_librdkafka(address: str, begin: int) -> list[Row]:
    settings = {"bootstrap.servers": address, "group.id": "g", "enable.partition.eof": True, "check.crcs": True}
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, begin)])
        rows: list[Row] = []
        while (message := consumer.poll(WAIT_SECONDS)) is not None:
            if message.error():
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                return rows
            rows.append((message.offset(), message.key(), message.value()))
        raise AssertionError("librdkafka did not reach the end")
    finally:
        consumer.close()


def by_kafka_python(address: str, begin: int) -> list[Row]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=WAIT_SECONDS * 1000)
    try:
        partition = kafka.TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, begin)
        end = consumer.end_offsets([partition])[partition]
        rows: list[Row] = []
        while consumer.position(partition) < end:
            for records in consumer.poll(timeout_ms=500).values():
                rows += [(record.offset, record.key, record.value) for record in records]
        return rows
    finally:
        consumer.close()


def by_aiokafka(address: str, begin: int) -> list[Row]:
    async def read() -> list[Row]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address)
        await consumer.start()
        try:
            partition = aiokafka.TopicPartition(TOPIC, 0)
            consumer.assign([partition])
            consumer.seek(partition, begin)
            end = (await consumer.end_offsets([partition]))[partition]
            rows: list[Row] = []
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(partition, timeout_ms=500)).values():
                    rows += [(record.offset, record.key, record.value) for record in records]
            return rows
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(read(), WAIT_SECONDS))


def by_own_client(address: str, begin: int) -> list[Row]:
    partition = TopicPartition(TOPIC, 0)
    with Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, begin)
        rows: list[Row] = []
        while not rows or rows[-1][0] < RECORDS + TOMBSTONES:
            rows += [(record.offset, record.key, record.value) for record in consumer.poll(timeout_ms=1000)]
        return rows


@pytest.mark.parametrize("read", [by_librdkafka, by_kafka_python, by_aiokafka, by_own_client])
@pytest.mark.parametrize("begin", [0, 1234])
def test_clients_read_what_is_left(broker: EmbeddedBroker, read: Callable[[str, int], list[Row]], begin: int) -> None:
    assert read(broker.bootstrap_servers, begin) == expected()


def test_earliest_and_times(broker: EmbeddedBroker) -> None:
    partition = TopicPartition(TOPIC, 0)
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.offsets({partition: -2})[partition].offset == 0
        assert admin.offsets({partition: -1})[partition].offset == RECORDS + TOMBSTONES + 1
        assert admin.offsets({partition: 0})[partition].offset == RECORDS - KEYS + TOMBSTONES
        assert admin.offsets({partition: -3})[partition].offset >= RECORDS - KEYS
