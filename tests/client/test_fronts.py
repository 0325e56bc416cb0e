"""Behaviour that all fronts share with a broker: records there and back, positions, administration, errors, closing."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.client import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Admin,
    ConfigChange,
    ConfigOperation,
    Consumer,
    ConsumerRecord,
    NewTopic,
    Producer,
    ResourceType,
    TopicPartition,
)
from headrace.client.errors import (
    BrokerError,
    BufferFull,
    ClientClosed,
    DeadlineExceeded,
    InvalidArgument,
)
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker
from tests.reserved_ports import reserved_address

from .fronts import Front
from .hostile import FaultProxy

WAIT_MS = 60_000
FIRST_CONTACTS_MAX = 1_000


pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=3)


@pytest.fixture
def admin(broker: EmbeddedBroker, front: Front) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers, timeout_ms=WAIT_MS) as opened:
        yield opened


@pytest.fixture
def producer(broker: EmbeddedBroker, front: Front) -> Iterator[Producer]:
    with Producer(broker.bootstrap_servers) as opened:
        yield opened


def read(broker: EmbeddedBroker, *topics: str, count: int) -> list[ConsumerRecord]:
    with Consumer(
        *topics, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS
    ) as consumer:
        records: list[ConsumerRecord] = []
        for record in consumer:
            records.append(record)
            if len(records) == count:
                break
        return records


def test_seek_position_and_ends(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    place = TopicPartition(topic, 1)
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=1, timestamp=1_000 + 10 * number)
    producer.flush(timeout_ms=WAIT_MS)
    with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="latest") as consumer:
        consumer.assign([place])
        assert consumer.position(place) == 10
        consumer.seek(place, 7)
        assert [record.value for record in consumer.poll(timeout_ms=WAIT_MS)] == [b"7", b"8", b"9"]
        consumer.seek(place, EARLIEST)
        assert [record.value for record in consumer.poll(timeout_ms=WAIT_MS, max_records=2)] == [b"0", b"1"]
        assert consumer.position(place) == 2
        consumer.seek_to_time(1_045)
        assert next(consumer).value == b"5"
        assert consumer.position(place) == 6
        consumer.seek_to_time(9_999_999)
        assert consumer.position(place) == 10
        assert consumer.end_offsets() == {place: 10}
        assert consumer.beginning_offsets([(topic, 0), (topic, 1)]) == {TopicPartition(topic, 0): 0, place: 0}


def test_a_seek_within_an_iteration(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=0)
    producer.flush(timeout_ms=WAIT_MS)
    seen: list[int] = []
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        for record in consumer:
            seen.append(record.offset)
            if seen == [0, 1, 2]:
                consumer.seek((topic, 0), 8)
            elif record.offset == 9:
                break
    assert seen == [0, 1, 2, 8, 9]


def test_batches_begin_behind_the_last_record_that_was_given(
    broker: EmbeddedBroker, topic: str, producer: Producer
) -> None:
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=0)
    producer.flush(timeout_ms=WAIT_MS)
    seen: list[bytes | None] = []
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        seen.append(next(consumer).value)
        producer.send(topic, b"10", partition=0).result(timeout_ms=WAIT_MS)
        for batch in consumer.batches(timeout_ms=WAIT_MS):
            seen += batch.values()
            if seen[-1] == b"10":
                break
        assert consumer.position((topic, 0)) == 11
    assert seen == [b"%d" % number for number in range(11)]


def test_answers_larger_than_a_buffer_begins_with(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    size, count = 700_000, 4
    for number in range(3 * count):
        producer.send(topic, bytes([number]) * size, partition=number % 3)
    producer.flush(timeout_ms=WAIT_MS)
    options = {"max_partition_fetch_bytes": 4 * size, "auto_offset_reset": "earliest"}
    found: dict[int, list[bytes | None]] = {0: [], 1: [], 2: []}
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        for batch in consumer.batches(timeout_ms=WAIT_MS):
            found[batch.partition] += batch.values()
            if sum(map(len, found.values())) == 3 * count:
                break
    for partition, values in found.items():
        assert values == [bytes([number]) * size for number in range(partition, 3 * count, 3)]


def test_pauses(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        assert consumer.end_offsets([(topic, 0), (topic, 1)]) == {(topic, 0): 0, (topic, 1): 0}
        consumer.poll(timeout_ms=1)
        consumer.pause([(topic, 0)])
        assert consumer.paused() == ((topic, 0),)
        producer.send(topic, b"held back", partition=0).result(timeout_ms=WAIT_MS)
        producer.send(topic, b"given", partition=1).result(timeout_ms=WAIT_MS)
        assert [record.value for record in consumer.poll(timeout_ms=WAIT_MS)] == [b"given"]
        consumer.resume([(topic, 0)])
        assert consumer.paused() == ()
        assert [record.value for record in consumer.poll(timeout_ms=WAIT_MS)] == [b"held back"]
        assert consumer.metrics()["records-consumed-total"] == 2


def test_a_pause_within_an_iteration(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    """Records that were fetched and not given yet are held back too, and given after the pause."""
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=number % 2)
    producer.flush(timeout_ms=WAIT_MS)
    with Consumer(
        topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=50
    ) as consumer:
        first = next(consumer)
        consumer.pause([(topic, first.partition)])
        others = [next(consumer) for _ in range(5)]
        assert {record.partition for record in others} == {1 - first.partition}
        assert consumer.poll(timeout_ms=20) == []
        assert consumer.position((topic, first.partition)) == 1
        consumer.resume([(topic, first.partition)])
        assert [next(consumer).offset for _ in range(4)] == [1, 2, 3, 4]


def test_latest_sees_only_what_comes_later(broker: EmbeddedBroker, topic: str, producer: Producer) -> None:
    producer.send(topic, b"old", partition=0).result(timeout_ms=WAIT_MS)
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers) as consumer:
        assert consumer.position((topic, 0)) == 1
        assert consumer.assignment() == tuple(TopicPartition(topic, number) for number in range(3))
        producer.send(topic, b"new", partition=0).result(timeout_ms=WAIT_MS)
        assert next(consumer).value == b"new"
        assert consumer.poll(timeout_ms=1) == []


def test_iteration_ends_after_the_time_out(broker: EmbeddedBroker, topic: str) -> None:
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, consumer_timeout_ms=50) as consumer:
        assert list(consumer) == []


def test_topics(broker: EmbeddedBroker, admin: Admin) -> None:
    name = broker.unused_topic_name("made-here")
    new = [NewTopic(name, 2, configs={"retention.ms": "5000"}), NewTopic("bad name!")]
    assert admin.create_topics(new, validate_only=True)[name].error == ErrorCode.NONE
    assert admin.topics([name])[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    outcomes = admin.create_topics(new)
    assert outcomes[name].error == ErrorCode.NONE
    assert outcomes["bad name!"].error == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert outcomes["bad name!"].message
    assert admin.create_topics(new[:1])[name].error == ErrorCode.TOPIC_ALREADY_EXISTS
    (topic,) = admin.topics([name])
    assert ([p.partition for p in topic.partitions], topic.internal) == ([0, 1], False)
    assert topic.partitions[0].leader == topic.partitions[0].replicas[0] == topic.partitions[0].isr[0]
    assert name in [known.name for known in admin.topics()]
    assert admin.create_partitions({name: 1})[name].error == ErrorCode.INVALID_PARTITIONS
    assert admin.create_partitions({name: 4})[name].error == ErrorCode.NONE
    assert len(admin.topics([name])[0].partitions) == 4
    assert admin.delete_topics([name, "nothing"])["nothing"].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.topics([name])[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_configs(topic: str, admin: Admin) -> None:
    resource = (ResourceType.TOPIC, topic)
    change = ConfigChange(ConfigOperation.SET, "retention.ms", "86400000")
    assert [outcome.error for outcome in admin.alter_configs({resource: [change]}).values()] == [ErrorCode.NONE]
    (entries,) = admin.describe_configs([resource], with_documentation=True).values()
    (entry,) = [entry for entry in entries if entry.name == "retention.ms"]
    assert (entry.value, entry.is_default, entry.source.name) == ("86400000", False, "TOPIC")
    assert entry.documentation
    wrong = ConfigChange(ConfigOperation.SET, "retention.ms", "soon")
    (outcome,) = admin.alter_configs({resource: [wrong]}).values()
    assert outcome.error == ErrorCode.INVALID_CONFIG
    assert outcome.message
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        admin.describe_configs([(ResourceType.TOPIC, "nothing")])


def test_configs_of_a_broker(admin: Admin) -> None:
    (node,) = admin.cluster().brokers
    (entries,) = admin.describe_configs([(ResourceType.BROKER, str(node.node_id))]).values()
    assert "log.retention.ms" in [entry.name for entry in entries]


def test_offsets_and_deletion(topic: str, admin: Admin, producer: Producer) -> None:
    place = TopicPartition(topic, 0)
    for timestamp in (100, 300, 200):
        producer.send(topic, b"v", partition=0, timestamp=timestamp)
    producer.flush(timeout_ms=WAIT_MS)

    def at(time: int) -> tuple[int, int, ErrorCode]:
        found = admin.offsets({place: time})[place]
        return found.offset, found.timestamp, found.error

    assert at(LATEST)[0] == 3
    assert at(EARLIEST)[0] == 0
    assert at(MAX_TIMESTAMP) == (1, 300, ErrorCode.NONE)
    assert at(150) == (1, 300, ErrorCode.NONE)
    assert at(301) == (-1, -1, ErrorCode.NONE)
    assert admin.delete_records({place: 2}) == {place: (2, ErrorCode.NONE)}
    assert at(EARLIEST)[0] == 2
    assert admin.delete_records({place: 9})[place].error == ErrorCode.OFFSET_OUT_OF_RANGE
    (known,) = admin.producers([place])[place].producers
    assert known.last_sequence == 2


def test_brokers(topic: str, admin: Admin, broker: EmbeddedBroker) -> None:
    description = admin.cluster()
    assert description.cluster_id
    (node,) = description.brokers
    assert f"{node.host}:{node.port}" == broker.bootstrap_servers
    assert description.controller_id == node.node_id
    assert topic in {replica.topic for log_dir in admin.log_dirs() for replica in log_dir.replicas}
    ranges = {entry.api_key: entry for entry in admin.api_versions(node.node_id)}
    assert ranges[0].min_version == 0
    assert {0, 1, 2, 3, 18, 19} <= set(ranges)


def test_a_topic_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.client.producer_base.FIRST_CONTACT_WAIT_MS", 50)
    monkeypatch.setattr("headrace.client.consumer_base.UNKNOWN_TOPIC_WAIT_MS", 50)
    with EmbeddedBroker(config={"auto.create.topics.enable": "false"}) as strict:
        with Producer(strict.bootstrap_servers) as producer:
            with pytest.raises(BrokerError, match="headrace topics create"):
                producer.send("missing", b"v")
        with Consumer("missing", bootstrap_servers=strict.bootstrap_servers, unknown_topics="raise") as consumer:
            with pytest.raises(BrokerError, match="headrace topics create"):
                list(consumer)
        with Consumer("missing", bootstrap_servers=strict.bootstrap_servers) as consumer:
            with pytest.raises(BrokerError, match="headrace topics create"):
                consumer.end_offsets()


def test_a_topic_is_created_on_the_way() -> None:
    with EmbeddedBroker() as broker, Producer(broker.bootstrap_servers) as producer:
        assert producer.send("made-by-sending", b"v").result(timeout_ms=WAIT_MS).offset == 0


def test_a_topic_with_an_illegal_name(producer: Producer) -> None:
    with pytest.raises(BrokerError, match="INVALID_TOPIC_EXCEPTION"):
        producer.send("no spaces", b"v")


def test_a_full_buffer(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers, buffer_memory=3_000, linger_ms=60_000, max_block_ms=50) as producer:
        for _ in range(FIRST_CONTACTS_MAX):
            with suppress(DeadlineExceeded):  # nothing was known of the topic for so long
                producer.send(topic, bytes(1_500), partition=0)
                break
        with pytest.raises(BufferFull, match="raise buffer_memory"):
            producer.send(topic, bytes(1_500), partition=0)


def test_a_result_that_is_not_there_yet(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        delivery = producer.send(topic, b"v")
        with pytest.raises(DeadlineExceeded, match="not delivered yet"):
            delivery.result(timeout_ms=1)


def test_waits_of_a_producer_end(tmp_path: Path) -> None:
    """The producer waits as long as asked for what cannot be delivered, then gives up and says what is wrong."""
    listeners = f"PLAINTEXT://{reserved_address()}"  # no other process gets it when the broker has stopped
    broker = EmbeddedBroker(data_dir=str(tmp_path), config={"listeners": listeners}).start()
    producer = Producer(broker.bootstrap_servers)
    assert producer.send("t", b"there").result(timeout_ms=WAIT_MS).offset == 0
    broker.stop()
    delivery = producer.send("t", b"nowhere")
    with pytest.raises(DeadlineExceeded, match=r"1 batch is not delivered yet after 300 ms: .*broker"):
        producer.flush(timeout_ms=300)
    with pytest.raises(DeadlineExceeded, match="not delivered yet"):
        producer.close(timeout_ms=100)
    with pytest.raises(ClientClosed, match="closed before the record was delivered"):
        delivery.result(timeout_ms=WAIT_MS)


def test_one_of_several_bootstrap_servers_is_enough(broker: EmbeddedBroker, topic: str) -> None:
    dead = reserved_address()
    for servers in (f"{dead},{broker.bootstrap_servers}", [broker.bootstrap_servers, dead]):
        with Producer(servers) as producer, Admin(servers) as admin:
            assert producer.send(topic, b"v", partition=0).result(timeout_ms=WAIT_MS).partition == 0
            assert [each.name for each in admin.topics([topic])] == [topic]
        with Consumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            assert next(consumer).value == b"v"


def test_closed_objects_say_so(broker: EmbeddedBroker, topic: str) -> None:
    admin, producer = Admin(broker.bootstrap_servers), Producer(broker.bootstrap_servers)
    consumer = Consumer(topic, bootstrap_servers=broker.bootstrap_servers)
    for opened in (admin, producer, consumer):
        opened.close()
        opened.close()
    for use in (admin.cluster, lambda: producer.send(topic, b"v"), producer.flush, consumer.poll):
        with pytest.raises(ClientClosed, match="create a new one"):
            use()


@pytest.mark.parametrize(
    "arguments",
    [
        {"acks": 2},
        {"acks": 1, "idempotent": True},
        {"compression": "brotli"},
        {"batch_size": 0},
        {"bootstrap_servers": "nowhere:port"},
        {"request_timeout_ms": 0},
    ],
)
def test_arguments_of_a_producer(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Producer(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [{"group_id": ""}, {"auto_offset_reset": "middle"}, {"max_poll_records": 0}, {"bootstrap_servers": ""}],
)
def test_arguments_of_a_consumer(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Consumer("t", **arguments)  # type: ignore[arg-type]


def test_arguments_of_calls(broker: EmbeddedBroker, topic: str, producer: Producer, admin: Admin) -> None:
    with pytest.raises(InvalidArgument, match="bytes"):
        producer.send(topic, "text")  # type: ignore[arg-type]
    for partition in (9, "1"):
        with pytest.raises(InvalidArgument, match=f"not {partition!r}"):
            producer.send(topic, b"v", partition=partition)
    for nameless in (None, 5, ""):
        with pytest.raises(InvalidArgument, match="a topic has a name"):
            producer.send(nameless, b"v")
    for headers in ({"name": b"v"}, [("name", "text")], [(b"name", b"v")], [5], 5):
        with pytest.raises(InvalidArgument, match="headers are pairs"):
            producer.send(topic, b"v", headers=headers)
    for timestamp in ("now", 1.5, -2, 2**63):
        with pytest.raises(InvalidArgument, match="milliseconds since 1970"):
            producer.send(topic, b"v", timestamp=timestamp)
    assert producer.send(topic, b"v", partition=0).result(timeout_ms=WAIT_MS).offset == 0
    with pytest.raises(InvalidArgument, match="given as a list"):
        admin.topics("one")
    with pytest.raises(InvalidArgument, match="one by one"):
        Consumer([topic])  # type: ignore[arg-type]
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        with pytest.raises(InvalidArgument, match="nothing to read"):
            consumer.poll()
        consumer.assign([(topic, 0)])
        for use in (
            lambda: consumer.poll(max_records=0),
            lambda: consumer.seek((topic, 1), 0),
            lambda: consumer.seek((topic, 0), -5),
            lambda: consumer.seek_to_time(-1),
        ):
            with pytest.raises(InvalidArgument):
                use()


def test_bytes_in_small_slices_and_connections_that_are_cut() -> None:
    """Every record once and in order, though the first connections break after a few hundred bytes."""
    cuts = (150, 700, 1_200, 2_500, 900, 4_000)
    with FaultProxy(slice_bytes=97) as proxy:
        advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.address}", "listeners": "PLAINTEXT://127.0.0.1:0"}
        with EmbeddedBroker(config=advertised) as broker:
            host, port = broker.bootstrap_servers.rsplit(":", 1)
            proxy.broker = (host, int(port))
            with Admin(broker.bootstrap_servers) as direct:
                assert direct.create_topics([NewTopic("t")])["t"].error == ErrorCode.NONE
            proxy.cuts = list(cuts)
            with Producer(proxy.address, batch_size=500, linger_ms=1) as producer:
                deliveries = [producer.send("t", b"%03d" % number + bytes(60), partition=0) for number in range(300)]
                producer.flush(timeout_ms=WAIT_MS)
            assert [delivery.result().offset for delivery in deliveries] == list(range(300))
            assert proxy.cuts == [], "every cut was made"
            records = read(broker, "t", count=300)
            assert [int((record.value or b"")[:3]) for record in records] == list(range(300))
            with Consumer("t", bootstrap_servers=broker.bootstrap_servers) as consumer:
                assert consumer.end_offsets() == {TopicPartition("t", 0): 300}


def test_a_broker_that_restarts_is_not_noticed(tmp_path: Path) -> None:
    """The same producer and consumer go on: nothing lost, doubled or out of order."""
    config = {"listeners": f"PLAINTEXT://{reserved_address()}"}
    broker = EmbeddedBroker(data_dir=str(tmp_path), config=config).start()
    servers = broker.bootstrap_servers
    try:
        broker.create_topic("t")
        with (
            Producer(servers, batch_size=300) as producer,
            Consumer("t", bootstrap_servers=servers, auto_offset_reset="earliest") as consumer,
        ):
            seen: list[bytes | None] = []
            for life in range(3):
                for number in range(100):
                    producer.send("t", b"%d:%d" % (life, number))
                producer.flush(timeout_ms=WAIT_MS)
                while len(seen) < 101 * life + 100:
                    seen += [record.value for record in consumer.poll(timeout_ms=WAIT_MS)]
                broker.stop()
                producer.send("t", b"%d:sent while it was down" % life)
                broker.start()
                while len(seen) < 101 * (life + 1):
                    seen += [record.value for record in consumer.poll(timeout_ms=WAIT_MS)]
    finally:
        broker.stop()
    expected = [
        value
        for life in range(3)
        for value in (*(b"%d:%d" % (life, number) for number in range(100)), b"%d:sent while it was down" % life)
    ]
    assert seen == expected
