"""The examples of the client run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from headrace import Consumer, Producer
from headrace.testing import EmbeddedBroker

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "client"
WAIT_MS = 30_000


def test_the_example_of_a_test() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_orders.py")],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_handlers_bill_orders_and_put_bad_ones_aside() -> None:
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        for topic in ("orders", "invoices", "orders.failed"):
            broker.create_topic(topic)
        process = subprocess.Popen([sys.executable, str(EXAMPLES / "handlers.py"), servers], env=dict(os.environ))
        try:
            with Producer(servers, value_serializer="json") as producer:
                producer.send("orders", {"customer": "a", "count": 2, "price_cents": 150})
                producer.send("orders", {"customer": "b"})
                producer.send("orders", {"customer": "c", "count": 1, "price_cents": 5})
            found: dict[str, list[object]] = {"invoices": [], "orders.failed": []}
            with Consumer(*found, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
                for _ in range(WAIT_MS // 500):
                    for record in consumer.poll(500):
                        found[record.topic].append(json.loads(record.value))
                    if sum(map(len, found.values())) == 3:
                        break
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10)
    assert found["invoices"] == [{"customer": "a", "cents": 300}, {"customer": "c", "cents": 5}]
    assert [failed["value"] for failed in found["orders.failed"]] == [{"customer": "b"}]
