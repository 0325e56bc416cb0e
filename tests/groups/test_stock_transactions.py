"""Stock producers commit what a group has read as a part of their transactions."""

import asyncio
import time

import aiokafka
import confluent_kafka
import pytest

from headrace.testing import EmbeddedBroker

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

WAIT_S = 30


@pytest.fixture(scope="module")
def broker():
    config = {"group.consumer.heartbeat.interval.ms": "200", "group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(process=True, config=config) as broker:
        yield broker


def producer(broker, transactional_id):
    made = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": transactional_id}
    )
    made.init_transactions(WAIT_S)
    return made


def reading(broker, topic, protocol):
    """A member of a group of that name, with the one partition of the topic and nine records to read."""
    broker.create_topic(topic, partitions=1)
    filler = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(9):
        filler.produce(topic, str(number).encode())
    assert filler.flush(WAIT_S) == 0
    reader = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    reader.subscribe([topic])
    deadline = time.monotonic() + WAIT_S
    while not reader.assignment():
        assert time.monotonic() < deadline
        reader.poll(0.1)
    return reader


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_count_with_their_transaction(broker, protocol):
    topic = f"copied-{protocol}"
    reader = reading(broker, topic, protocol)
    writer = producer(broker, topic)
    part = confluent_kafka.TopicPartition(topic, 0)
    for offset, commit in ((3, True), (6, False), (8, True)):
        writer.begin_transaction()
        asked = [confluent_kafka.TopicPartition(topic, 0, offset)]
        writer.send_offsets_to_transaction(asked, reader.consumer_group_metadata(), WAIT_S)
        (writer.commit_transaction if commit else writer.abort_transaction)(WAIT_S)
        expected = offset if commit else 3
        assert reader.committed([part], WAIT_S)[0].offset == expected
    metadata = reader.consumer_group_metadata()
    reader.close()
    writer.begin_transaction()
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        writer.send_offsets_to_transaction([confluent_kafka.TopicPartition(topic, 0, 9)], metadata, WAIT_S)
    assert refused.value.args[0].txn_requires_abort(), "a member that has left cannot commit"
    writer.abort_transaction(WAIT_S)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_producer_that_cannot_say_whose_group_it_is(broker, protocol):
    """aiokafka's knows no KIP-447: it commits for a group with members all the same, and its own epoch fences it."""
    topic = f"old-{protocol}"
    reader = reading(broker, topic, protocol)
    asyncio.run(commit_with_aiokafka(broker.bootstrap_servers, topic))
    (committed,) = reader.committed([confluent_kafka.TopicPartition(topic, 0)], WAIT_S)
    reader.close()
    assert committed.offset == 5


async def commit_with_aiokafka(bootstrap, topic):
    writer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    await writer.start()
    async with writer.transaction():
        await writer.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): 5}, topic)
    await writer.stop()
