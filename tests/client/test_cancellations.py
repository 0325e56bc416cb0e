"""Tasks that are cancelled anywhere in a transaction: none stays open, nothing is doubled, and the next one works."""

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from headrace.aio import Admin, Consumer, Producer
from headrace.client import LATEST, TopicPartition
from headrace.client.types import IsolationLevel
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

SWEEPS = 5
"""Where a transaction waits depends on when its answers come."""
WAITS_MAX = 200
WAIT_MS = 60_000
OPEN_S_MAX = 20.0
"""Below the time-out of a transaction, which ends those that are left open."""


@types.coroutine
def cancelled(work: Coroutine[Any, None, None], places: set[int]) -> Generator[Any, None, int]:
    """Do the work, cancelled where it waits for these times; how often it waited."""
    waits = 0
    try:
        wish = work.send(None)
        while True:
            assert waits < WAITS_MAX
            if waits in places:
                waits += 1
                wish = work.throw(asyncio.CancelledError())
            else:
                waits += 1
                yield wish
                wish = work.send(None)
    except StopIteration:
        return waits


async def transact(producer: Producer, topic: str, value: bytes) -> None:
    async with producer.transaction() as transaction:
        await producer.send(topic, value, partition=0)
        await transaction.commit_offsets({(topic, 0): int(value)}, f"g-{topic}")


async def sweep(producer: Producer, topic: str, again: tuple[int, ...], first: int) -> list[bytes]:
    """Run transactions, each cancelled one wait later, until one is through; return the values reported as done."""
    for place in range(WAITS_MAX):
        value = b"%d" % (first + place)
        try:
            waits = await cancelled(transact(producer, topic, value), {place, *(place + further for further in again)})
        except asyncio.CancelledError:
            continue
        if waits <= place:
            assert waits, "it never waited, so it was cancelled nowhere"
            return [value]
    raise AssertionError("every transaction was cancelled")


async def none_is_open(servers: str, place: TopicPartition) -> None:
    """Soon, since the end of a transaction is written behind its records after it was acknowledged."""
    async with Admin(servers) as admin, asyncio.timeout(OPEN_S_MAX):
        while True:
            stable, end = [
                (await admin.offsets({place: LATEST}, isolation=isolation))[place].offset
                for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
            ]
            if stable == end:
                return


@pytest.mark.asyncio
@pytest.mark.parametrize("again", [(), (1,), (1, 2, 3)], ids=["once", "twice", "many times"])
async def test_a_transaction_that_is_cancelled_anywhere(any_broker: EmbeddedBroker, again: tuple[int, ...]) -> None:
    servers = any_broker.bootstrap_servers
    topic = any_broker.create_topic(any_broker.unused_topic_name("cancelled"))
    told: list[bytes] = []
    async with Producer(servers, transactional_id=f"t-{topic}", max_block_ms=WAIT_MS) as producer:
        for number in range(SWEEPS):
            told += await sweep(producer, topic, again, number * WAITS_MAX)
        async with producer.transaction():
            await producer.send(topic, b"last", partition=0)
        told.append(b"last")
    await none_is_open(servers, TopicPartition(topic, 0))
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    seen: list[bytes] = []
    async with Consumer(topic, bootstrap_servers=servers, **options) as consumer:
        async for record in consumer:
            seen.append(record.value)
            if record.value == b"last":
                break
    assert len(seen) == len(set(seen))
    assert set(told) <= set(seen)
