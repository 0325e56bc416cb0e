"""Clients that nobody closes: the interpreter ends all the same, and a child of fork is told."""

import subprocess
import sys

import pytest

from headrace.testing import EmbeddedBroker

EXIT_S_MAX = 60
BLOCKING = """
import os, sys
from headrace import Consumer, Producer
from headrace.client.errors import ClientClosed

producer = Producer(sys.argv[1])
producer.send("t", b"v").result(timeout_ms=20_000)
consumer = Consumer("t", bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest")
assert next(consumer).value == b"v"
child = os.fork()
if child == 0:
    for use in (lambda: producer.send("t", b"v"), lambda: consumer.poll(0)):
        try:
            use()
        except ClientClosed as error:
            assert "after the fork" in str(error)
        else:
            os._exit(3)
    consumer.close()
    producer.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
producer.send("t", b"w").result(timeout_ms=20_000)  # the parent's clients are as before
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
        is_told = await told(producer.send("t", b"v")) and await told(consumer.poll(0))
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


@pytest.mark.parametrize("program", [BLOCKING, ASYNCIO], ids=["blocking", "asyncio"])
def test_the_interpreter_ends_and_forks_are_told(program: str) -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("t")
        ran = subprocess.run(
            [sys.executable, "-c", program, broker.bootstrap_servers],
            capture_output=True,
            text=True,
            timeout=EXIT_S_MAX,
        )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "end\n", "")
