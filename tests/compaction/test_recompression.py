"""compression.type: batches are stored under the topic's codec, and clients read them like any other."""

from pathlib import Path
from random import Random

import confluent_kafka
import pytest

from headrace.broker.partitions.codecs import (
    RECOMPRESSED_ON_LOOP_BYTES_MAX,
    STORED_CODECS,
    is_recompressed_on_loop,
    stored_by_helper,
    stored_on_loop,
)
from headrace.broker.partitions.keys import INFLATION_TIMES_MAX
from headrace.model.errors import ErrorCode
from headrace.sim.node import VirtualNode
from headrace.sim.world import World
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from headrace.wire.errors import CorruptBatch, InflationLimit
from headrace.wire.messages import produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER, checksum
from headrace.wire.records.reader import batches, check_batch, records
from headrace.wire.records.recompression import recompressed

from .virtual_client import PRODUCE_VERSION, VirtualClient

pytestmark = pytest.mark.process

TOPIC = "packed"
ROWS = [NewRecord(1_700_000_000_000 + n, b"key-%d" % n, b"value " * 20, [("h", b"x")]) for n in range(20)]


def batch_of(codec: int, rows: list[NewRecord] = ROWS, **more: int) -> bytearray:
    return build_batch(rows, compression=codec, **more)


@pytest.mark.parametrize("source", list(Compression))
@pytest.mark.parametrize("target", list(Compression))
def test_only_the_codec_changes(source: Compression, target: Compression) -> None:
    batch = batch_of(source, producer_id=5, producer_epoch=1, base_sequence=9)
    before = HEADER.unpack_from(batch)
    changed = recompressed(memoryview(batch), before, target, inflated_bytes_max=1 << 20)
    after = check_batch(changed)
    assert after[5] & 7 == target
    assert [after[place] for place in (0, 2, 3, 6, 7, 8, 9, 10, 11, 12)] == [
        before[place] for place in (0, 2, 3, 6, 7, 8, 9, 10, 11, 12)
    ]
    assert list(records(changed)) == list(records(batch))


@pytest.mark.parametrize("source", list(Compression))
@pytest.mark.parametrize("target", list(Compression))
def test_a_helper_does_what_the_loop_does_and_also_what_is_too_large_for_it(
    source: Compression, target: Compression
) -> None:
    small = memoryview(batch_of(source))
    fields = HEADER.unpack_from(small)
    assert is_recompressed_on_loop(small, fields, target)
    assert stored_on_loop(small, fields, target, 1 << 20) == stored_by_helper(small, target, 1 << 20)
    rows = [NewRecord(0, b"k", bytes(RECOMPRESSED_ON_LOOP_BYTES_MAX[target]))]
    large = memoryview(batch_of(source, rows))
    fields = HEADER.unpack_from(large)
    assert not is_recompressed_on_loop(large, fields, target)
    with pytest.raises(InflationLimit):
        stored_on_loop(large, fields, target, 1 << 20)
    stored = stored_by_helper(large, target, 1 << 20)
    assert isinstance(stored, bytearray)
    assert check_batch(stored)[5] & 7 == target
    assert [record.value for record in records(stored)] == [rows[0].value]


def test_what_inflates_too_far_or_grows_too_large_is_to_be_sent_in_smaller_batches() -> None:
    bomb = memoryview(batch_of(Compression.ZSTD, [NewRecord(0, b"k", bytes(INFLATION_TIMES_MAX * 1000))]))
    assert stored_by_helper(bomb, Compression.LZ4, 1000) is ErrorCode.MESSAGE_TOO_LARGE
    assert stored_by_helper(bomb, Compression.NONE, 10_000) is ErrorCode.MESSAGE_TOO_LARGE


def test_what_cannot_be_read_is_refused() -> None:
    batch = batch_of(Compression.LZ4)
    batch[70:90] = bytes(20)
    with pytest.raises(CorruptBatch):
        recompressed(memoryview(batch), HEADER.unpack_from(batch), Compression.ZSTD, inflated_bytes_max=1 << 20)
    assert is_recompressed_on_loop(memoryview(batch), HEADER.unpack_from(batch), Compression.ZSTD)


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


SIZE_CLASSES = {"one small record": (1, 100), "on the loop": (40, 200), "by a helper": (40, 20_000)}
"""Number of messages that are sent together, and the bytes of each: 100 B, 8 KB and 800 KB of records."""


def messages(count: int, size: int) -> list[bytes]:
    draw = Random(size)
    return [b"%d " % number + draw.randbytes(size // 2) + bytes(size // 2) for number in range(count)]


def test_every_batch_of_a_stock_client_is_stored_under_the_codec_of_its_topic(tmp_path: Path) -> None:
    sent: list[bytes] = []
    with EmbeddedBroker(data_dir=str(tmp_path)) as broker:
        for name in STORED_CODECS:
            broker.create_topic(name, configs={"compression.type": name, "max.message.bytes": "2000000"})
        for source in ("none", "gzip", "snappy", "lz4", "zstd"):
            settings = {"bootstrap.servers": broker.bootstrap_servers, "compression.type": source, "linger.ms": 30}
            producer = confluent_kafka.Producer({**settings, "enable.idempotence": True})
            for count, size in SIZE_CLASSES.values():
                values = messages(count, size)
                for name in STORED_CODECS:
                    for value in values:
                        producer.produce(name, value)
                assert producer.flush(60) == 0
                sent += values
        for name in STORED_CODECS:
            assert values_read(broker, name, len(sent)) == sent
    for name, codec in STORED_CODECS.items():
        stored = segment_batches(tmp_path, name)
        assert {check_batch(batch)[5] & 7 for batch in stored} == {codec}
        opened = [sum(len(record.value or b"") for record in records(batch)) for batch in stored]
        assert max(opened) > max(RECOMPRESSED_ON_LOOP_BYTES_MAX.values())
        assert min(opened) < 1000


def values_read(broker: EmbeddedBroker, topic: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert value is not None
        values.append(value)
    consumer.close()
    return values


def segment_batches(folder: Path, topic: str) -> list[memoryview]:
    return [batch for file in sorted(folder.glob(f"{topic}-0/*.log")) for batch in batches(file.read_bytes())]
