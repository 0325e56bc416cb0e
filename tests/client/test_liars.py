"""Brokers that lie once and connections that are cut once, anywhere: a connection is lost, and no record."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from headrace.client import Admin, Consumer, Producer
from headrace.client.core import broker_addresses
from headrace.client.errors import ClientError
from headrace.client.types import TopicDescription
from headrace.testing import EmbeddedBroker

from .hostile import FaultProxy, Lie, LyingProxy, garbled, never_ending, oversized, reordered, truncated

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front", "quick_retries")]

WAIT_MS = 60_000
SENDING_ANSWERS = 4
"""Versions, metadata, the producer's id, the batch."""

READING_ANSWERS = 3
"""Versions, metadata, the records."""

CUT_STEP_BYTES = 29


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_addresses, "RECONNECT_BACKOFF_MS", 2)


@contextmanager
def behind(proxy: FaultProxy) -> Iterator[EmbeddedBroker]:
    """A broker that is reached through the proxy alone."""
    config = {"advertised.listeners": f"PLAINTEXT://{proxy.address}", "listeners": "PLAINTEXT://127.0.0.1:0"}
    with EmbeddedBroker(config=config) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        proxy.broker = (host, int(port))
        yield broker


def send(servers: str, number: int) -> int:
    """The offset of a record that is sent by a producer of its own."""
    options: dict[str, Any] = {"request_timeout_ms": 250, "retry_backoff_ms": 2, "linger_ms": 0}
    with Producer(servers, **options) as producer:
        return int(producer.send("t", b"%d" % number, partition=0).result(timeout_ms=WAIT_MS).offset)


def read(servers: str, offset: int) -> bytes | None:
    """The record there; what is wrong at first is reported, and tried again."""
    options: dict[str, Any] = {"request_timeout_ms": 250, "fetch_max_wait_ms": 50}
    with Consumer(bootstrap_servers=servers, **options) as consumer:
        consumer.assign([("t", 0)])
        give_up_s = time.monotonic() + WAIT_MS / 1000
        while time.monotonic() < give_up_s:
            with suppress(ClientError):
                consumer.seek(("t", 0), offset)
                for record in consumer.poll(timeout_ms=1_000):
                    assert record.offset == offset
                    return bytes(record.value)
    return None


@pytest.mark.parametrize("lie", [truncated, oversized, reordered, garbled, never_ending], ids=lambda lie: lie.__name__)
def test_a_lie_in_the_place_of_any_answer(lie: Lie) -> None:
    with LyingProxy(lie) as proxy, behind(proxy) as broker:
        broker.create_topic("t")
        for number in range(SENDING_ANSWERS):
            proxy.lie_in = number
            assert send(proxy.address, number) == number, "delivered once, whatever was said of it"
            assert proxy.lie_in < 0, "the lie was sent"
            proxy.lie_in = min(number, READING_ANSWERS - 1)
            assert read(proxy.address, number) == b"%d" % number
            assert proxy.lie_in < 0, "the lie was sent"


def failure(attempt: Callable[[], object]) -> ClientError | None:
    try:
        attempt()
    except ClientError as error:
        return error
    return None


def patiently_asked(admin: Admin) -> tuple[TopicDescription, ...]:
    give_up_s = time.monotonic() + WAIT_MS / 1000
    while time.monotonic() < give_up_s:
        with suppress(ClientError):
            return admin.topics(["t"])
    return ()


@pytest.mark.parametrize("lie", [truncated, oversized, reordered, garbled, never_ending], ids=lambda lie: lie.__name__)
def test_a_lie_to_an_administrator(lie: Lie) -> None:
    """Answered, or with an error that names the broker at fault; and the next question is answered."""
    with LyingProxy(lie) as proxy, behind(proxy) as broker:
        broker.create_topic("t")
        with Admin(proxy.address, timeout_ms=250, request_timeout_ms=250) as admin:
            for number in range(3):
                proxy.lie_in = number
                error = failure(lambda: admin.topics(["t"]))
                assert error is None or proxy.address in str(error)
            proxy.lie_in = -1
            answered = patiently_asked(admin)
            assert [topic.name for topic in answered] == ["t"], "it is never answered again"


def test_connections_cut_all_along() -> None:
    """Each client's first connection breaks some bytes later than that of the one before."""
    with FaultProxy() as proxy, behind(proxy) as broker:
        broker.create_topic("t")
        for number, cut_bytes in enumerate(range(1, 600, CUT_STEP_BYTES)):
            proxy.cuts = [cut_bytes]
            assert send(proxy.address, number) == number
            proxy.cuts = [cut_bytes]
            assert read(proxy.address, number) == b"%d" % number
