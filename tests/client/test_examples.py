"""The examples of the client run."""

import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace import Consumer, Producer
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "client"
WAIT_MS = 60_000


def test_the_example_of_a_test() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_orders.py")],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_orders_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    testclient = pytest.importorskip("fastapi.testclient", reason="pip install fastapi httpx")
    with EmbeddedBroker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        monkeypatch.setenv("BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        example = runpy.run_path(str(EXAMPLES / "fastapi_orders.py"))
        with testclient.TestClient(example["app"]) as http:
            for item, count in (("apple", 3), ("pear", 1), ("apple", 2)):
                answer = http.post("/orders", json={"customer": "c", "item": item, "count": count})
                assert (answer.status_code, set(answer.json())) == (200, {"partition", "offset"})
            assert http.post("/orders", json={"item": "apple"}).status_code == 422
            counted: dict[str, int] = {}
            for _ in range(WAIT_MS // 20):
                counted = http.get("/counts").json()
                if sum(counted.values()) == 6:
                    break
                threading.Event().wait(0.02)
    assert counted == {"apple": 5, "pear": 1}


def test_handlers_bill_orders_and_put_bad_ones_aside() -> None:
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        for topic in ("orders", "invoices", "orders.failed"):
            broker.create_topic(topic)
        process = subprocess.Popen([sys.executable, str(EXAMPLES / "handlers.py"), servers], env=dict(os.environ))
        try:
            with Producer(servers, value_serializer="str") as producer:
                producer.send("orders", '{"customer": "a", "count": 2, "price_cents": 150}')
                producer.send("orders", '{"customer": "b"}')
                producer.send("orders", "three apples")
                producer.send("orders", '{"customer": "c", "count": 1, "price_cents": 5}')
            found: dict[str, list[Any]] = {"invoices": [], "orders.failed": []}
            with Consumer(*found, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
                for _ in range(WAIT_MS // 500):
                    for record in consumer.poll(timeout_ms=500):
                        found[record.topic].append(json.loads(record.value))
                    if sum(map(len, found.values())) == 4:
                        break
        finally:
            process.send_signal(signal.SIGINT)
            status = process.wait(WAIT_MS / 1000)
    assert status == 0
    assert found["invoices"] == [{"customer": "a", "cents": 300}, {"customer": "c", "cents": 5}]
    assert [failed["value"] for failed in found["orders.failed"]] == ['{"customer": "b"}', "three apples"]
