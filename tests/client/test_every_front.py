"""Behaviour that all three fronts share: records there and back, positions, groups and transactions."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from headrace.client import Consumer, ConsumerRecord, Producer, RecordMetadata, TopicPartition
from headrace.client.errors import BrokerError, InvalidArgument
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey

from .fronts import EVERY_FRONT, Front
from .hostile import HostileServer, ScriptedServer, listen_only

WAIT_MS = 60_000
PARTITIONS = 3
FRONTS = EVERY_FRONT

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=PARTITIONS)


def reader(broker: EmbeddedBroker, *topics: str, **options: Any) -> Consumer:
    defaults = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
    return Consumer(*topics, bootstrap_servers=broker.bootstrap_servers, **{**defaults, **options})


def read(broker: EmbeddedBroker, *topics: str, count: int, **options: Any) -> list[ConsumerRecord]:
    with reader(broker, *topics, **options) as consumer:
        return [next(consumer) for _ in range(count)]


@pytest.fixture
def producer(broker: EmbeddedBroker, front: Front) -> Iterator[Producer]:
    with Producer(broker.bootstrap_servers) as opened:
        yield opened


def test_there_and_back(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    sent = producer.send(topic, b"value", key=b"key", headers=[("h", b"1"), ("n", None)], timestamp=1234)
    where = sent.result(timeout_ms=WAIT_MS)
    assert where == RecordMetadata(topic, where.partition, 0, 1234)
    assert sent.done()
    (record,) = read(broker, topic, count=1)
    assert record == ConsumerRecord(topic, where.partition, 0, 1234, b"key", b"value", (("h", b"1"), ("n", None)))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_many_records_in_order(broker: EmbeddedBroker, topic: str, compression: str) -> None:
    with Producer(broker.bootstrap_servers, compression=compression, batch_size=2_000) as producer:
        deliveries = [producer.send(topic, b"%d" % number, partition=number % 3) for number in range(900)]
        producer.flush(timeout_ms=WAIT_MS)
        assert all(delivery.done() for delivery in deliveries)
    assert deliveries[-1].result().offset == 299
    records = read(broker, topic, count=900)
    for partition in range(3):
        values = [int(record.value or b"") for record in records if record.partition == partition]
        assert values == list(range(partition, 900, 3))


@pytest.mark.parametrize(
    "hanging",
    [partial(HostileServer, listen_only), partial(ScriptedServer, {*ApiKey}, lambda _request: None)],
    ids=["at once", "after ApiVersions"],
)
def test_a_bootstrap_server_that_accepts_and_never_answers(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch, hanging: Callable[[], HostileServer]
) -> None:
    monkeypatch.setattr(
        "headrace.ports.real.entropy.RealEntropy.below", lambda _self, _bound: 0
    )  # the first in the list
    with hanging() as silent:
        servers = f"{silent.address},{broker.bootstrap_servers}"
        with Producer(servers) as producer:
            assert producer.send(topic, b"v", partition=0).result(timeout_ms=WAIT_MS).offset == 0
        with Consumer(
            topic, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=f"g-{topic}"
        ) as consumer:
            assert [record.value for record in consumer.poll(timeout_ms=WAIT_MS)] == [b"v"]
        assert silent.accepted == 2, "each client tried it first"


@pytest.mark.parametrize("acks", [0, 1])
def test_weaker_acks(broker: EmbeddedBroker, topic: str, acks: int) -> None:
    with Producer(broker.bootstrap_servers, acks=acks) as producer:  # type: ignore[arg-type]
        where = producer.send(topic, b"v", partition=0).result(timeout_ms=WAIT_MS)
    assert where.offset == (-1 if acks == 0 else 0)
    assert [record.value for record in read(broker, topic, count=1)] == [b"v"]


def test_null_values_and_keys(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    producer.send(topic, None, key=b"", partition=0).result(timeout_ms=WAIT_MS)
    (record,) = read(broker, topic, count=1)
    assert (record.key, record.value) == (b"", None)


def test_a_record_the_broker_refuses(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic(broker.unused_topic_name("small-records"), configs={"max.message.bytes": "200"})
    with Producer(broker.bootstrap_servers) as producer:
        with pytest.raises(BrokerError, match=r"raise max\.message\.bytes"):
            producer.send(topic, bytes(500)).result(timeout_ms=WAIT_MS)
        assert producer.send(topic, bytes(10)).result(timeout_ms=WAIT_MS).offset == 0


def test_positions(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    place = TopicPartition(topic, 1)
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=1)
    producer.flush(timeout_ms=WAIT_MS)
    with reader(broker, auto_offset_reset="latest") as consumer:
        consumer.assign([place])
        assert consumer.assignment() == (place,)
        assert consumer.position(place) == 10
        consumer.seek(place, 7)
        assert [record.value for record in consumer.poll(timeout_ms=WAIT_MS)] == [b"7", b"8", b"9"]
        assert consumer.position(place) == 10


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_share_and_commit(broker: EmbeddedBroker, topic: str, producer: Producer, protocol: str) -> None:
    for number in range(30):
        producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    producer.flush(timeout_ms=WAIT_MS)
    options = {"group_id": f"g-{topic}", "group_protocol": protocol, "heartbeat_interval_ms": 100}
    seen: list[bytes] = []
    with ExitStack() as closing:
        members = [closing.enter_context(reader(broker, topic, **options)) for _ in range(2)]
        for _ in range(WAIT_MS // 40):
            for each in members:
                seen += [record.value for record in each.poll(timeout_ms=20)]
            shares = sorted(len(each.assignment()) for each in members)
            if len(seen) >= 30 and shares == [1, 2]:
                break
        assert sorted(map(int, seen)) == list(range(30)), "each of them once, however the partitions moved"
        assert shares == [1, 2]
    producer.send(topic, b"30", partition=0).result(timeout_ms=WAIT_MS)
    with reader(broker, topic, **options) as heir:
        assert next(heir).value == b"30", "what was read is committed"
        assert heir.group_identity().group_id == f"g-{topic}"


def test_transactions_with_offsets(broker: EmbeddedBroker, topic: str) -> None:
    group = f"g-{topic}"
    with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}") as producer:
        for number, commits in enumerate((True, False, True)):
            try:
                with producer.transaction() as transaction:
                    producer.send(topic, b"%d" % number, partition=0)
                    transaction.commit_offsets({(topic, 0): number + 1}, group)
                    if not commits:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                assert not commits
        with pytest.raises(InvalidArgument, match="within"):
            producer.send(topic, b"outside")
    found = read(broker, topic, count=2, isolation_level="read_committed")
    assert [record.value for record in found] == [b"0", b"2"]
    with reader(broker, group_id=group) as consumer:
        consumer.assign([(topic, 0)])
        assert consumer.position((topic, 0)) == 3
