import random
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.core.accumulator import Appended, ProducerSettings
from headrace.client.core.calls import Call, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.producer import ProducerCore
from headrace.client.errors import BrokerUnreachable, BufferFull, ClientClosed, ClientError, InvalidArgument
from headrace.model.errors import ErrorCode
from headrace.wire.messages import init_producer_id, metadata, produce
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import ATTRIBUTES, BASE_SEQUENCE, HEADER, PRODUCER_ID

from .model_broker import TOPIC_ID, ModelBroker

BROKEN = BrokerUnreachable("the connection broke")


class World:
    """A producer core, one connection to a model broker, and the time."""

    def __init__(self, *, partitions: int = 1, **options: Any) -> None:
        self.broker = ModelBroker(partitions)
        self.cluster = Cluster()
        self.core = ProducerCore(ProducerSettings(**options), self.cluster, lambda bound: bound - 1)
        self.now_ms = 0.0
        self.sent: deque[PendingCall] = deque()
        self.answered: deque[tuple[PendingCall, Any]] = deque()
        self.calls: list[Call] = []
        self.cluster.want(["t"])
        self.settle_network()

    def append(self, value: bytes, *, key: bytes | None = None, partition: int | None = None) -> Appended:
        appended = self.core.append("t", partition, 1, key, value, (), self.now_ms)
        assert appended is not None
        return appended

    def poll(self) -> float:
        calls, wakeup_ms = self.core.poll(self.now_ms)
        self.sent.extend(calls)
        self.calls.extend(pending.call for pending in calls)
        return wakeup_ms

    def serve(self) -> None:
        """The broker handles the oldest request."""
        pending = self.sent.popleft()
        reply = self.broker.answer(pending.call.message)
        self.answered.append((pending, reply if pending.call.is_answered else None))

    def answer(self) -> None:
        pending, reply = self.answered.popleft()
        pending.completed(reply, self.now_ms)

    def cut(self) -> None:
        """The connection breaks: no answer comes any more, whatever the broker has done."""
        lost = [pending for pending, _reply in self.answered] + list(self.sent)
        self.answered.clear()
        self.sent.clear()
        for pending in lost:
            pending.completed(BROKEN, self.now_ms)

    def settle_network(self) -> None:
        """Serve and answer everything, letting time pass only where nothing else can happen."""
        for _ in range(1000):
            wakeup_ms = self.poll()
            if not self.sent and not self.answered:
                if not self.core.incomplete_count() and self.cluster.brokers:
                    return
                self.now_ms = max(self.now_ms, min(wakeup_ms, self.now_ms + 10_000))
            while self.sent:
                self.serve()
            while self.answered:
                self.answer()
        raise AssertionError("the producer does not come to rest")

    def produced(self) -> list[Call]:
        return [call for call in self.calls if isinstance(call.message, produce.ProduceRequest)]


def headers_of(call: Call) -> list[tuple[int, ...]]:
    return [
        HEADER.unpack_from(partition.records) for topic in call.message.topic_data for partition in topic.partition_data
    ]


def test_records_are_delivered_with_their_offsets() -> None:
    world = World()
    deliveries = [world.append(b"%d" % number) for number in range(3)]
    world.settle_network()
    assert world.broker.partitions[0].values == [b"0", b"1", b"2"]
    assert [(d.batch.error, d.batch.base_offset + d.place) for d in deliveries] == [(None, 0), (None, 1), (None, 2)]
    assert len(world.produced()) == 1
    assert world.core.buffered_bytes == 0


def test_a_batch_waits_for_linger_unless_it_is_full() -> None:
    world = World(linger_ms=50, batch_bytes_max=1000)
    world.append(b"first")
    world.settle_network()
    before = len(world.produced())
    began_ms = world.now_ms
    world.append(bytes(10))
    assert world.poll() == began_ms + 50
    assert len(world.produced()) == before
    assert world.append(bytes(900)).due_ms == 0.0
    world.poll()
    assert len(world.produced()) == before + 1
    assert world.now_ms == began_ms


