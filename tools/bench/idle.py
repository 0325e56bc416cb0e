"""Idle loads: memory per connection and per partition, and a start with many partitions."""

import resource
import time
from collections.abc import Callable
from pathlib import Path

from headrace.bench.brokers import BrokerProcess, MeasuredBroker
from headrace.bench.errors import BenchError
from headrace.bench.figures import Round
from headrace.bench.links import BenchConnection
from headrace.bench.topics import create_topics, wait_until_served
from headrace.wire.messages import api_versions

API_VERSIONS_VERSION = 3
PARTITIONS_PER_TOPIC = 100
SPARE_DESCRIPTORS = 200
SETTLE_SECONDS = 1.0
"""Delay before memory is read, so that earlier work has ended."""

MEGABYTE = 1_000_000


class ConnectionRounds:
    """Rounds of `connections_round`, each on a restarted broker, because a process reuses its memory."""

    def __init__(self, broker: MeasuredBroker, *, connections: int) -> None:
        self._broker = broker
        self._connections = connections
        self._is_used = False

    def __call__(self) -> Round:
        if self._is_used:
            assert isinstance(self._broker, BrokerProcess), "a running broker is measured once"
            self._broker.stop()
            self._broker.start()
        self._is_used = True
        return connections_round(self._broker, connections=self._connections)


class PartitionRounds:
    """Rounds of `partitions_round`, each on a new broker."""

    def __init__(self, make_broker: Callable[[Path], BrokerProcess], folder: Path, *, partitions: int) -> None:
        self._make_broker = make_broker
        self._folder = folder
        self._partitions = partitions
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        with self._make_broker(self._folder / f"partitions-{self._round}").start() as broker:
            return partitions_round(broker, partitions=self._partitions)


def connections_round(broker: MeasuredBroker, *, connections: int) -> Round:
    """Measure the memory of connections that have sent one request each and are idle."""
    allow_descriptors(connections + SPARE_DESCRIPTORS)
    before = _settled_bytes(broker)
    links: list[BenchConnection] = []
    request = api_versions.ApiVersionsRequest(client_software_name="headrace-bench", client_software_version="1")
    try:
        for _ in range(connections):
            links.append(BenchConnection(broker.address))
            links[-1].call(api_versions, request, API_VERSIONS_VERSION)
        after = _settled_bytes(broker)
    finally:
        for link in links:
            link.close()
    return {"idle_megabytes": before / MEGABYTE, "kilobytes_per_connection": (after - before) / 1000 / connections}


def partitions_round(broker: BrokerProcess, *, partitions: int) -> Round:
    """Measure the memory of partitions, and the time to serve all of them after a clean stop."""
    before = _settled_bytes(broker)
    names = [f"many-{number}" for number in range(partitions // PARTITIONS_PER_TOPIC)]
    create_topics(broker.address, names, partitions=PARTITIONS_PER_TOPIC)
    after = _settled_bytes(broker)
    broker.stop()
    began = time.monotonic()
    broker.start()
    metadata_seconds = time.monotonic() - began
    wait_until_served(broker.address, names, partitions=PARTITIONS_PER_TOPIC)
    return {
        "idle_megabytes": before / MEGABYTE,
        "grown_megabytes": (after - before) / MEGABYTE,
        "metadata_seconds": metadata_seconds,
        "ready_seconds": time.monotonic() - began,
    }


def allow_descriptors(count: int) -> None:
    """Raise the limit of open files as needed; raise BenchError if the hard limit is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    if hard < count:
        raise BenchError(f"{count} connections need as many open files, but the hard limit is {hard}: raise ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def _settled_bytes(broker: MeasuredBroker) -> int:
    time.sleep(SETTLE_SECONDS)
    resident = broker.resident_bytes()
    if resident is None:
        raise BenchError("the memory of a broker can be measured only with its process id: give --broker-pid")
    return resident
