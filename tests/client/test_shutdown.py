"""Clients that nobody closes: the interpreter ends all the same, and a child of fork is told."""

import subprocess
import sys

from headrace.testing import EmbeddedBroker

EXIT_S_MAX = 60
PROGRAM = """
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


def test_the_interpreter_ends_and_forks_are_told() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("t")
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, broker.bootstrap_servers],
            capture_output=True,
            text=True,
            timeout=EXIT_S_MAX,
        )
    assert (ran.returncode, ran.stdout) == (0, "end\n"), ran.stderr