def test_fill_ends_the_waiting() -> None:
    world = World(linger_ms=60_000)
    world.settle_network()
    world.append(b"v")
    world.core.fill()
    began_ms = world.now_ms
    world.settle_network()
    assert world.broker.partitions[0].values == [b"v"]
    assert world.now_ms == began_ms


def test_sequences_count_records_and_never_come_without_an_id() -> None:
    world = World(batch_bytes_max=1)
    for number in range(4):
        world.append(b"%d" % number)
    world.settle_network()
    heads = [head for call in world.produced() for head in headers_of(call)]
    assert [head[BASE_SEQUENCE] for head in heads] == [0, 1, 2, 3]
    assert {head[PRODUCER_ID] for head in heads} == {101}


def test_a_new_leader_gets_nothing_before_the_former_one_has_answered() -> None:
    """A leader that does not know the producer takes the younger batch first, and refuses the older one for ever."""
    world = World(batch_bytes_max=1)
    world.append(b"first")
    world.settle_network()
    before = len(world.produced())
    world.append(b"old")
    world.poll()
    world.cluster.refreshed(moved_to(2), world.now_ms)
    world.append(b"new")
    world.poll()
    assert [call.target for call in world.produced()[before:]] == [1]
    world.sent.popleft().completed(BROKEN, world.now_ms)
    for _ in range(3):
        world.now_ms += 1_000
        world.poll()
    sent = world.produced()[before:]
    assert [call.target for call in sent] == [1, 2, 2]
    assert [headers_of(call)[0][BASE_SEQUENCE] for call in sent] == [1, 1, 2]


def moved_to(node: int) -> metadata.MetadataResponse:
    partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=node, leader_epoch=1)
    topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=(partition,))
    brokers = tuple(metadata.MetadataResponseBroker(node_id=each, host="h", port=each) for each in (1, 2))
    return metadata.MetadataResponse(brokers=brokers, topics=(topic,))


def test_sequences_begin_again_behind_the_largest_number() -> None:
    world = World(batch_bytes_max=1)
    world.append(b"first")
    world.settle_network()
    line = world.core._lines[next(iter(world.core._lines))]
    line.next_sequence = 2**31 - 2
    assert [line.take_sequence(count) for count in (1, 3, 1)] == [2**31 - 2, 2**31 - 1, 2]


def test_without_idempotence_one_batch_is_in_flight() -> None:
    world = World(batch_bytes_max=1, idempotent=False, acks=1)
    for number in range(3):
        world.append(b"%d" % number)
    world.poll()
    world.poll()
    assert len(world.produced()) == 1
    assert headers_of(world.produced()[0])[0][PRODUCER_ID] == -1
    world.settle_network()
    assert world.broker.partitions[0].values == [b"0", b"1", b"2"]
    assert not any(isinstance(call.message, init_producer_id.InitProducerIdRequest) for call in world.calls)


def test_with_idempotence_five_batches_are_in_flight() -> None:
    world = World(batch_bytes_max=1)
    world.append(b"first")
    world.settle_network()
    for number in range(9):
        world.append(b"%d" % number)
    for _ in range(9):
        world.poll()
    assert len(world.sent) == 5


def test_acks_0_has_no_offset() -> None:
    world = World(idempotent=False, acks=0)
    delivery = world.append(b"v")
    world.settle_network()
    assert (delivery.batch.is_done, delivery.batch.error, delivery.batch.base_offset) == (True, None, -1)


@pytest.mark.parametrize("codec", Compression)
def test_compression(codec: Compression) -> None:
    world = World(compression=codec)
    world.append(b"v" * 100)
    world.settle_network()
    assert world.broker.partitions[0].values == [b"v" * 100]
    assert headers_of(world.produced()[0])[0][ATTRIBUTES] & 7 == codec
    assert world.produced()[0].min_version == (7 if codec == Compression.ZSTD else 3)


