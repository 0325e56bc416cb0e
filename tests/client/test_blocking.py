"""Features that only the blocking front has: threads, forks, interrupts, and commits that run in the background."""

import asyncio
import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import headrace
from headrace.client import Admin, Consumer, GroupIdentity, Producer, TopicPartition
from headrace.client.blocking import producer as producer_module
from headrace.client.errors import ClientClosed, DeadlineExceeded, InvalidArgument
from headrace.testing import EmbeddedBroker
from headrace.wire.records.builder import NewRecord, build_batch
from tests.reserved_ports import reserved_address

from .leftovers import client_threads

pytestmark = pytest.mark.process

WAIT_MS = 60_000
MOMENT_S = 0.1
PARTITIONS = 3


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=PARTITIONS)


def member(broker: EmbeddedBroker, topic: str) -> Consumer:
    options = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "enable_auto_commit": False}
    return Consumer(topic, bootstrap_servers=broker.bootstrap_servers, group_id=f"g-{topic}", **options)


def await_partitions(consumer: Consumer) -> None:
    for _ in range(WAIT_MS // 20):
        consumer.poll(timeout_ms=20)
        if len(consumer.assignment()) == PARTITIONS:
            return
    raise AssertionError("no partitions were assigned")


def test_the_package_offers_the_classes() -> None:
    assert (headrace.Admin, headrace.Producer, headrace.Consumer) == (Admin, Producer, Consumer)
    with pytest.raises(AttributeError):
        headrace.Nonsense  # noqa: B018


def test_a_flush_ends_when_the_callbacks_have_run(broker: EmbeddedBroker, topic: str) -> None:
    begun, may_end, is_flushed = threading.Event(), threading.Event(), threading.Event()
    with Producer(broker.bootstrap_servers) as producer:

        def take_long(_delivery: object) -> None:
            begun.set()
            assert may_end.wait(WAIT_MS / 1000)

        def flush() -> None:
            producer.flush(timeout_ms=WAIT_MS)
            is_flushed.set()

        producer.send(topic, b"v", on_delivery=take_long)
        flushing = threading.Thread(target=flush)
        flushing.start()
        assert begun.wait(WAIT_MS / 1000)
        assert not is_flushed.wait(MOMENT_S), "the callback of a record is still running"
        may_end.set()
        flushing.join()
    assert is_flushed.is_set()


def test_what_a_delivery_callback_cannot_do(broker: EmbeddedBroker, topic: str) -> None:
    """Its own thread would have to do all of it; the call is refused at once, and nothing is changed by it."""
    with Producer(broker.bootstrap_servers, linger_ms=60_000, transactional_id=f"t-{topic}") as producer:
        transaction = producer.transaction()
        waiting = producer.send(topic, b"waits", partition=1)
        wishes: list[tuple[str, Callable[[], object]]] = [
            ("flush its producer", producer.flush),
            ("close its producer", producer.close),
            ("wait for its producer", waiting.result),
            ("end a transaction", transaction.commit),
            ("end a transaction", transaction.abort),
            ("wait for its producer", lambda: producer.send(f"{topic}-unknown", b"v")),
        ]
        refused: list[str] = []

        def wish(_delivery: object) -> None:
            producer.send(topic, b"sent in it", partition=1)
            for _wish, call in wishes:
                with pytest.raises(InvalidArgument) as error:
                    call()
                refused.append(str(error.value))

        with transaction:
            producer.send_batch(topic, 0, build_batch([NewRecord(1, None, b"v")]), on_delivery=wish).result(
                timeout_ms=WAIT_MS
            )
            producer.flush(timeout_ms=WAIT_MS)
            assert waiting.result().offset == 0
        producer.transaction().abort()  # the first is over
    explained = (
        "it runs in the producer's own thread, which would wait for itself; "
        "return from the callback and do that in another"
    )
    assert refused == [f"a delivery callback cannot {wish}: {explained} thread" for wish, _call in wishes]


def test_offsets_that_a_callback_could_not_commit_delay_no_other(broker: EmbeddedBroker, topic: str) -> None:
    """They were counted as under way, and the transaction waited for them until its time was over."""
    with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}", max_block_ms=WAIT_MS) as producer:
        with producer.transaction() as transaction:
            refused: list[str] = []

            def commit_offsets(_delivery: object) -> None:
                with pytest.raises(InvalidArgument) as error:
                    transaction.commit_offsets({(topic, 0): 1}, GroupIdentity(f"g-{topic}"))
                refused.append(str(error.value))

            producer.send(topic, b"v", on_delivery=commit_offsets)
            producer.flush(timeout_ms=WAIT_MS)
            assert "cannot wait for its producer" in refused[0]
            assert not producer._require_transactions().is_busy


