"""Clients that stay: a reader and a writer of every kind go on by themselves when the broker comes back."""

import time
from pathlib import Path

import pytest

from compat.adapters import connect, features
from compat.cases.case import assert_same, sample
from compat.client import Feature, Reader, Received, Sending
from headrace.client import Admin, NewTopic
from tests.broker_process.broker_process import BrokerProcess
from tests.reserved_ports import reserved_port

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

RECOVERY_S_MAX = 120.0
"""Clients wait ever longer before they try again, half a minute in the end."""


def _read(reader: Reader, count: int) -> list[Received]:
    """Across the loss of the connection, which some clients report and others hide."""
    received: list[Received] = []
    deadline = time.monotonic() + RECOVERY_S_MAX
    while len(received) < count and time.monotonic() < deadline:
        try:
            received += reader.read(count - len(received), 1.0)
        except RuntimeError:  # librdkafka tells that all brokers are down, and goes on
            continue
    return received


@pytest.mark.parametrize(
    ("name", "abrupt"),
    [("confluent-kafka", False), ("confluent-kafka", True), ("kafka-python", True), ("aiokafka", False)],
)
def test_reader_and_writer_outlive_a_restart(tmp_path: Path, name: str, abrupt: bool) -> None:
    """The leader epoch has grown meanwhile: clients check their position against it and go on."""
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{reserved_port()}"}
    messages = sample(40, seed=41)
    sending = Sending(idempotent=Feature.IDEMPOTENCE in features(name))
    with BrokerProcess(tmp_path, settings=settings) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            assert not admin.create_topics([NewTopic("lasting")])["lasting"].error
        client = connect(name, broker.bootstrap_servers)
        reader = client.reader("lasting", 0)
        received: list[Received] = []
        for start in range(0, 40, 20):
            if start:
                broker.kill() if abrupt else broker.stop()
                broker.start()
            part = messages[start : start + 20]
            client.send("lasting", part, sending)
            received += _read(reader, 20)
        assert_same(received, messages)
        assert client.bounds("lasting") == (0, 40)
        reader.close()
        client.close()
