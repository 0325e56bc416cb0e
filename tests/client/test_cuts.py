"""Connections cut after every single byte, in either direction: what was sent is there once, and all of it is read."""

from typing import Any

import pytest

from headrace.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from headrace.client.core.admin import brokers
from headrace.client.errors import ClientError
from headrace.client.loop import LoopClient
from headrace.model.ids import TopicPartition
from headrace.wire.apis import ApiKey
from headrace.wire.messages import fetch, init_producer_id, list_offsets, metadata, produce
from headrace.wire.records.builder import NewRecord, build_batch

from .model_broker import TOPIC_ID, ModelPartition
from .scripted import ScriptedBroker, ScriptedNetwork, ScriptedTransport, VirtualClock

VALUES = [b"first", b"second"]
TURNS_MAX = 2_000
T0 = TopicPartition("t", 0)


class CuttingTransport(ScriptedTransport):
    """Breaks when a number of bytes have gone in one direction; what the broker did with them is done."""

    def __init__(self, network: "CuttingNetwork", token: int, peer: Any, sent_max: int, received_max: int) -> None:
        super().__init__(network, token, peer)
        self._sent_left, self._received_left = sent_max, received_max

    def send(self, buffer: bytes | bytearray | memoryview, flags: int = 0, /) -> int:
        if self.is_broken:
            raise BrokenPipeError(32, "Broken pipe")
        part = buffer[: self._sent_left]
        count = super().send(part) if len(part) else 0
        self._sent_left -= count
        self.is_broken = self._sent_left <= 0
        return count or len(part)

    def recv_into(self, buffer: memoryview, /) -> int:
        if self._received_left <= 0:
            raise ConnectionResetError(104, "Connection reset by peer")
        count = super().recv_into(buffer[: self._received_left])
        self._received_left -= count
        return count


class CuttingNetwork(ScriptedNetwork):
    """Cuts the first connections after a number of bytes; later ones hold."""

    def __init__(self, clock: VirtualClock, peer: Any, *, cuts: int, sent_max: int, received_max: int) -> None:
        super().__init__(clock, {1: peer})
        self._cuts, self._limits = cuts, (sent_max, received_max)

    def connect(self, host: str, port: int) -> Any:
        self.connected_to.append(port)
        limits = self._limits if len(self.transports) < self._cuts else (2**60, 2**60)
        transport = CuttingTransport(self, len(self.transports), self.peers.get(port), *limits)
        self.transports.append(transport)
        return transport


class Zero:
    def below(self, _bound: int) -> int:
        return 0

    def random_bytes(self, count: int) -> bytes:
        return bytes(count)