def test_a_key_goes_to_its_partition_and_no_key_fills_one_batch_after_the_other() -> None:
    world = World(partitions=4, batch_bytes_max=200)
    assert world.append(b"v", key=b"abc").batch.partition.partition == 479470107 % 4
    chosen = [world.append(bytes(30)).batch.partition.partition for _ in range(12)]
    assert chosen[:2] == [chosen[0]] * 2, "a batch is filled first"
    assert len(set(chosen)) > 1, "then another partition has its turn"
    assert world.append(b"v", partition=2).batch.partition.partition == 2


def test_a_partition_that_does_not_exist() -> None:
    with pytest.raises(InvalidArgument, match="0 to 0"):
        World().append(b"v", partition=1)


def test_a_record_that_is_too_large() -> None:
    with pytest.raises(InvalidArgument, match="max_request_size"):
        World(request_bytes_max=1000).append(bytes(1000))


def test_memory_is_bounded_and_freed() -> None:
    world = World(buffer_bytes_max=5_000, linger_ms=1)
    for _ in range(4):
        world.append(bytes(1000))
    with pytest.raises(BufferFull, match="buffer_memory=5000"):
        world.append(bytes(1000))
    world.settle_network()
    world.append(bytes(1000))


def test_a_topic_that_is_not_known_is_asked_for() -> None:
    world = World()
    assert world.core.append("u", None, 1, None, b"v", (), world.now_ms) is None
    world.now_ms += 1_000
    world.poll()
    asked = [call.message for call in world.calls if isinstance(call.message, metadata.MetadataRequest)][-1]
    assert [topic.name for topic in asked.topics] == ["t", "u"]
    assert asked.allow_auto_topic_creation


def test_a_retriable_error_is_tried_again_after_a_pause() -> None:
    world = World()
    world.broker.faults = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    delivery = world.append(b"v")
    assert world.core.refusal() is None
    world.now_ms += 100
    refusals = set()
    while not delivery.batch.is_done:
        world.poll()
        while world.sent:
            world.serve()
        while world.answered:
            world.answer()
            refusals.add(str(world.core.refusal()))
        world.now_ms += 50
    assert any("NOT_LEADER_OR_FOLLOWER" in each for each in refusals), "a caller that waits in vain learns why"
    assert world.core.refusal() is None
    assert delivery.batch.error is None
    assert world.broker.partitions[0].values == [b"v"]
    first, second = world.produced()
    assert headers_of(first) == headers_of(second), "the same bytes, so that the broker can recognise them"


def test_a_lost_answer_does_not_write_twice() -> None:
    world = World()
    delivery = world.append(b"v")
    world.now_ms += 100
    while not world.produced():
        world.poll()
        while world.sent:
            world.serve()
        while world.answered and not world.produced():
            world.answer()
    world.cut()
    world.settle_network()
    assert world.broker.partitions[0].values == [b"v"]
    assert (delivery.batch.error, delivery.batch.base_offset) == (None, 0)


def test_a_fatal_error_fails_the_batch_and_the_next_ones_continue() -> None:
    world = World(batch_bytes_max=1)
    world.append(b"first")
    world.settle_network()
    world.broker.faults = [ErrorCode.MESSAGE_TOO_LARGE]
    bad, *good = [world.append(b"%d" % number) for number in range(4)]
    world.settle_network()
    assert bad.batch.error is not None
    assert "max.message.bytes" in str(bad.batch.error)
    assert [delivery.batch.error for delivery in good] == [None] * 3
    assert world.broker.partitions[0].values == [b"first", b"1", b"2", b"3"]


def test_a_producer_id_the_broker_forgot_is_replaced() -> None:
    world = World(batch_bytes_max=1)
    world.append(b"first")
    world.settle_network()
    world.broker.faults = [ErrorCode.UNKNOWN_PRODUCER_ID]
    lost = world.append(b"lost")
    world.settle_network()
    world.append(b"next")
    world.settle_network()
    assert lost.batch.error is not None
    assert headers_of(world.produced()[-1])[0][PRODUCER_ID] == 102
    assert world.broker.partitions[0].values == [b"first", b"next"]


