"""Clients that are never closed: records are delivered, the interpreter ends, and a child of fork gets an error."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from headrace.client import Producer
from headrace.client.blocking import producer as producing
from headrace.client.blocking.whole_topics import read_topic
from headrace.testing import EmbeddedBroker

from .leftovers import client_descriptors, client_threads

pytestmark = pytest.mark.process

EXIT_S_MAX = 60
WAIT_MS = 60_000
MOMENT_S = 0.01
FORGOTTEN = 20
CHILD = """
import os, sys
from headrace import Consumer, Producer
from headrace.client.errors import ClientClosed

def end_child(uses):
    for use in uses:
        try:
            use()
        except ClientClosed as error:
            assert "after the fork" in str(error)
        else:
            os._exit(3)
    consumer.close()
    producer.close()
    os._exit(0)
"""
BLOCKING = f"""{CHILD}
producer = Producer(sys.argv[1])
producer.send("t", b"v").result(timeout_ms=60_000)
consumer = Consumer("t", bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest")
assert next(consumer).value == b"v"
child = os.fork()
if child == 0:
    end_child([lambda: producer.send("t", b"v"), lambda: consumer.poll(timeout_ms=0)])
assert os.waitpid(child, 0)[1] == 0
producer.send("t", b"w").result(timeout_ms=60_000)  # the parent's clients are as before
assert next(consumer).value == b"w"
print("end")
"""
ASYNCIO = """
import asyncio, os, sys
from headrace.aio import Consumer, Producer
from headrace.client.errors import ClientClosed

async def told(use):
    try:
        await use
    except ClientClosed as error:
        return "after the fork" in str(error)

async def main():
    producer = Producer(sys.argv[1])
    await producer.send_and_wait("t", b"v")
    consumer = Consumer("t", bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest")
    records = aiter(consumer)
    assert (await anext(records)).value == b"v"
    child = os.fork()
    if child == 0:
        is_told = await told(producer.send("t", b"v")) and await told(consumer.poll(timeout_ms=0))
        await consumer.close()
        await producer.close()
        os._exit(0 if is_told else 3)
    assert os.waitpid(child, 0)[1] == 0
    await producer.send_and_wait("t", b"w")  # the parent's clients are as before
    assert (await anext(records)).value == b"w"
    await records.aclose()
    print("end")

asyncio.run(main())
"""


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as started:
        started.create_topic("t")
        yield started


def ran(program: str, broker: EmbeddedBroker) -> tuple[int, str, str]:
    """Exit status of the program, and its output."""
    done = subprocess.run(
        [sys.executable, "-c", program, broker.bootstrap_servers], capture_output=True, text=True, timeout=EXIT_S_MAX
    )
    return done.returncode, done.stdout, done.stderr


def values(broker: EmbeddedBroker) -> list[bytes]:
    return sorted(record.value for record in read_topic({"bootstrap.servers": broker.bootstrap_servers}, "t"))


@pytest.mark.parametrize("program", [BLOCKING, ASYNCIO], ids=["blocking", "asyncio"])
def test_the_interpreter_ends_and_forks_are_reported(broker: EmbeddedBroker, program: str) -> None:
    assert ran(program, broker) == (0, "end\n", "")


LOCKED_FORK = f"""{CHILD}
import signal, threading

producer = Producer(sys.argv[1])
delivery = producer.send("t", b"v")
delivery.result(timeout_ms=60_000)
pending = Producer(sys.argv[1], linger_ms=60_000)
waiting = pending.send("t", b"later")
consumer = Consumer("t", bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest")
assert next(consumer).value == b"v"
locked, done = threading.Event(), threading.Event()

def hold():
    with producer._lock, pending._lock, consumer._driver:
        locked.set()
        done.wait()

holder = threading.Thread(target=hold)
holder.start()
locked.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)  # a use that hangs ends the child
    uses = [lambda: producer.send("t", b"v"), producer.flush, producer.metrics, waiting.result]
    uses += [lambda: consumer.poll(timeout_ms=0), lambda: next(consumer.batches(timeout_ms=0))]
    uses += [lambda: consumer.end_offsets([("t", 0)])]
    end_child(uses)
done.set()
holder.join()
assert os.waitpid(child, 0)[1] == 0
consumer.close()
print("end")
"""


def test_a_fork_while_a_lock_is_held(broker: EmbeddedBroker) -> None:
    """No thread in the child would ever give it back."""
    assert ran(LOCKED_FORK, broker) == (0, "end\n", "")
    assert values(broker) == [b"later", b"v"], "the producer that was never closed has delivered at the end"


UNCLOSED = """
import gc, sys
from headrace import Producer
for _ in range(20):
    Producer(sys.argv[1], linger_ms=60_000).send("t", b"forgotten")
for _ in range(5):
    holder = {"producer": Producer(sys.argv[1], linger_ms=60_000)}
    holder["itself"] = holder
    holder["producer"].send("t", b"forgotten")
del holder
gc.collect()
producer = Producer(sys.argv[1], linger_ms=60_000)
for number in range(100):
    producer.send("t", b"%d" % number)
print("end")
"""
GIVEN_UP = """
import atexit, time
from headrace import Producer
from headrace.bench.brokers import free_ports
from headrace.client.blocking import producer as module
from headrace.testing import EmbeddedBroker

module.EXIT_TIMEOUT_MS = 2_000
listeners = f"PLAINTEXT://127.0.0.1:{free_ports(1)[0]}"  # no other process gets it when the broker has stopped
with EmbeddedBroker(config={"listeners": listeners}) as broker:
    broker.create_topic("t")
    producers = [Producer(broker.bootstrap_servers) for _ in range(5)]
    for producer in producers:
        producer.send("t", b"v").result(timeout_ms=60_000)
for producer in producers:
    producer.send("t", b"w")
began = time.monotonic()
atexit.unregister(module._close_all)
atexit.register(lambda: print("end, waited for one by one:", time.monotonic() - began >= 10))
atexit.register(module._close_all)
"""


def test_what_was_handed_over_is_delivered_at_the_end(broker: EmbeddedBroker) -> None:
    assert ran(UNCLOSED, broker) == (0, "end\n", "")
    assert values(broker) == sorted([*[b"forgotten"] * 25, *(b"%d" % number for number in range(100))])


def test_what_a_forgotten_producer_delivers_just_then_is_not_lost(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own thread had delivered it and was through, and the end of the program told of a loss."""
    producer = Producer(broker.bootstrap_servers, linger_ms=60_000)
    delivery = producer.send("t", b"v")
    wait_for = producer._changed.wait_for

    def woken_late(predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        producer.__del__()
        has_come = wait_for(predicate, timeout)
        while not producer._is_closing:
            producer._changed.wait(MOMENT_S)
        return has_come

    monkeypatch.setattr(producer._changed, "wait_for", woken_late)
    producer._leave(WAIT_MS)
    assert delivery.result(timeout_ms=WAIT_MS).offset == 0
    told = [record.getMessage() for record in caplog.records if record.name == "headrace.client"]
    assert not any("lost" in each for each in told)  # stock clients of other tests may log of lost connections


def test_producers_that_are_made_at_the_end_are_no_hindrance(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By threads that still run: one is made at every step of the look at those that were never closed."""
    monkeypatch.setattr(producing, "_unclosed", type(producing._unclosed)())
    before, made = sys.getprofile(), [Producer(broker.bootstrap_servers, linger_ms=60_000) for _ in range(2)]
    delivery = made[0].send("t", b"v")

    def make_one(_frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and len(made) < 10:
            made.append(Producer(broker.bootstrap_servers))

    sys.setprofile(make_one)
    try:
        producing._close_all()
    finally:
        sys.setprofile(before)
        for producer in made:
            producer.close()
    assert delivery.result(timeout_ms=WAIT_MS).offset == 0


def test_what_cannot_be_delivered_at_the_end_is_said(broker: EmbeddedBroker) -> None:
    status, output, said = ran(GIVEN_UP, broker)
    assert (status, output) == (0, "end, waited for one by one: False\n")
    assert (
        said.count(
            "records of a producer that was not closed are lost; call close() or flush() before: "
            "1 batch is not delivered yet"
        )
        == 5
    )


def test_what_a_collected_cycle_had_is_delivered(broker: EmbeddedBroker) -> None:
    """The collector closes every socket that it finds in a cycle, also those of a producer that lives on."""
    holder: dict[str, object] = {"producer": (producer := Producer(broker.bootstrap_servers, linger_ms=60_000))}
    holder["itself"] = holder
    producer.send("t", b"v")
    producer.flush(timeout_ms=WAIT_MS)
    delivery, thread = producer.send("t", b"w"), producer._thread
    del holder, producer
    gc.collect()
    delivery.result(timeout_ms=WAIT_MS)
    thread.join(WAIT_MS / 1000)
    assert not thread.is_alive()
    assert values(broker) == [b"v", b"w"]


def test_forgotten_producers_deliver_and_leave_nothing(broker: EmbeddedBroker) -> None:
    gc.collect()
    threads, descriptors = client_threads(), client_descriptors()
    deliveries = [Producer(broker.bootstrap_servers, linger_ms=10).send("t", b"%d" % each) for each in range(FORGOTTEN)]
    for delivery in deliveries:
        delivery.result(timeout_ms=WAIT_MS)
    gc.collect()
    for thread in client_threads() - threads:
        thread.join(WAIT_MS / 1000)
    assert client_threads() <= threads
    deadline_s = time.monotonic() + WAIT_MS / 1000
    while not client_descriptors() <= descriptors:  # the broker, in this process too, closes its ends a moment later
        assert time.monotonic() < deadline_s, client_descriptors() - descriptors
        time.sleep(MOMENT_S)
    assert len(values(broker)) == FORGOTTEN