class World:
    """A broker with one partition behind a network that cuts, and a client on it."""

    def __init__(self, *, cuts: int = 1, sent_max: int = 2**60, received_max: int = 2**60) -> None:
        self.partition = ModelPartition()
        self.clock = VirtualClock()
        self.broker = ScriptedBroker(
            {
                ApiKey.METADATA: self._metadata,
                ApiKey.INIT_PRODUCER_ID: lambda _r, _v: init_producer_id.InitProducerIdResponse(producer_id=7),
                ApiKey.PRODUCE: self._produce,
                ApiKey.LIST_OFFSETS: self._offsets,
                ApiKey.FETCH: self._fetch,
            }
        )
        self.network = CuttingNetwork(self.clock, self._feed, cuts=cuts, sent_max=sent_max, received_max=received_max)
        config = ClientConfig(bootstrap_servers="here:1", request_timeout_ms=1_000)
        self.client = LoopClient(config, network=self.network, clock=self.clock, entropy=Zero())  # type: ignore[arg-type]
        self._connections = 0

    def _feed(self, chunk: bytes) -> bytes:
        if len(self.network.transports) != self._connections:
            self._connections = len(self.network.transports)
            self.broker._received.clear()  # A new connection begins with a new request.
        return self.broker.feed(chunk)

    def _metadata(self, _request: Any, _version: int) -> metadata.MetadataResponse:
        partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0)
        topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=(partition,))
        broker = metadata.MetadataResponseBroker(node_id=1, host="here", port=1)
        return metadata.MetadataResponse(brokers=(broker,), topics=(topic,), controller_id=1)

    def _produce(self, request: Any, _version: int) -> produce.ProduceResponse:
        (sent,) = request.topic_data[0].partition_data
        error, offset = self.partition.append(sent.records)
        answer = produce.ProduceResponsePartition(index=0, error_code=error, base_offset=offset)
        topic = produce.ProduceResponseTopic(name="t", topic_id=TOPIC_ID, partition_responses=(answer,))
        return produce.ProduceResponse(responses=(topic,))

    def _offsets(self, _request: Any, _version: int) -> list_offsets.ListOffsetsResponse:
        found = list_offsets.ListOffsetsResponsePartition(partition_index=0, offset=0)
        return list_offsets.ListOffsetsResponse(
            topics=(list_offsets.ListOffsetsResponseTopic(name="t", partitions=(found,)),)
        )

    def _fetch(self, request: Any, _version: int) -> fetch.FetchResponse:
        offset = request.topics[0].partitions[0].fetch_offset
        records = b"".join(
            bytes(build_batch([NewRecord(1, None, value)], base_offset=place))
            for place, value in enumerate(self.partition.values)
            if place >= offset
        )
        answer = fetch.FetchResponsePartition(
            partition_index=0, records=records, high_watermark=len(self.partition.values)
        )
        topic = fetch.FetchResponseTopic(topic_id=TOPIC_ID, partitions=(answer,))
        return fetch.FetchResponse(responses=(topic,))

    def until(self, done: Any) -> None:
        for _ in range(TURNS_MAX):
            if done():
                return
            self.client.turn(100)
        raise AssertionError("it does not end")

    def produce(self) -> list[Any]:
        producer = self.client.producer(ProducerConfig(linger_ms=0, batch_size=1, retry_backoff_ms=10))
        ended: list[Any] = []
        left = list(VALUES)

        def feed() -> bool:
            while left and producer.send("t", left[0], partition=0, ended=ended.append):
                left.pop(0)
            return len(ended) == len(VALUES)

        self.until(feed)
        return ended

    def consume(self) -> list[bytes]:
        consumer = self.client.consumer(ConsumerConfig(auto_offset_reset="earliest"))
        consumer.assign([T0])
        read: list[bytes] = []

        def take() -> bool:
            read.extend(record.value for record in consumer.take(10))
            return len(read) >= len(VALUES)

        self.until(take)
        return read

    def describe(self) -> Any:
        ended: list[Any] = []
        self.client.run(brokers.describe_cluster(self.client.cluster), timeout_ms=5_000, ended=ended.append)
        self.until(lambda: bool(ended))
        return ended[0]

    def bytes_each_way(self) -> tuple[int, int]:
        counters = self.client._links.counters()
        return int(counters["outgoing-byte-total"]), int(counters["incoming-byte-total"])


def lengths(name: str) -> tuple[int, int]:
    """Return how many bytes go each way when nothing is cut."""
    world = World(cuts=0)
    if name == "consume":
        world.partition.values = list(VALUES)
    getattr(world, name)()
    return world.bytes_each_way()


@pytest.mark.parametrize("direction", ["sent_max", "received_max"])
@pytest.mark.parametrize("cuts", [1, 2])
def test_a_producer(direction: str, cuts: int) -> None:
    whole = dict(zip(("sent_max", "received_max"), lengths("produce"), strict=True))[direction]
    for limit in range(1, whole + 1, cuts):
        world = World(cuts=cuts, **{direction: limit})
        delivered = world.produce()
        assert world.partition.values == VALUES, f"cut after {limit} bytes"
        assert [each.offset for each in delivered] == [0, 1], f"cut after {limit} bytes"


@pytest.mark.parametrize("direction", ["sent_max", "received_max"])
def test_a_consumer(direction: str) -> None:
    whole = dict(zip(("sent_max", "received_max"), lengths("consume"), strict=True))[direction]
    for limit in range(1, whole + 1):
        world = World(**{direction: limit})
        world.partition.values = list(VALUES)
        assert world.consume() == VALUES, f"cut after {limit} bytes"
        world.client.close()
        assert all(transport.is_closed for transport in world.network.transports), "a socket is left behind"


@pytest.mark.parametrize("direction", ["sent_max", "received_max"])
def test_an_administrator(direction: str) -> None:
    """A question is not asked twice: it is answered, or the error says that the connection broke."""
    whole = dict(zip(("sent_max", "received_max"), lengths("describe"), strict=True))[direction]
    for limit in range(1, whole + 1):
        outcome = World(**{direction: limit}).describe()
        if isinstance(outcome, Exception):
            assert isinstance(outcome, ClientError)
            assert "here:1" in str(outcome)
        else:
            assert [broker.port for broker in outcome.brokers] == [1]
