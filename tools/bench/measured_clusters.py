"""Clusters to measure: three brokers of Headrace, of one of its commits, or of Apache Kafka, each a process."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from headrace.bench import processes
from headrace.bench.brokers import (
    HEADRACE,
    SHARED_SETTINGS,
    START_SECONDS_MAX,
    BrokerProcess,
    HeadraceBroker,
    MeasuredBroker,
    free_ports,
)
from headrace.bench.errors import BenchError
from headrace.bench.topics import ADMIN_TIMEOUT_MS, LOOK_AGAIN_SECONDS
from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.operations.local_nodes import LocalNode, node_command, share_key
from tools.bench.kafka import KAFKA_NAME, KafkaBroker, new_cluster_id

BROKERS = 3


class MeasuredCluster(MeasuredBroker):
    """Brokers by node id; the CPU is that of all of them."""

    def __init__(self, name: str, brokers: Mapping[int, BrokerProcess]) -> None:
        super().__init__(name)
        self.brokers = brokers

    def start(self) -> Self:
        """Start all brokers, and return when they know each other."""
        try:
            with ThreadPoolExecutor(len(self.brokers)) as pool:
                for _started in pool.map(lambda broker: broker.start(), self.brokers.values()):
                    pass
            self.address = ",".join(broker.address for broker in self.brokers.values())
            self._wait_until_registered()
        except BaseException:
            self.stop()
            raise
        return self

    def _wait_until_registered(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                with Admin(self.address, timeout_ms=ADMIN_TIMEOUT_MS) as admin:
                    if len(admin.cluster().brokers) == len(self.brokers):
                        return
            except ClientError:
                pass  # the quorum has no leader yet
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name}: {len(self.brokers)} brokers do not form a cluster")
            time.sleep(LOOK_AGAIN_SECONDS)

    def stop(self) -> None:
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            for _stopped in pool.map(lambda broker: broker.stop(), self.brokers.values()):
                pass

    def cpu_seconds(self) -> float:
        return sum(broker.cpu_seconds() or 0.0 for broker in self.brokers.values())

    def folders(self) -> dict[int, Path]:
        """Return the data folder of each broker."""
        return {node_id: broker.folder for node_id, broker in self.brokers.items() if broker.folder is not None}


class _ClusterBroker(HeadraceBroker):
    """One broker of a cluster on this machine, perhaps with the source of another commit."""

    def __init__(self, folder: Path, command: Sequence[str], source: Path | None) -> None:
        super().__init__(folder)
        self._command = command
        self._environment = {} if source is None else {"PYTHONPATH": str(source)}

    def _spawn(self) -> subprocess.Popen[bytes]:
        return processes.start(
            self._command, messages=self.messages, stdout=subprocess.PIPE, environment=self._environment
        )


def headrace_cluster(folder: Path, *, name: str = HEADRACE, source: Path | None = None) -> MeasuredCluster:
    """Return three brokers that found a cluster when they start; `source` is the `src` of another commit."""
    ports = free_ports(2 * BROKERS)
    folders = {node_id: folder / f"broker-{node_id}" for node_id in range(1, BROKERS + 1)}
    nodes = [
        LocalNode(node_id, ports[node_id - 1], ports[BROKERS + node_id - 1], str(place / "data"))
        for node_id, place in folders.items()
    ]
    share_key(nodes)
    commands = [node_command(node, nodes, controllers=BROKERS, configs=SHARED_SETTINGS) for node in nodes]
    return MeasuredCluster(
        name,
        {
            node.node_id: _ClusterBroker(folders[node.node_id], command, source)
            for node, command in zip(nodes, commands, strict=True)
        },
    )


def kafka_cluster(folder: Path) -> MeasuredCluster:
    """Return three nodes of Apache Kafka, each a broker and a controller."""
    ports = free_ports(BROKERS)
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in enumerate(ports, 1))
    cluster_id = new_cluster_id()
    brokers = {
        node_id: KafkaBroker(
            folder / f"broker-{node_id}",
            {
                "node.id": str(node_id),
                "controller.quorum.voters": voters,
                "offsets.topic.replication.factor": str(BROKERS),
                "transaction.state.log.replication.factor": str(BROKERS),
                "transaction.state.log.min.isr": "2",
            },
            cluster_id=cluster_id,
            controller_port=port,
        )
        for node_id, port in enumerate(ports, 1)
    }
    return MeasuredCluster(KAFKA_NAME, brokers)
