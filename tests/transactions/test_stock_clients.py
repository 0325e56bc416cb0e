"""Transactions of stock clients: read, transform and write exactly once, beside aborts and a rival."""

import asyncio

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from aiokafka.structs import TopicPartition

from headrace.testing import EmbeddedBroker
from tests.transactions.endings import wait_until_ended

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

WAIT_S = 30
RECORDS = 60


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(process=True) as broker:
        yield broker


def filled(broker, name):
    broker.create_topic(name)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number)
    assert producer.flush(WAIT_S) == 0
    return name


def committed_values(broker, topic, group):
    """Return what is there for readers of committed records, up to the last stable offset."""
    wait_until_ended(broker.bootstrap_servers)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values = []
    while True:
        message = consumer.poll(WAIT_S)
        assert message is not None, "the end of the topic was not reached"
        if message.error():
            break
        values.append(message.value())
    consumer.close()
    return values


def test_librdkafka_copies_exactly_once(broker):
    """Every third transaction is given up, and done again by reading from the committed offset."""
    source, target, group = filled(broker, "rd-in"), broker.create_topic("rd-out"), "rd-copy"
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "rd-copy"})
    producer.init_transactions(WAIT_S)
    copied = attempts = 0
    while copied < RECORDS:
        messages = consumer.consume(10, WAIT_S)
        assert messages
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, (message.value() or b"") + b"!")
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), WAIT_S
        )
        attempts += 1
        if attempts % 3 == 0:
            producer.abort_transaction(WAIT_S)
            for part in consumer.committed(consumer.assignment(), WAIT_S):
                consumer.seek(part if part.offset >= 0 else confluent_kafka.TopicPartition(source, 0, 0))
        else:
            producer.commit_transaction(WAIT_S)
            copied += len(messages)
    consumer.close()
    assert committed_values(broker, target, group) == [b"%d!" % number for number in range(RECORDS)]


def test_aiokafka_copies_exactly_once_and_fences(broker):
    source, target = filled(broker, "aio-in"), broker.create_topic("aio-out")
    asyncio.run(copy_with_aiokafka(broker.bootstrap_servers, source, target))
    assert committed_values(broker, target, "aio-check") == [b"%d!" % number for number in range(RECORDS)]


async def copy_with_aiokafka(bootstrap, source, target):
    rival = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="aio-copy")
    await rival.start()
    await rival.begin_transaction()
    await rival.send_and_wait(target, b"of a zombie")
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="aio-copy")
    await producer.start()
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id="aio-copy",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    copied = 0
    while copied < RECORDS:
        found = await consumer.getmany(timeout_ms=WAIT_S * 1_000, max_records=20)
        async with producer.transaction():
            for part, messages in found.items():
                for message in messages:
                    await producer.send(target, message.value + b"!")
                offsets = {TopicPartition(part.topic, part.partition): messages[-1].offset + 1}
                await producer.send_offsets_to_transaction(offsets, "aio-copy")
                copied += len(messages)
    with pytest.raises(ProducerFenced):
        await rival.commit_transaction()
    await consumer.stop()
    await producer.stop()
    await rival.stop()
