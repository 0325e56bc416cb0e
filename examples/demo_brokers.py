"""The brokers of the demo: one, or a cluster of which a leader is killed half-way and returns."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import demo_group

from headrace import Admin
from headrace.client import NewTopic
from headrace.testing import EmbeddedCluster

BROKERS_DEFAULT = 3
REPLICAS_MAX = 3
START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 20
IN_SYNC_SECONDS_MAX = 60
LOOK_SECONDS = 0.02


class DemoFailure(Exception):
    """An error message for the user of `make demo`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Resources that processes have used so far; zeros where the system has no /proc."""

    cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    memory_peak_mb: float = 0.0


def _cost_of_process(pid: int) -> Cost:
    process = Path("/proc") / str(pid)
    if not process.is_dir():
        return Cost()
    ticks = process.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
    status = dict(line.split(":", 1) for line in process.joinpath("status").read_text().splitlines())
    return Cost(
        cpu_seconds=sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
        memory_mb=int(status["VmRSS"].split()[0]) / 1024,
        memory_peak_mb=int(status["VmHWM"].split()[0]) / 1024,
    )


class Brokers:
    """One broker; nothing can be killed without an outage."""

    count = 1

    def __init__(self, bootstrap: str, pids: Sequence[int]) -> None:
        self.bootstrap = bootstrap
        self._pids = list(pids)

    @property
    def pids(self) -> list[int]:
        return self._pids

    def cost(self) -> Cost:
        costs = [_cost_of_process(pid) for pid in self.pids]
        return Cost(
            cpu_seconds=sum(cost.cpu_seconds for cost in costs),
            memory_mb=sum(cost.memory_mb for cost in costs),
            memory_peak_mb=sum(cost.memory_peak_mb for cost in costs),
        )

    @property
    def replicas(self) -> int:
        return min(self.count, REPLICAS_MAX)

    @property
    def survives_a_kill(self) -> bool:
        return self.replicas == REPLICAS_MAX

    def create_topics(self, *names: str, partitions: int) -> None:
        with Admin(self.bootstrap) as admin:
            outcomes = admin.create_topics([NewTopic(name, partitions, self.replicas) for name in names])
        for name, outcome in outcomes.items():
            outcome.check(f"topic {name}")


class ClusterBrokers(Brokers):
    def __init__(self, cluster: EmbeddedCluster) -> None:
        super().__init__(cluster.bootstrap_servers, [])
        self.count = len(cluster.node_ids)
        self._cluster = cluster
        self._victim = 0
        self._ended_cpu_seconds = 0.0

    @property
    def pids(self) -> list[int]:
        return [self._cluster.process_id(node_id) for node_id in self._cluster.node_ids if node_id != self._victim]

    def cost(self) -> Cost:
        running = super().cost()
        return Cost(
            cpu_seconds=running.cpu_seconds + self._ended_cpu_seconds,
            memory_mb=running.memory_mb,
            memory_peak_mb=running.memory_peak_mb,
        )

    def kill_leader(self, topic: str) -> int:
        """Kill the leader of the topic's first partition with SIGKILL and return its node id."""
        victim = self._cluster.leader(topic, 0)
        self._ended_cpu_seconds += _cost_of_process(self._cluster.process_id(victim)).cpu_seconds
        self._cluster.kill(victim)
        self._victim = victim
        return victim

    def bring_back(self) -> float:
        """Start the victim again; return after how many seconds all replicas are in sync."""
        began = time.monotonic()
        self._cluster.restart(self._victim)
        self._victim = 0
        with Admin(self.bootstrap) as admin:
            while any(len(each.isr) < len(each.replicas) for topic in admin.topics() for each in topic.partitions):
                if time.monotonic() > began + IN_SYNC_SECONDS_MAX:
                    raise DemoFailure(f"the replicas are not in sync after {IN_SYNC_SECONDS_MAX} s")
                time.sleep(LOOK_SECONDS)
        return time.monotonic() - began


@contextmanager
def running_brokers(folder: Path, count: int) -> Iterator[Brokers]:
    """Run brokers on free loopback ports."""
    if count == 1:
        with _running_broker(folder) as broker:
            yield broker
        return
    configs = dict(setting.split("=", 1) for setting in demo_group.BROKER_SETTINGS)
    with EmbeddedCluster(brokers=count, data_dir=str(folder / "data"), config=configs) as cluster:
        yield ClusterBrokers(cluster)


@contextmanager
def _running_broker(folder: Path) -> Iterator[Brokers]:
    """Run a broker process on a free loopback port; it is stopped by its process id at the end."""
    command = [str(Path(sys.executable).with_name("headrace")), "broker", "--listen", "127.0.0.1:0"]
    for setting in demo_group.BROKER_SETTINGS:
        command += ["--set", setting]
    log = folder / "broker.log"
    with log.open("w") as errors:
        broker = subprocess.Popen(
            [*command, "--data-dir", str(folder / "data")], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert broker.stdout is not None
    try:
        first_line = broker.stdout.readline().strip()
        if not first_line.startswith("headrace listening on "):
            broker.wait(START_SECONDS_MAX)
            raise DemoFailure(f"the broker did not start:\n{first_line}\n{log.read_text()}")
        yield Brokers(first_line.rpartition(" ")[2], [broker.pid])
    finally:
        broker.terminate()
        try:
            broker.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            broker.kill()
            broker.wait()
        broker.stdout.close()