def test_a_flush_that_outlives_a_close_has_flushed(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is delivered, whichever of the two threads hears of it first."""
    monkeypatch.setattr(producer_module, "THREAD_JOIN_MS", 0)
    begun, may_end = threading.Event(), threading.Event()
    outcome: list[object] = []

    def take_long(_delivery: object) -> None:
        begun.set()
        assert may_end.wait(WAIT_MS / 1000)

    def flush() -> None:
        try:
            outcome.append(producer.flush(timeout_ms=WAIT_MS))
        except ClientClosed as error:
            outcome.append(error)

    producer = Producer(broker.bootstrap_servers)
    delivery = producer.send(topic, b"v", on_delivery=take_long)
    assert begun.wait(WAIT_MS / 1000)
    flushing = threading.Thread(target=flush)
    flushing.start()
    while not producer._changed._waiters:
        time.sleep(0.001)
    with pytest.raises(DeadlineExceeded, match="callbacks are still running"):
        producer.close(timeout_ms=0)
    may_end.set()
    flushing.join()
    producer._thread.join()
    assert outcome == [None]
    assert delivery.result().offset == 0


def test_a_callback_of_the_group_cannot_close_its_consumer(broker: EmbeddedBroker, topic: str) -> None:
    told: list[str] = []
    with member(broker, topic) as consumer:

        def assigned(_partitions: object) -> None:
            told.append("assigned")
            consumer.close()

        def revoked(_partitions: object) -> None:
            told.append("revoked")
            consumer.close()
            with pytest.raises(InvalidArgument, match="cannot poll"):
                consumer.poll()

        consumer.subscribe(topic, on_assigned=assigned, on_revoked=revoked)
        with pytest.raises(InvalidArgument, match=r"cannot close its consumer, .* return from it first, then close"):
            await_partitions(consumer)
        await_partitions(consumer)
        assert consumer.position((topic, 0)) == 0
    assert told == ["assigned", "revoked"]


def test_a_flush_that_callbacks_hold_up_says_so(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def take_long(_delivery: object) -> None:
        begun.set()
        assert may_end.wait(WAIT_MS / 1000)

    monkeypatch.setattr(producer_module, "THREAD_JOIN_MS", 50)
    producer = Producer(broker.bootstrap_servers)
    producer.send(topic, b"v", on_delivery=take_long)
    assert begun.wait(WAIT_MS / 1000)
    with pytest.raises(DeadlineExceeded, match=r"callbacks are still running after 1 ms,.* with more time$"):
        producer.flush(timeout_ms=1)
    late = producer.send(topic, b"v", partition=0)
    with pytest.raises(DeadlineExceeded, match=r"let them return sooner.*; 1 batch is not delivered yet$"):
        producer.close(timeout_ms=1)
    with pytest.raises(ClientClosed):
        late.result()
    may_end.set()
    producer._thread.join(WAIT_MS / 1000)
    assert producer._fault is None, "its thread goes on with connections that are gone"


def test_several_threads_send(broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer(broker.bootstrap_servers)

    def send_some(thread: int) -> None:
        for number in range(50):
            producer.send(topic, b"%d:%d" % (thread, number), partition=0)

    threads = [threading.Thread(target=send_some, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush(timeout_ms=WAIT_MS)
    producer.close()
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        values = [next(consumer).value for _ in range(200)]
    for thread_number in range(4):
        own = [value for value in values if value.startswith(b"%d:" % thread_number)]
        assert own == [b"%d:%d" % (thread_number, number) for number in range(50)]


def test_a_caller_that_waits_for_a_transaction_learns_of_a_close() -> None:
    producer = Producer(reserved_address(), transactional_id="t")
    told: list[BaseException] = []

    def begin() -> None:
        try:
            producer.transaction()
        except BaseException as error:
            told.append(error)

    waiting = threading.Thread(target=begin, daemon=True)
    waiting.start()
    while not producer._session.engine._running:
        waiting.join(MOMENT_S)
    producer.close()
    waiting.join(WAIT_MS / 1000)
    assert [type(error) for error in told] == [ClientClosed]


def test_a_fork_is_refused(broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        with monkeypatch.context() as other_process:
            other_process.setattr(os, "getpid", lambda: 1)
            with pytest.raises(ClientClosed, match="fork"):
                producer.send(topic, b"v")


def test_nothing_is_left_behind(broker: EmbeddedBroker, topic: str) -> None:
    before = client_threads()
    with member(broker, topic) as consumer:
        await_partitions(consumer)
        assert len(client_threads() - before) == 1
    assert client_threads() - before == set()


def test_ctrl_c_in_the_wrong_instant_does_not_keep_it_open(broker: EmbeddedBroker, topic: str) -> None:
    """The interrupt comes when the right to drive was taken, and before any thread gives it back."""
    consumer = member(broker, topic)
    consumer.poll(timeout_ms=100)
    consumer._driver.__enter__()
    consumer.close()
    with pytest.raises(ClientClosed):
        consumer.poll(timeout_ms=0)


@pytest.mark.parametrize("wait", range(12))
def test_ctrl_c_in_a_transaction_leaves_the_producer_to_be_used(broker: EmbeddedBroker, topic: str, wait: int) -> None:
    """The interrupt comes where the transaction waits for this time; in its end it may be committed or aborted."""
    with Producer(broker.bootstrap_servers, transactional_id=f"t-{topic}", max_block_ms=WAIT_MS) as producer:
        waits, usual = count(), producer._changed.wait

        def interrupted(timeout: float | None = None) -> bool:
            if threading.current_thread() is threading.main_thread() and next(waits) == wait:
                raise KeyboardInterrupt
            return usual(timeout)

        producer._changed.wait = interrupted  # type: ignore[method-assign]
        try:
            with producer.transaction() as transaction:
                producer.send(topic, b"first", partition=0)
                transaction.commit_offsets({(topic, 0): 1}, f"g-{topic}")
            is_told = True
        except KeyboardInterrupt:
            is_told = False
        producer._changed.wait = usual  # type: ignore[method-assign]
        with producer.transaction():
            producer.send(topic, b"second", partition=0)
    options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        values = []
        while b"second" not in values:
            values += [record.value for record in consumer.poll(timeout_ms=WAIT_MS)]
    assert values in ([b"first", b"second"], [b"second"])
    assert b"first" in values or not is_told


def test_a_callback_that_would_end_the_program(
    broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[object] = []
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"1", on_delivery=lambda _delivery: sys.exit("enough"))
        producer.send(topic, b"2", on_delivery=told.append)
        producer.flush(timeout_ms=WAIT_MS)
        assert len(told) == 1
        producer.send(topic, b"3").result(timeout_ms=WAIT_MS)
    assert "a delivery callback cannot end the program" in caplog.text


def test_a_consumer_that_another_thread_closes_says_so(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = member(broker, topic)

    def closed_meanwhile(_wait_ms: float) -> None:
        consumer._session.close()
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(consumer._session.links, "turn", closed_meanwhile)
    with pytest.raises(ClientClosed, match="create a new one"):
        consumer.poll(timeout_ms=WAIT_MS)
    consumer._driver.stop()


def test_a_commit_without_a_waiting_caller(broker: EmbeddedBroker, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with member(broker, topic) as consumer:
        await_partitions(consumer)
        consumer.commit({place: 7}, wait=False)
        for _ in range(WAIT_MS // 20):
            consumer.poll(timeout_ms=20)
            if place in consumer.committed():
                break
        assert consumer.committed()[place].offset == 7


def test_within_a_running_loop_as_in_a_notebook(broker: EmbeddedBroker, topic: str) -> None:
    async def cell() -> bytes:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(topic, b"v").result(timeout_ms=WAIT_MS)
        with member(broker, topic) as consumer:
            return next(consumer).value

    assert asyncio.run(cell()) == b"v"


def test_what_happened_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    address, topic = reserved_address(), "logged-once"

    def told() -> list[str]:  # clients of other tests may log something too
        found = [record.getMessage() for record in caplog.records if record.name == "headrace.client"]
        return [each for each in found if address in each or topic in each]

    def poll_until_told(text: str) -> None:
        for _ in range(WAIT_MS // 20):
            if any(each.endswith(text) for each in told()):
                return
            consumer.poll(timeout_ms=20)
        raise AssertionError(f"no record says {text!r}")

    broker = EmbeddedBroker(data_dir=str(tmp_path), config={"listeners": f"PLAINTEXT://{address}"}).start()
    try:
        broker.create_topic(topic, partitions=PARTITIONS)
        with caplog.at_level(logging.INFO, "headrace.client"), member(broker, topic) as consumer:
            await_partitions(consumer)
            broker.stop()
            poll_until_told("trying again")
            for _ in range(30):
                consumer.poll(timeout_ms=20)
            broker.start()
            poll_until_told("can be reached again")
    finally:
        broker.stop()
    assert len(told()) == len(set(told())), told()
    assert sum(each.endswith("trying again") for each in told()) == 1
    assert sum(each.endswith("can be reached again") for each in told()) == 1
