"""A member of a group behind a proxy that slices bytes and cuts connections."""

import time
from typing import Any

import pytest

from headrace.client import Consumer, Producer
from headrace.client.errors import ClientError
from headrace.testing import EmbeddedBroker

from .hostile import FaultProxy

pytestmark = pytest.mark.process

RECORDS = 60
WAIT_S_MAX = 100
PARTITIONS = 3
PROTOCOLS: dict[str, dict[str, Any]] = {
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "kip-848": {"group_protocol": "consumer"},
}


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_connections_that_are_cut_lose_nothing(name: str) -> None:
    """Cut after ever more bytes, so within every kind of answer: each record is read, perhaps twice, and in order."""
    with FaultProxy(slice_bytes=211) as proxy:
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": f"PLAINTEXT://{proxy.address}",
            "group.consumer.heartbeat.interval.ms": "100",
        }
        with EmbeddedBroker(config=settings) as broker:
            host, _, port = broker.bootstrap_servers.rpartition(":")
            proxy.broker = (host, int(port))
            topic = "orders"
            with Producer(proxy.address) as producer:
                for number in range(RECORDS):
                    producer.send(topic, b"%d" % number, partition=0)
            proxy.cuts = [130 * step for step in range(1, 13)]
            assert _read_all(proxy.address, topic, PROTOCOLS[name]) == set(range(RECORDS))


def _read_all(servers: str, topic: str, options: dict[str, Any]) -> set[int]:
    read: set[int] = set()
    with Consumer(
        topic,
        bootstrap_servers=servers,
        group_id="g",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=50,
        session_timeout_ms=30_000,
        fetch_max_wait_ms=50,
        max_poll_records=7,
        **options,
    ) as consumer:
        last, give_up_s = -1, time.monotonic() + WAIT_S_MAX
        while time.monotonic() < give_up_s:
            try:
                records = consumer.poll(timeout_ms=100)
            except ClientError:
                continue  # a broker that is not reached at first is reported at once
            for record in records:
                assert record.offset <= last + 1, "a record was left out"
                last = record.offset
                read.add(int(record.value))
            if len(read) == RECORDS and not records:
                break
    return read