def test_what_cannot_be_delivered_in_time_is_given_up() -> None:
    world = World(delivery_timeout_ms=1_000)
    delivery = world.append(b"v")
    for _ in range(100):
        world.poll()
        world.cut()
        world.now_ms += 20
    assert delivery.batch.is_done
    assert "not delivered in 1000 ms" in str(delivery.batch.error)
    assert "the connection broke" in str(delivery.batch.error)


def test_abandon_ends_everything() -> None:
    world = World()
    deliveries = [world.append(b"v"), world.append(b"w")]
    world.poll()
    world.core.abandon(ClientClosed("closed"))
    assert {type(delivery.batch.error) for delivery in deliveries} == {ClientClosed}
    assert (world.core.incomplete_count(), world.core.buffered_bytes) == (0, 0)
    world.cut()
    assert world.core.incomplete_count() == 0


WEIGHTS = {
    "append": 30,
    "poll": 25,
    "serve": 20,
    "answer": 15,
    "cut": 2,
    "wait": 8,
    "long": 1,
    "moved": 1,
    "timeout": 1,
    "large": 1,
}
STEPS = 250
FAULTS = {
    "moved": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "timeout": ErrorCode.REQUEST_TIMED_OUT,
    "large": ErrorCode.MESSAGE_TOO_LARGE,
}


@pytest.mark.slow
@settings(max_examples=300)
@given(seed=st.integers(0, 2**32), partitions=st.integers(1, 2))
def test_nothing_is_doubled_reordered_or_lost(seed: int, partitions: int) -> None:
    """Whatever the network does: one sequence per partition, every acknowledged record where it was said to be."""
    world = World(partitions=partitions, batch_bytes_max=150, linger_ms=2, delivery_timeout_ms=2_000)
    steps = random.Random(seed).choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)
    deliveries: list[Appended] = []
    for step in steps:
        if step == "append":
            number = len(deliveries)
            deliveries.append(world.append(b"%04d" % number + bytes(40), partition=number % partitions))
        elif step == "poll":
            world.poll()
        elif step == "serve" and world.sent:
            world.serve()
        elif step == "answer" and world.answered:
            world.answer()
        elif step == "cut":
            world.cut()
        elif step == "wait":
            world.now_ms += 60
        elif step == "long":
            world.now_ms += 1_500
        elif step in FAULTS:
            world.broker.faults.append(FAULTS[step])
    world.broker.faults.clear()
    world.settle_network()
    assert all(delivery.batch.is_done for delivery in deliveries)
    assert world.core.buffered_bytes == 0
    for partition in world.broker.partitions:
        numbers = [int(value[:4]) for value in partition.values if value]
        assert numbers == sorted(set(numbers))
    for number, delivery in enumerate(deliveries):
        if delivery.batch.error is None:
            values = world.broker.partitions[number % partitions].values
            value = values[delivery.batch.base_offset + delivery.place]
            assert value is not None
            assert int(value[:4]) == number
        else:
            assert isinstance(delivery.batch.error, ClientError)


def test_the_leader_that_a_refusal_names_is_written_to_at_once() -> None:
    """KIP-951: neither the pause between attempts nor another look at the metadata comes between."""
    world = World()
    world.append(b"first")
    world.settle_network()
    world.append(b"second")
    world.now_ms += 10
    world.poll()
    (pending,) = world.sent
    world.sent.clear()
    leader = produce.ProduceResponseCurrentLeader(leader_id=7, leader_epoch=9)
    refusal = produce.ProduceResponsePartition(
        index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader
    )
    topic = produce.ProduceResponseTopic(name="t", topic_id=TOPIC_ID, partition_responses=(refusal,))
    endpoint = produce.ProduceResponseNodeEndpoint(node_id=7, host="there", port=7)
    pending.completed(produce.ProduceResponse(responses=(topic,), node_endpoints=(endpoint,)), world.now_ms)
    world.poll()
    targets = [each.call.target for each in world.sent if isinstance(each.call.message, produce.ProduceRequest)]
    assert targets == [7]
    assert world.cluster.brokers[7].host == "there"
