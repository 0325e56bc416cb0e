"""Consumers of topics that do not exist: they wait, log it once, and read when the topic appears."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import headrace.aio
from headrace.client import Consumer, ConsumerRecord, Producer
from headrace.client.errors import BrokerError
from headrace.testing import EmbeddedBroker

from .fronts import EVERY_FRONT, LoopFront

WAIT_MS = 60_000
POLLS_MAX = WAIT_MS // 20
FRONTS = EVERY_FRONT
pytestmark = pytest.mark.process
GROUPS: dict[str, dict[str, Any]] = {
    "alone": {},
    "classic": {"group_id": "waiting", "heartbeat_interval_ms": 100},
    "consumer": {"group_id": "waiting-848", "group_protocol": "consumer"},
}


@pytest.fixture(scope="module")
def strict() -> Iterator[EmbeddedBroker]:
    config = {"auto.create.topics.enable": "false", "group.consumer.heartbeat.interval.ms": "100"}
    with EmbeddedBroker(config=config) as broker:
        yield broker


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.client.unknown_topics.UNKNOWN_TOPIC_LOG_MS", 0)
    monkeypatch.setattr("headrace.client.consumer_base.UNKNOWN_TOPIC_WAIT_MS", 0)


def said(caplog: pytest.LogCaptureFixture, words: str) -> int:
    return sum(words in record.getMessage() for record in caplog.records)


def read_one(consumer: Consumer) -> ConsumerRecord:
    for _ in range(POLLS_MAX):
        records = consumer.poll(timeout_ms=20)
        if records:
            return records[0]
    raise AssertionError("nothing came")


@pytest.mark.usefixtures("front")
@pytest.mark.parametrize("options", GROUPS.values(), ids=GROUPS)
def test_the_topic_is_read_when_it_appears(
    front: Any, strict: EmbeddedBroker, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.client")
    topic = strict.unused_topic_name("later")
    logs = not isinstance(front, LoopFront)
    with Consumer(
        topic, bootstrap_servers=strict.bootstrap_servers, auto_offset_reset="earliest", **options
    ) as consumer:
        for _ in range(POLLS_MAX):
            assert consumer.poll(timeout_ms=20) == []
            if logs and said(caplog, f"topic '{topic}' does not exist"):
                break
            if not logs and consumer._loop.client.cluster.topic_errors:  # type: ignore[attr-defined]
                break
        consumer.poll(timeout_ms=20)
        strict.create_topic(topic, partitions=2)
        with Producer(strict.bootstrap_servers) as producer:
            producer.send(topic, b"first", partition=1).result(timeout_ms=WAIT_MS)
        assert read_one(consumer).value == b"first"
    assert said(caplog, f"topic '{topic}' does not exist") == logs, "it is logged once"
    assert said(caplog, f"topic '{topic}' exists now") == logs


@pytest.mark.usefixtures("front")
def test_assigned_partitions_are_read_when_their_topic_appears(strict: EmbeddedBroker) -> None:
    topic = strict.unused_topic_name("assigned-later")
    with Consumer(bootstrap_servers=strict.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert consumer.poll(timeout_ms=20) == []
        strict.create_topic(topic)
        with Producer(strict.bootstrap_servers) as producer:
            producer.send(topic, b"first").result(timeout_ms=WAIT_MS)
        assert read_one(consumer).value == b"first"


@pytest.mark.usefixtures("front")
def test_a_missing_topic_beside_one_that_is_read(strict: EmbeddedBroker) -> None:
    there, missing = strict.create_topic(strict.unused_topic_name("there")), strict.unused_topic_name("missing")
    with (
        Producer(strict.bootstrap_servers) as producer,
        Consumer(there, missing, bootstrap_servers=strict.bootstrap_servers, auto_offset_reset="earliest") as consumer,
    ):
        producer.send(there, b"read meanwhile").result(timeout_ms=WAIT_MS)
        assert read_one(consumer).value == b"read meanwhile"
        strict.create_topic(missing)
        producer.send(missing, b"read later").result(timeout_ms=WAIT_MS)
        assert read_one(consumer).value == b"read later"


@pytest.mark.parametrize("allows", [True, False])
def test_a_broker_may_create_the_topic_if_the_consumer_allows_it(allows: bool) -> None:
    with (
        EmbeddedBroker(config={"auto.create.topics.enable": "true"}) as broker,
        headrace.Admin(broker.bootstrap_servers) as admin,
    ):
        with Consumer(
            "asked-for", bootstrap_servers=broker.bootstrap_servers, allow_auto_create_topics=allows
        ) as consumer:
            for _ in range(POLLS_MAX):
                consumer.poll(timeout_ms=20)
                cluster = consumer._session.cluster
                if "asked-for" in (cluster.topics if allows else cluster.topic_errors):
                    break
        assert ("asked-for" in [topic.name for topic in admin.topics()]) is allows


@pytest.mark.asyncio
async def test_a_task_that_fails_is_heard_while_the_program_keeps_it(
    strict: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async def read() -> None:
        servers = strict.bootstrap_servers
        async with headrace.aio.Consumer("nothing", bootstrap_servers=servers, unknown_topics="raise") as consumer:
            async for _record in consumer:
                pass

    task = asyncio.create_task(read(), name="reader")
    await asyncio.wait([task], timeout=WAIT_MS / 1000)
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "Consumer of nothing" in record.getMessage()
    assert "ended task 'reader': topic 'nothing' cannot be read" in record.getMessage()
    with suppress(BrokerError):
        await task


@pytest.mark.asyncio
async def test_a_task_that_handles_its_errors_is_not_logged(
    strict: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async def read() -> None:
        servers = strict.bootstrap_servers
        async with headrace.aio.Consumer("nothing", bootstrap_servers=servers, unknown_topics="raise") as consumer:
            for _ in range(2):
                with pytest.raises(BrokerError):
                    await consumer.poll(timeout_ms=WAIT_MS)

    await asyncio.create_task(read())
    assert [each for each in caplog.records if each.levelno == logging.ERROR] == []
