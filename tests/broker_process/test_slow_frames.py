"""Clients that declare large requests and hardly send them: others are served, and memory follows what was received."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from headrace.client import Admin, NewTopic
from headrace.wire.apis import ApiKey
from headrace.wire.messages.produce import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic
from headrace.wire.records.builder import NewRecord, build_batch
from tests.broker_process.broker_process import BrokerProcess
from tests.broker_process.raw_connection import RawConnection

pytestmark = pytest.mark.process

POOL_BYTES = 32 << 20
HOSTS = [f"127.0.0.{number}" for number in range(1, 7)]
CONNECTIONS = 900
DECLARED_BYTES = 90_000_000
LITTLE_BYTES, SOME_BYTES = 2, 40_000
"""Some is enough for a buffer of 64 KiB: all connections together want almost twice the pool."""
PRODUCED_BYTES = 500_000
SLACK_BYTES = 24 << 20
"""Memory that the connections cost beside the pool: objects, and the beginnings of frames that have no buffer."""
MEMORY_LEFT_BYTES_MAX = 32 << 20
WAIT_S_MAX = 60.0
PRODUCE_VERSION = 9


def _resident_bytes(broker: BrokerProcess) -> int:
    resident: int = psutil.Process(broker.process.pid).memory_info().rss
    return resident


def _produce(broker: BrokerProcess, source: str) -> int:
    """The error of a large request from that address."""
    records = bytes(build_batch([NewRecord(1_700_000_000_000, None, bytes(PRODUCED_BYTES))]))
    partition = ProduceRequestPartition(index=0, records=records)
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=(ProduceRequestTopic(name="t", partition_data=(partition,)),)
    )
    with RawConnection(broker.bootstrap_servers, source=source) as connection:
        response = connection.call(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    return int(response.responses[0].partition_responses[0].error_code)


@contextmanager
def _slow_frames(broker: BrokerProcess, hosts: list[str], sent_bytes: int) -> Iterator[None]:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    header = struct.pack(">ihhih", DECLARED_BYTES, ApiKey.PRODUCE, PRODUCE_VERSION, 1, -1)
    begun = (header + bytes(sent_bytes))[: 4 + sent_bytes]
    attackers: list[socket.socket] = []
    try:
        for number in range(CONNECTIONS):
            attacker = socket.create_connection(
                (host, int(port)), WAIT_S_MAX, source_address=(hosts[number % len(hosts)], 0)
            )
            attackers.append(attacker)
            attacker.sendall(begun)
        yield
    finally:
        for attacker in attackers:
            attacker.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {
        "headrace.total.inflight.bytes.max": str(POOL_BYTES),
        "headrace.slow.client.timeout.ms": "600000",
    }
    folder: Path = tmp_path_factory.mktemp("slow")
    with BrokerProcess(folder, settings=settings) as started:
        with Admin(started.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", partitions=1)])
        assert _produce(started, "127.0.0.1") == 0
        yield started


@pytest.mark.parametrize("hosts", [HOSTS[:1], HOSTS], ids=["one address", "six addresses"])
@pytest.mark.parametrize("sent_bytes", [LITTLE_BYTES, SOME_BYTES], ids=["declared only", "begun"])
def test_large_requests_are_served_beside_slow_ones_and_memory_comes_back(
    broker: BrokerProcess, hosts: list[str], sent_bytes: int
) -> None:
    before = _resident_bytes(broker)
    with _slow_frames(broker, hosts, sent_bytes):
        for source in ("127.0.0.1", "127.0.0.9"):
            assert _produce(broker, source) == 0
            assert _resident_bytes(broker) - before < POOL_BYTES + SLACK_BYTES
    deadline = time.monotonic() + WAIT_S_MAX
    while _resident_bytes(broker) - before >= MEMORY_LEFT_BYTES_MAX:
        assert time.monotonic() < deadline, f"{_resident_bytes(broker) - before} bytes more than before are still held"
        time.sleep(0.1)
