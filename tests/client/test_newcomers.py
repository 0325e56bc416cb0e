"""Attempts of people who come from another client or use a notebook: each works, or the error says what to write."""

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import headrace
from headrace.client import Admin, Consumer, NewTopic, Producer
from headrace.client.errors import AuthenticationFailed, InvalidArgument
from headrace.testing import EmbeddedBroker

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]

WAIT_MS = 60_000


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    return broker.create_topic(broker.unused_topic_name("newcomer"))


@pytest.mark.parametrize(
    ("attempt", "match"),
    [
        (lambda: Producer({"bootstrap.servers": "a:1"}), r"config=\{'bootstrap\.servers'"),
        (lambda: Admin({"bootstrap.servers": "a:1"}), r"config=\{'bootstrap\.servers'"),
        (lambda: Consumer({"bootstrap.servers": "a:1", "group.id": "g"}), r"config=\{'bootstrap\.servers'"),
        (lambda: Consumer(["orders"]), "one by one as strings, such as 'orders', 'returns', not as"),
        (lambda: Consumer("^orders.*"), r"if it is a pattern, pass it as pattern='\^orders\.\*'"),
    ],
)
def test_what_other_clients_take(attempt: Callable[[], Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        attempt()


def test_one_topic_where_several_are_made(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        with pytest.raises(InvalidArgument, match=r"as in \[NewTopic"):
            admin.create_topics(NewTopic("one"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attempt", "match"),
    [
        (lambda consumer: consumer.assign(["orders"]), r"as in \[\('orders', 0\)\], not 'orders'"),
        (lambda consumer: consumer.assign(("orders", 0)), "not 'orders'"),
        (lambda consumer: consumer.end_offsets([("orders", "0")]), r"not \('orders', '0'\)"),
        (lambda consumer: consumer.pause(("orders", 0)), "not 'orders'"),
        (lambda consumer: consumer.seek(("orders", 0), "5"), "a number from zero up, EARLIEST or LATEST, not '5'"),
        (lambda consumer: consumer.seek_to_time(datetime(2026, 1, 1)), r"such as int\(when\.timestamp\(\) \* 1000\)"),
        (lambda consumer: consumer.seek_to_time(1.5), "not 1.5"),
        (lambda consumer: consumer.offsets_for_time("now"), "not 'now'"),
        (lambda consumer: consumer.commit({"orders": 5}), "not 'orders'"),
    ],
)
def test_places_and_times(broker: EmbeddedBroker, attempt: Callable[[Any], Any], match: str) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
        with pytest.raises(InvalidArgument, match=match):
            attempt(consumer)


@pytest.mark.parametrize(
    ("attempt", "match"),
    [
        (
            lambda consumer: consumer.poll(10),
            r"poll\(timeout_ms=10\), in milliseconds; for 10 seconds poll\(timeout_ms=10000\)",
        ),
        (lambda consumer: consumer.poll(1_000, 5), r"by name: poll\(timeout_ms=1000, max_records=5\)$"),
        (lambda consumer: consumer.poll(timeout=1.5), r"poll\(timeout_ms=1500\) to wait 1\.5 seconds"),
        (lambda consumer: list(consumer.batches(1.0)), r"batches\(timeout_ms=1\), in milliseconds"),
        (lambda consumer: consumer.commit(timeout=5), r"commit\(timeout_ms=5000\)"),
        (lambda consumer: consumer.close(5), r"close\(timeout_ms=5\)"),
        (lambda consumer: consumer.close(timeout="soon"), "use timeout_ms, in milliseconds"),
    ],
)
def test_times_without_a_name(broker: EmbeddedBroker, attempt: Callable[[Any], Any], match: str) -> None:
    with Consumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
        with pytest.raises(InvalidArgument, match=match):
            attempt(consumer)


def test_times_of_a_producer_without_a_name(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        attempts: list[Callable[..., Any]] = [producer.flush, producer.close]
        for attempt in attempts:
            with pytest.raises(InvalidArgument, match=r"\(timeout_ms=10\), in milliseconds; for 10 seconds"):
                attempt(10)
        assert producer.send(topic, b"v").result(timeout_ms=WAIT_MS).offset == 0


def test_the_time_of_a_delivery_without_a_name(broker: EmbeddedBroker, topic: str) -> None:
    with headrace.Producer(broker.bootstrap_servers) as producer:
        delivery = producer.send(topic, b"v")
        with pytest.raises(InvalidArgument, match=r"result\(timeout_ms=10000\) to wait 10 seconds"):
            delivery.result(timeout=10)  # type: ignore[call-arg]
        with pytest.raises(InvalidArgument, match=r"by name: result\(timeout_ms=10\)"):
            delivery.result(10)  # type: ignore[call-arg]
        assert delivery.result(timeout_ms=WAIT_MS).offset == 0


def test_a_timeout_in_the_settings() -> None:
    with pytest.raises(InvalidArgument, match="unknown setting 'timeout': times are in milliseconds"):
        Admin(timeout=10)  # type: ignore[call-arg]


@pytest.mark.parametrize("group_id", [None, "g"])
def test_a_pattern_finds_new_topics(broker: EmbeddedBroker, group_id: str | None) -> None:
    prefix = broker.unused_topic_name("shop")
    group_id = group_id and prefix  # not one that another test has left in the middle of its first join
    options: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "metadata_max_age_ms": 100,
        "heartbeat_interval_ms": 100,
    }
    with Consumer(
        pattern=f"{prefix}-.*", bootstrap_servers=broker.bootstrap_servers, group_id=group_id, **options
    ) as consumer:
        assert consumer.poll(timeout_ms=10) == []
        for name in ("one", "two"):
            topic = broker.create_topic(f"{prefix}-{name}")
            with Producer(broker.bootstrap_servers) as producer:
                producer.send(topic, name.encode()).result(timeout_ms=WAIT_MS)
            assert next(consumer).value == name.encode()


def test_bytes_of_other_kinds(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for value in (bytearray(b"a"), memoryview(b"b")):
            producer.send(topic, value, key=value).result(timeout_ms=WAIT_MS)
    options = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
    with Consumer(topic, **options) as consumer:
        assert [(r.key, r.value) for r in (next(consumer), next(consumer))] == [(b"a", b"a"), (b"b", b"b")]


def test_what_a_notebook_shows(broker: EmbeddedBroker, topic: str) -> None:
    servers = broker.bootstrap_servers
    with Producer(servers, transactional_id="mine") as producer:
        assert repr(producer) == f"<Producer as mine at {servers}, 0 batches on their way>"
    with Producer(servers, linger_ms=60_000) as producer:
        delivery = producer.send(topic, b"v")
        assert repr(delivery) == f"<Delivery for {topic}-0: not delivered yet>"
        producer.flush()
        assert repr(delivery) == f"<Delivery for {topic}-0: at offset 0>"
    with Consumer(topic, bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest") as consumer:
        assert repr(consumer) == f"<Consumer of {topic} in group g at {servers}>"
        batch = next(iter(consumer.batches(timeout_ms=WAIT_MS)))
        assert repr(batch) == f"<RecordBatch of {topic}-0: 1 records from offset 0>"


def ask(options: dict[str, Any]) -> None:
    with Admin(**options) as admin:
        admin.topics()


def send(options: dict[str, Any]) -> None:
    with Producer(**options) as producer:
        producer.send("t", b"v")


def read(options: dict[str, Any]) -> None:
    with Consumer("t", **options) as consumer:
        consumer.poll(timeout_ms=WAIT_MS)


@pytest.mark.parametrize("use", [ask, send, read])
def test_credentials_for_a_listener_that_wants_none(use: Callable[[dict[str, Any]], None]) -> None:
    """Told at once, and not after the time that a broker may take to come up."""
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "me", "sasl_password": "secret"}
    with EmbeddedBroker() as plain, pytest.raises(AuthenticationFailed, match="remove SASL from security_protocol"):
        use({"bootstrap_servers": plain.bootstrap_servers, **options})


def test_the_asyncio_client_needs_no_import_of_its_own() -> None:
    program = "import headrace; print(headrace.aio.Producer.__module__)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "headrace.client.aio.producer\n"
