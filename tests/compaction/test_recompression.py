"""compression.type: batches are stored under the topic's codec, and clients read them like any other."""

import confluent_kafka
import pytest

from headrace.sim.node import VirtualNode
from headrace.sim.world import World
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from headrace.wire.errors import CorruptBatch
from headrace.wire.messages import produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER, checksum
from headrace.wire.records.reader import batches, check_batch, records
from headrace.wire.records.recompression import RECOMPRESSED_BYTES_MAX, recompressed

from .virtual_client import PRODUCE_VERSION, VirtualClient

TOPIC = "packed"
ROWS = [NewRecord(1_700_000_000_000 + n, b"key-%d" % n, b"value " * 20, [("h", b"x")]) for n in range(20)]


def batch_of(codec: int, rows: list[NewRecord] = ROWS, **more: int) -> bytearray:
    return build_batch(rows, compression=codec, **more)


@pytest.mark.parametrize("source", list(Compression))
@pytest.mark.parametrize("target", list(Compression))
def test_only_the_codec_changes(source: Compression, target: Compression) -> None:
    batch = batch_of(source, producer_id=5, producer_epoch=1, base_sequence=9)
    before = HEADER.unpack_from(batch)
    changed = recompressed(memoryview(batch), before, target)
    assert changed is not None
    after = check_batch(changed)
    assert after[5] & 7 == target
    assert [after[place] for place in (0, 2, 3, 6, 7, 8, 9, 10, 11, 12)] == [
        before[place] for place in (0, 2, 3, 6, 7, 8, 9, 10, 11, 12)
    ]
    assert list(records(changed)) == list(records(batch))


@pytest.mark.parametrize("target", list(Compression))
def test_large_batches_are_left_alone(target: Compression) -> None:
    large = batch_of(Compression.ZSTD, [NewRecord(0, b"k", bytes(RECOMPRESSED_BYTES_MAX[target]))])
    assert recompressed(memoryview(large), HEADER.unpack_from(large), target) is None


def test_what_cannot_be_read_is_refused() -> None:
    batch = batch_of(Compression.LZ4)
    batch[70:90] = bytes(20)
    with pytest.raises(CorruptBatch):
        recompressed(memoryview(batch), HEADER.unpack_from(batch), Compression.ZSTD)


class Topic:
    def __init__(self, configs: dict[str, str]) -> None:
        self.world = World(1)
        self.virtual = VirtualNode(self.world)
        self.virtual.boot()
        self.client = VirtualClient(self.world)
        self.client.create_topic(TOPIC, configs)

    def send(self, batch: bytearray) -> int:
        part = produce.ProduceRequestPartition(index=0, records=bytes(batch))
        topic = produce.ProduceRequestTopic(name=TOPIC, partition_data=(part,))
        request = produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(topic,))
        answer = self.client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
        error: int = answer.responses[0].partition_responses[0].error_code
        return error

    def stored(self) -> list[memoryview]:
        return list(batches(self.client.fetch(TOPIC, 0).records))


@pytest.mark.parametrize(("name", "codec"), [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_a_topic_stores_under_its_codec(name: str, codec: int) -> None:
    topic = Topic({"compression.type": name})
    for source in Compression:
        assert topic.send(batch_of(source)) == 0
    stored = topic.stored()
    assert len(stored) == len(Compression)
    for number, batch in enumerate(stored):
        fields = check_batch(batch)
        assert fields[5] & 7 == codec
        assert fields[0] == number * len(ROWS)
        assert [record.value for record in records(batch)] == [row.value for row in ROWS]


def test_a_retry_is_recognised_whatever_it_was_stored_as() -> None:
    topic = Topic({"compression.type": "zstd"})
    batch = batch_of(Compression.LZ4, producer_id=7, producer_epoch=0, base_sequence=0)
    assert topic.send(batch) == 0
    assert topic.send(batch) == 0
    assert len(topic.stored()) == 1


def test_append_time_and_codec_together() -> None:
    topic = Topic({"compression.type": "lz4", "message.timestamp.type": "LogAppendTime"})
    assert topic.send(batch_of(Compression.NONE)) == 0
    (batch,) = topic.stored()
    fields = check_batch(batch)
    assert fields[5] & 0xF == 3 | 8


def test_records_that_cannot_be_opened_and_batches_that_grow_too_large_are_refused() -> None:
    topic = Topic({"compression.type": "uncompressed", "max.message.bytes": "2000"})
    broken = batch_of(Compression.LZ4)
    broken[70:90] = bytes(20)
    broken[17:21] = checksum(broken).to_bytes(4, "big")
    assert topic.send(broken) == 87
    growing = batch_of(Compression.ZSTD, [NewRecord(1_700_000_000_000, b"k", bytes(5000))])
    assert topic.send(growing) == 10
    assert topic.send(batch_of(Compression.ZSTD, ROWS[:2])) == 0
    assert len(topic.stored()) == 1


def test_a_stock_client_reads_what_was_stored_anew() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC, configs={"compression.type": "zstd"})
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "gzip"})
        for number in range(500):
            producer.produce(TOPIC, b"value-%d" % number)
        assert producer.flush(20) == 0
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        values = []
        while len(values) < 500:
            message = consumer.poll(20)
            assert message is not None
            values.append(message.value())
        consumer.close()
    assert values == [b"value-%d" % number for number in range(500)]
