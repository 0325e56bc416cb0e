"""The asyncio front against a real broker: the same tasks as the blocking one, and what is special to loops."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import headrace
from headrace.aio import Admin, Consumer, Producer
from headrace.client import ConsumerRecord, TopicPartition
from headrace.client.errors import BrokerUnreachable, ClientClosed, DeadlineExceeded, InvalidArgument
from headrace.testing import EmbeddedBroker

from .hostile import FaultProxy, HostileServer, listen_only, no_name_resolves
from .leftovers import client_threads

pytestmark = pytest.mark.process

WAIT_MS = 60_000
PARTITIONS = 4
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": "range"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "kip-848": {"group_protocol": "consumer"},
}


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=PARTITIONS)


def reader(broker: EmbeddedBroker, *topics: str, **options: Any) -> Consumer:
    defaults = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50, "heartbeat_interval_ms": 100}
    return Consumer(*topics, bootstrap_servers=broker.bootstrap_servers, **{**defaults, **options})


async def send(broker: EmbeddedBroker, topic: str, values: range) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for number in values:
            await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


async def turn_until(is_so: Callable[[], bool], *consumers: Consumer, into: list[ConsumerRecord] | None = None) -> None:
    for _ in range(WAIT_MS // 20):
        for consumer in consumers:
            records = await consumer.poll(timeout_ms=20)
            if into is not None:
                into += records
        if is_so():
            return
    raise AssertionError("it did not come to that")


@pytest.mark.asyncio
async def test_there_and_back(broker: EmbeddedBroker, topic: str) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        delivery = await producer.send(topic, b"value", key=b"key", headers=[("h", b"1")], partition=2, timestamp=5)
        where = await delivery
        assert delivery.done()
        assert (where.partition, where.offset, where.timestamp) == (2, 0, 5)
        assert delivery.result() == where
        assert (await producer.send_and_wait(topic, b"more", partition=2)).offset == 1
        assert (await producer.send_and_wait(topic, b"last", partition=2)).offset == 2
    async with reader(broker, topic) as consumer:
        async for record in consumer:
            assert record == ConsumerRecord(topic, 2, 0, 5, b"key", b"value", (("h", b"1"),))
            break
        assert await consumer.position((topic, 2)) == 1
        assert (await consumer.end_offsets([(topic, 2)])) == {TopicPartition(topic, 2): 3}
        await consumer.seek((topic, 2), 2)
        assert [record.value for record in await consumer.poll(timeout_ms=WAIT_MS)] == [b"last"]


@pytest.mark.asyncio
async def test_transactions(broker: EmbeddedBroker, topic: str) -> None:
    async with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}") as producer:
        async with producer.transaction():
            await producer.send(topic, b"committed", partition=0)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012  (what the block leaves behind is the point)
            async with producer.transaction() as transaction:
                await producer.send(topic, b"aborted", partition=0)
                await transaction.commit_offsets({(topic, 0): 1}, f"g-{topic}")
                raise ZeroDivisionError
        async with producer.transaction() as transaction:
            await producer.send(topic, b"last", partition=0)
            await transaction.commit_offsets({(topic, 0): 7}, f"g-{topic}")
    async with reader(broker, topic, isolation_level="read_committed") as consumer:
        records = aiter(consumer)
        assert [(await anext(records)).value for _ in range(2)] == [b"committed", b"last"]
        await records.aclose()
    async with Admin(broker.bootstrap_servers) as admin:
        assert {p: o.offset for p, o in (await admin.group_offsets(f"g-{topic}")).items()} == {(topic, 0): 7}


@pytest.mark.asyncio
async def test_an_abort_that_is_refused_leaves_the_transaction_as_it_was(broker: EmbeddedBroker, topic: str) -> None:
    """The task was cancelled while the commit of another task had still to end it."""
    async with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}") as producer:
        transaction = await producer.begin_transaction()
        await producer.send_and_wait(topic, b"v")
        commit = asyncio.create_task(transaction.commit())
        await asyncio.sleep(0)  # so that it is under way
        for _ in range(2):
            with pytest.raises(InvalidArgument, match="being ended already"):
                await transaction.abort()
        await commit
        with pytest.raises(InvalidArgument, match="has ended"):
            await transaction.abort()


@pytest.mark.asyncio
async def test_a_callback_of_the_group_cannot_close_its_consumer(broker: EmbeddedBroker, topic: str) -> None:
    told: list[str] = []
    options: dict[str, Any] = {"group_id": f"g-{topic}", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 100}
    async with Consumer(bootstrap_servers=broker.bootstrap_servers, **options) as consumer:

        async def assigned(_partitions: object) -> None:
            told.append("assigned")
            await consumer.close()

        async def revoked(_partitions: object) -> None:
            told.append("revoked")
            await consumer.close()

        consumer.subscribe(topic, on_assigned=assigned, on_revoked=revoked)
        with pytest.raises(InvalidArgument, match=r"cannot close its consumer, .* return from it first, then close"):
            await consumer.poll(timeout_ms=WAIT_MS)
        assert consumer.assignment()
        assert await consumer.position((topic, 0)) == 0
    assert told == ["assigned", "revoked"]


@pytest.mark.asyncio
async def test_a_delivery_callback_leaves_the_close_to_a_task(broker: EmbeddedBroker, topic: str) -> None:
    tasks: list[asyncio.Task[None]] = []
    producer = Producer(broker.bootstrap_servers)
    delivery = await producer.send(
        topic, b"v", on_delivery=lambda _delivery: tasks.append(asyncio.create_task(producer.close(timeout_ms=WAIT_MS)))
    )
    assert (await delivery).offset == 0
    await tasks[0]
    with pytest.raises(ClientClosed):
        await producer.send(topic, b"v")


@pytest.mark.asyncio
async def test_nothing_is_left_behind(broker: EmbeddedBroker, topic: str) -> None:
    threads = client_threads()
    tasks = len(asyncio.all_tasks())
    async with Producer(broker.bootstrap_servers) as producer, reader(broker, topic, group_id="left") as consumer:
        await producer.send_and_wait(topic, b"v")
        await turn_until(lambda: bool(consumer.assignment()), consumer)
        assert client_threads() - threads == set()
    assert len(asyncio.all_tasks()) == tasks
    with pytest.raises(ClientClosed):
        await producer.send(topic, b"v")
    with pytest.raises(ClientClosed):
        await consumer.poll(timeout_ms=0)


@pytest.mark.parametrize("name", ["Admin", "Consumer", "Producer"])
def test_both_fronts_offer_the_same(name: str) -> None:
    waiting, awaited = getattr(headrace, name), getattr(headrace.aio, name)
    special = {"send_and_wait", "begin_transaction", "poll"}

    def offered(kind: type) -> set[str]:
        return {each for each in dir(kind) if not each.startswith("_")} - special

    assert offered(waiting) == offered(awaited)
    for each in offered(waiting) - {"close", "transaction"}:
        here, there = inspect.signature(getattr(waiting, each)), inspect.signature(getattr(awaited, each))
        missing = set(here.parameters) - set(there.parameters) - {"wait"}
        assert not missing, f"{name}.{each} lacks {missing}"


def test_outside_of_a_loop() -> None:
    with pytest.raises(InvalidArgument, match="inside a coroutine"):
        Producer("127.0.0.1:1")


@pytest.mark.asyncio
async def test_no_broker_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    no_name_resolves(monkeypatch)
    async with Admin("127.0.0.1:1", timeout_ms=WAIT_MS) as admin:
        with pytest.raises(BrokerUnreachable, match="check that a broker is running there"):
            await admin.cluster()
    async with Consumer("t", bootstrap_servers="no-such-host.invalid:1") as consumer:
        with pytest.raises(BrokerUnreachable):
            await consumer.poll(timeout_ms=WAIT_MS)


@pytest.mark.asyncio
async def test_a_server_that_never_answers() -> None:
    with HostileServer(listen_only) as silent:
        async with Admin(silent.address, timeout_ms=300) as admin:
            with pytest.raises(DeadlineExceeded):
                await admin.cluster()


@pytest.mark.asyncio
async def test_connections_that_are_cut(broker: EmbeddedBroker) -> None:
    with FaultProxy(slice_bytes=7) as proxy:
        host, _, port = broker.bootstrap_servers.partition(":")
        proxy.broker = (host, int(port))
        proxy.cuts = [10, 60, 200]
        async with Admin(proxy.address) as admin:
            for _ in range(6):
                try:
                    await admin.cluster()
                except (BrokerUnreachable, ClientClosed):
                    await asyncio.sleep(0.06)


@pytest.mark.asyncio
async def test_a_wait_that_is_cancelled(broker: EmbeddedBroker, topic: str) -> None:
    async with reader(broker, topic) as consumer:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await consumer.poll(timeout_ms=WAIT_MS)
        await send(broker, topic, range(1))
        assert [record.value for record in await consumer.poll(timeout_ms=WAIT_MS)] == [b"0"]
