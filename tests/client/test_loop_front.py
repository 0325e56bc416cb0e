"""The front for foreign loops, in the simulator: a client and a node on virtual machines, one thread, one seed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from headrace.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from headrace.client.core.admin import groups, topics
from headrace.client.errors import ClientClosed, InvalidArgument
from headrace.client.loop import LoopClient, LoopConsumer
from headrace.client.types import ConsumerRecord, GroupIdentity, NewTopic
from tests.broker.virtual import HOST, PORT, VirtualBroker

PARTITIONS = 3


class RunContext:
    """A node, and clients on machines of their own in the same world."""

    def __init__(self, seed: int = 1) -> None:
        settings = {"group.initial.rebalance.delay.ms": "0", "group.consumer.heartbeat.interval.ms": "100"}
        self.broker = VirtualBroker(seed=seed, settings=settings)
        self.world = self.broker.world
        self.clients = 0
        self.client = self.add_client()
        done: list[Any] = []
        new = [NewTopic("t", partitions=PARTITIONS)]
        operation = topics.create_topics(self.client.cluster, new, validate_only=False, timeout_ms=10_000)
        self.client.run(operation, timeout_ms=10_000, ended=done.append)
        self.world.run_until(lambda: bool(done))
        assert not done[0]["t"].error

    def add_client(self) -> LoopClient:
        self.clients += 1
        machine = self.world.machine(f"client {self.clients}")
        config = ClientConfig(bootstrap_servers=f"{HOST}:{PORT}")
        return machine.boot(lambda own: LoopClient(config, network=own.network, clock=own.clock, entropy=own.entropy))

    def send(self, values: range) -> list[Any]:
        producer = self.client.producer(ProducerConfig())
        ended: list[Any] = []
        left = list(values)

        def feed() -> bool:
            while left and producer.send("t", b"%d" % left[0], partition=left[0] % PARTITIONS, ended=ended.append):
                left.pop(0)
            return len(ended) == len(values)

        self.world.run_until(feed)
        assert not producer.incomplete_count()
        return ended

    def consume(self, count: int, *consumers: LoopConsumer) -> list[ConsumerRecord]:
        read: list[ConsumerRecord] = []

        def take() -> bool:
            for consumer in consumers:
                read.extend(consumer.take(10))
            return len(read) >= count

        self.world.run_until(take)
        return read


@pytest.mark.parametrize("seed", range(3))
def test_there_and_back(seed: int) -> None:
    context = RunContext(seed)
    delivered = context.send(range(30))
    assert sorted(each.offset for each in delivered) == sorted(list(range(10)) * 3)
    consumer = context.client.consumer(ConsumerConfig(auto_offset_reset="earliest"))
    consumer.assign([("t", 0), ("t", 1)])
    read = context.consume(20, consumer)
    assert [int(record.value) for record in read if record.partition == 1] == list(range(1, 30, 3))
    assert consumer.position(("t", 0)) == 10
    consumer.seek(("t", 0), 9)
    assert [int(record.value) for record in context.consume(1, consumer)] == [27]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups(protocol: str) -> None:
    context = RunContext()
    context.send(range(30))
    config = ConsumerConfig(
        group_id="g",
        auto_offset_reset="earliest",
        group_protocol=protocol,  # type: ignore[arg-type]
        partition_assignment_strategy="cooperative-sticky",
    )
    told: list[int] = []
    first = context.client.consumer(config)
    first.subscribe("t", on_assigned=lambda partitions: told.append(len(partitions)))
    read = context.consume(30, first)
    second = context.add_client().consumer(config)
    second.subscribe("t")

    def shared() -> bool:
        for consumer in (first, second):
            read.extend(consumer.take(10))
        return sorted((len(first.assignment()), len(second.assignment()))) == [1, 2]

    context.world.run_until(shared)
    context.send(range(30, 60))
    read += context.consume(30, first, second)
    assert sorted(int(record.value) for record in read) == list(range(60))
    assert told[0] == PARTITIONS
    ended: list[Any] = []
    first.commit(None, ended=ended.append)
    second.commit(None, ended=ended.append)
    context.world.run_until(lambda: len(ended) == 2)
    assert ended == [None, None]
    second.leave(ended=ended.append)
    context.world.run_until(lambda: first.take(10) == [] and len(first.assignment()) == PARTITIONS)


def test_a_node_that_dies_and_comes_back() -> None:
    context = RunContext()
    context.send(range(3))
    context.broker.machine.kill()
    context.broker.boot()
    delivered = context.send(range(3, 9))
    assert sorted(each.offset for each in delivered) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("seed", range(2))
def test_transactions(seed: int) -> None:
    """Records that a group reads are written, and committed, with what it read; one transaction of three is aborted."""
    context = RunContext(seed)
    context.send(range(9))
    producer = context.client.producer(ProducerConfig(transactional_id="id"))

    def done(step: Callable[..., None], *arguments: Any, **options: Any) -> Any:
        ended: list[Any] = []
        step(*arguments, **options, ended=ended.append)
        context.world.run_until(lambda: bool(ended))
        return ended[0]

    for number, commit in enumerate((True, False, True)):
        assert done(producer.begin_transaction) is None
        for value in range(30):
            context.world.run_until(
                partial(producer.send, "t", b"%d-%d" % (number, value), partition=value % PARTITIONS)
            )
        if commit:
            assert done(producer.add_transaction_offsets, {("t", 0): number}, GroupIdentity("g")) is None
        context.world.run_until(lambda: producer.incomplete_count() < PARTITIONS)
        assert done(producer.end_transaction, commit=commit) is None
    assert isinstance(done(producer.end_transaction, commit=True), InvalidArgument)
    with pytest.raises(InvalidArgument, match="within"):
        producer.send("t", b"v")
    consumer = context.client.consumer(ConsumerConfig(auto_offset_reset="earliest", isolation_level="read_committed"))
    consumer.assign([("t", partition) for partition in range(PARTITIONS)])
    read = [record.value for record in context.consume(69, consumer)]
    assert sorted(read) == sorted(
        [b"%d" % n for n in range(9)] + [b"%d-%d" % (n, v) for n in (0, 2) for v in range(30)]
    )
    offsets = done(partial(context.client.run, groups.offsets(context.client.cluster, "g"), timeout_ms=10_000))
    assert {place.partition: each.offset for place, each in offsets.items()} == {0: 2}
    with pytest.raises(InvalidArgument, match="transactional_id"):
        context.client.producer(ProducerConfig()).begin_transaction(ended=print)


def test_what_cannot_be() -> None:
    context = RunContext()
    consumer = context.client.consumer(ConsumerConfig())
    with pytest.raises(InvalidArgument, match="has no group"):
        consumer.commit(None, ended=print)
    ended: list[Any] = []
    context.client.run(topics.topics(context.client.cluster, None), timeout_ms=1_000, ended=ended.append)
    context.client.close()
    assert isinstance(ended[0], ClientClosed)
