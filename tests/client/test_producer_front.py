"""Features of producers beside sending bytes: partitioners, serializers, callbacks, configs, metrics."""

import json
import logging
import threading

import msgspec
import pytest

from headrace.client import Consumer, Delivery, Producer, TopicPartition
from headrace.client.errors import DeserializationError, InvalidArgument, SerializationError
from headrace.client.serializers import typed_json, typed_msgpack
from headrace.testing import EmbeddedBroker

from .fronts import Front

WAIT_MS = 60_000
PARTITIONS = 4


pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=PARTITIONS)


def partitions_of(broker: EmbeddedBroker, topic: str, keys: list[bytes | None], **options: object) -> list[int]:
    with Producer(broker.bootstrap_servers, **options) as producer:
        return [producer.send(topic, b"v", key=key).result(timeout_ms=WAIT_MS).partition for key in keys]


def test_partitioners(broker: EmbeddedBroker, topic: str) -> None:
    keys = [b"a", b"b", b"c", b"a"]
    assert partitions_of(broker, topic, keys, partitioner="round-robin") == [0, 1, 2, 3]
    by_hash = partitions_of(broker, topic, keys, partitioner="hash")
    assert by_hash == [0xE8B7BE43 % 4, 0x71BEEFF9 % 4, 0x06B9DF6F % 4, 0xE8B7BE43 % 4]
    assert partitions_of(broker, topic, keys, partitioner=lambda name, key, count: count - 1) == [3, 3, 3, 3]
    with pytest.raises(InvalidArgument, match="not 9"):
        partitions_of(broker, topic, keys, partitioner=lambda name, key, count: 9)
    with pytest.raises(InvalidArgument, match="not a number"):
        partitions_of(broker, topic, keys, partitioner=lambda name, key, count: "first")


def test_serializers_there_and_back(broker: EmbeddedBroker, topic: str) -> None:
    def as_json(value: object) -> bytes:
        return json.dumps(value).encode()

    with Producer(broker.bootstrap_servers, key_serializer=str.encode, value_serializer=as_json) as producer:
        producer.send(topic, {"n": 1}, key="k", partition=0).result(timeout_ms=WAIT_MS)
        producer.send(topic, None, partition=0).result(timeout_ms=WAIT_MS)
        with pytest.raises(SerializationError, match="cannot be serialized"):
            producer.send(topic, {1, 2}, partition=0)
    options = {"key_deserializer": bytes.decode, "value_deserializer": json.loads, "auto_offset_reset": "earliest"}
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        first, second = next(consumer), next(consumer)
    assert (first.key, first.value, second.key, second.value) == ("k", {"n": 1}, None, None)


@pytest.mark.parametrize("name", ["json", "msgpack"])
def test_named_and_typed_serializers(broker: EmbeddedBroker, topic: str, name: str) -> None:
    class Order(msgspec.Struct):
        count: int

    with Producer(broker.bootstrap_servers, key_serializer="str", value_serializer=name) as producer:
        producer.send(topic, Order(3), key="k", partition=0)
        producer.send(topic, {"count": "many"}, key="k", partition=0)
    typed = {"json": typed_json, "msgpack": typed_msgpack}[name]
    options = {"key_deserializer": "str", "value_deserializer": typed(Order), "auto_offset_reset": "earliest"}
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        record = next(consumer)
        assert (record.key, record.value) == ("k", Order(3))
        with pytest.raises(DeserializationError, match="Expected `int`, got `str`"):
            next(consumer)


def test_wrong_types_are_refused(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        with pytest.raises(InvalidArgument, match="value must be bytes or None, not str: encode it"):
            producer.send(topic, "text")
        with pytest.raises(InvalidArgument, match="key must be bytes or None, not int"):
            producer.send(topic, b"v", key=7)


def test_callbacks_tell_how_it_ended(broker: EmbeddedBroker, topic: str, front: Front) -> None:
    ended: list[tuple[int, int, str]] = []
    noted = threading.Event()

    def note(delivery: Delivery) -> None:
        where = delivery.result()
        ended.append((where.partition, where.offset, threading.current_thread().name))
        noted.set()
        raise RuntimeError("is logged, and does no harm")

    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"v", partition=1, on_delivery=note)
        later = producer.send(topic, b"v", partition=1)
        producer.flush(timeout_ms=WAIT_MS)
        assert noted.is_set(), "callbacks have run when a flush ends"
        later.add_done_callback(lambda delivery: ended.append((0, delivery.result().offset, "here")))
        metrics = producer.metrics()
    own = "headrace-producer" if front.name == "blocking" else "asyncio-front"
    assert ended == [(1, 0, own), (0, 1, "here")]
    assert metrics["record-send-total"] == 2
    assert metrics["buffered-bytes"] == metrics["batches-unsettled"] == metrics["record-error-total"] == 0


def test_what_was_given_up_is_said_at_the_end(broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    """Unless the program has looked at its delivery. What was aborted on purpose is no loss."""

    topic = broker.unused_topic_name("small")

    def messages() -> list[str]:  # clients of other tests may log something too
        told = [record.getMessage() for record in caplog.records if record.name == "headrace.client"]
        return [each for each in told if topic in each]

    broker.create_topic(topic, partitions=PARTITIONS, configs={"max.message.bytes": "100"})
    with caplog.at_level(logging.WARNING, "headrace.client"):
        with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}", linger_ms=60_000) as producer:
            with producer.transaction() as transaction:
                producer.send(topic, b"v")
                transaction.abort()
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(topic, bytes(1_000), on_delivery=lambda delivery: delivery.error())
        assert messages() == []
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(topic, bytes(1_000), partition=0)
            producer.send(topic, b"v", partition=1)
    (told,) = messages()
    assert told.startswith(
        f"records were not delivered, as their deliveries report; the last error: the records for {topic}-0 were"
    )


def test_whole_batches(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(config={"bootstrap.servers": broker.bootstrap_servers, "linger.ms": str(WAIT_MS)}) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, key=b"k", partition=0)
        producer.flush(timeout_ms=WAIT_MS)
    with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        batch = next(iter(consumer.batches(timeout_ms=WAIT_MS)))
        assert consumer.position(TopicPartition(topic, 0)) == batch.next_offset == 10
    assert (batch.topic, batch.partition, batch.offset, len(batch)) == (topic, 0, 0, 10)
    assert batch.values() == [b"%d" % number for number in range(10)]
    assert batch.keys() == [b"k"] * 10
    assert [record.offset for record in batch] == list(range(10))
