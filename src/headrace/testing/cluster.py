"""A whole cluster for a test: brokers as processes of their own, which the test can kill, pause and start again."""

import atexit
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headrace.model.ids import NO_NODE
from headrace.operations.local_nodes import (
    LOOK_SECONDS,
    LocalNode,
    NodeProcess,
    controllers_for,
    node_command,
    share_key,
    wait_until_formed,
    wait_until_ready,
)
from headrace.ports.real.held_ports import held_port
from headrace.ports.real.processes import stop
from headrace.testing.disturbance import Disturbance
from headrace.testing.embedded import START_MS_MAX, STOP_MS_MAX, TEST_DEFAULTS
from headrace.testing.fault_schedule import FaultKind, PlannedFault, planned_faults
from headrace.testing.private_folders import make_private_folder, remove_private_folder
from headrace.testing.topic_calls import TopicCalls

if TYPE_CHECKING:
    from headrace.client import TopicDescription
    from headrace.testing.disturbed_cluster import FaultyHosts

KNOWN_SECONDS_MAX = 30
"""Time in which a new topic reaches the metadata of every broker."""
HEALED_SECONDS_MAX = 120
"""Time in which all replicas are in sync again after the last fault."""

CLUSTER_DEFAULTS: Mapping[str, str] = {
    **{name: text for name, text in TEST_DEFAULTS.items() if name != "listeners"},
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}
"""Configs of a cluster for tests; its coordinators are spread over the brokers."""


def _is_served(topic: "TopicDescription") -> bool:
    return not topic.error and all(partition.leader != NO_NODE for partition in topic.partitions)


class EmbeddedCluster(TopicCalls):
    """Brokers 1 to `brokers`, each a process; pass Kafka's property names in `config`.

    `controllers` is the number of voters of the metadata quorum: 3, or 1 if there are fewer brokers. With `data_dir`
    the data outlives the cluster. The brokers stop with the test's process, however it ends. With a `seed`, `disturbed`
    inflicts faults in the order that the seed fixes.
    """

    def __init__(
        self,
        *,
        brokers: int = 3,
        controllers: int | None = None,
        data_dir: str | None = None,
        config: Mapping[str, str] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.seed = seed
        self.inflicted: list[PlannedFault] = []
        """The faults of `disturbed` so far."""
        self._hosts: FaultyHosts | None = None
        self._changes = threading.RLock()
        """Held while processes are started or ended."""
        self._brokers = brokers
        self._controllers = controllers or controllers_for(brokers)
        self._data_dir = data_dir
        self._configs = {**CLUSTER_DEFAULTS, **(config or {})}
        self._folder: str | None = None
        self._nodes: dict[int, LocalNode] = {}
        self._processes: dict[int, NodeProcess] = {}
        self._ports = ExitStack()

    # Start and stop

    def start(self) -> Self:
        """Start all brokers and return when they form the cluster."""
        assert not self._nodes, "this cluster is already running"
        folder = self._data_dir
        if folder is None:
            folder = self._folder = make_private_folder()
        atexit.register(self.stop)
        for node_id in range(1, self._brokers + 1):
            self._nodes[node_id] = self._node(node_id, f"{folder}/broker-{node_id}")
        if self.seed is not None:
            from headrace.testing.disturbed_cluster import FaultyHosts

            self._hosts = FaultyHosts(self._nodes, self._held_port)
        try:
            share_key(tuple(self._nodes.values()))
            self._launch(*self._nodes)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all brokers cleanly and remove a private folder; may be called twice."""
        processes, self._processes = self._processes, {}
        for each in processes.values():
            each.process.send_signal(signal.SIGCONT)  # a paused one cannot stop
            each.process.terminate()
        for each in processes.values():
            # Not `stop`, whose second signal would end a broker at once.
            try:
                each.process.wait(STOP_MS_MAX / 1000)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()
            each.release()
        hosts, self._hosts = self._hosts, None
        if hosts is not None:
            hosts.close()
        self._nodes = {}
        self._ports.close()
        atexit.unregister(self.stop)
        folder, self._folder = self._folder, None
        if folder is not None:
            remove_private_folder(folder)

    def _node(self, node_id: int, folder: str) -> LocalNode:
        return LocalNode(node_id, self._held_port(), self._held_port(), folder)

    def _held_port(self) -> int:
        """Reserve a port until the cluster stops, so that a broker that is started again gets it again."""
        return int(self._ports.enter_context(held_port()).getsockname()[1])

    def _launch(self, *node_ids: int) -> None:
        commands = {node_id: self._command(self._nodes[node_id]) for node_id in node_ids}
        for node_id, command in commands.items():
            if self._hosts is not None:
                self._hosts.started(self._nodes[node_id])
            self._processes[node_id] = NodeProcess(self._nodes[node_id], command, stops_with_starter=True)
        wait_until_ready([self._processes[node_id] for node_id in node_ids], seconds_max=START_MS_MAX / 1000)
        running = [self._nodes[node_id] for node_id in self._processes]
        wait_until_formed(running, controllers=self._voters_expected(), seconds_max=START_MS_MAX / 1000)

    def _command(self, node: LocalNode) -> list[str]:
        hosts, configs = self._hosts, self._configs
        if hosts is None:
            return node_command(node, tuple(self._nodes.values()), controllers=self._controllers, configs=configs)
        configs = {**hosts.configs(node), **configs}
        command = node_command(node, hosts.as_seen_by(node), controllers=self._controllers, configs=configs)
        return hosts.command(node, command)

    def _voters_expected(self) -> int:
        return min(self._controllers, len(self._nodes))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # Use

    @property
    def bootstrap_servers(self) -> str:
        assert self._nodes, "start the cluster first: `with EmbeddedCluster() as cluster:`"
        return ",".join(node.address for node in self._nodes.values())

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(self._nodes)

    def address(self, node_id: int) -> str:
        """Return HOST:PORT of one broker."""
        return self._nodes[node_id].address

    def process_id(self, node_id: int) -> int:
        return self._running(node_id).process.pid

    def active_controller(self) -> int:
        """Return the node id of the active controller."""
        with self._admin() as admin:
            return admin.quorum().leader

    def leader(self, topic: str, partition: int) -> int:
        """Return the node id of the leader of a partition; -1 if it has none."""
        with self._admin() as admin:
            (described,) = admin.topics([topic])
        return described.partitions[partition].leader

    def in_sync(self, topic: str, partition: int) -> tuple[int, ...]:
        """Return the node ids of the in-sync replicas of a partition."""
        with self._admin() as admin:
            (described,) = admin.topics([topic])
        return tuple(described.partitions[partition].isr)

    def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic and return its name when every broker that runs knows it and its leaders.

        `replicas` is the number of brokers that keep each partition.
        """
        super().create_topic(name, partitions=partitions, replicas=replicas, configs=configs)
        for node_id in tuple(self._processes):
            self._wait_until_known(name, node_id)
        return name

    def _wait_until_known(self, topic: str, node_id: int) -> None:
        from headrace.client import Admin

        deadline = time.monotonic() + KNOWN_SECONDS_MAX
        with Admin(self.address(node_id)) as admin:
            while not _is_served(admin.topics([topic])[0]):
                if time.monotonic() > deadline:
                    raise RuntimeError(f'broker {node_id} does not know topic "{topic}" after {KNOWN_SECONDS_MAX} s')
                time.sleep(LOOK_SECONDS)

    # Faults

    def kill(self, node_id: int) -> None:
        """Kill a broker with SIGKILL, as a crash does."""
        with self._changes:
            each = self._running(node_id)
            each.process.kill()
            self._forget(node_id, each)

    def shut_down(self, node_id: int) -> None:
        """Stop a broker cleanly."""
        with self._changes:
            each = self._running(node_id)
            stop(each.process, STOP_MS_MAX / 1000)
            self._forget(node_id, each)

    def pause(self, node_id: int) -> None:
        """Stop the execution of a broker with SIGSTOP; its connections stay open."""
        self._running(node_id).process.send_signal(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        """Continue a paused broker."""
        self._running(node_id).process.send_signal(signal.SIGCONT)

    def restart(self, *node_ids: int) -> None:
        """Start brokers that were killed or shut down; one that runs is shut down first. Returns when they serve."""
        with self._changes:
            for node_id in node_ids:
                if node_id in self._processes:
                    self.shut_down(node_id)
            self._launch(*node_ids)

    @contextmanager
    def disturbed(self) -> Iterator[None]:
        """Inflict the faults of the seed, one after the other, while the block runs.

        At the end the cluster is healed: all brokers run, and all replicas are in sync again.
        """
        if self.seed is None:
            raise ValueError("the order of the faults needs a seed: EmbeddedCluster(seed=1)")
        disturbance = Disturbance(self, planned_faults(self.seed, self.node_ids), self.inflicted.append)
        disturbance.start()
        try:
            yield
        finally:
            disturbance.stop()
        self._wait_until_healed()

    def begin_fault(self, fault: PlannedFault) -> None:
        """Begin one fault, as `disturbed` does."""
        assert self._hosts is not None, "start the cluster, with a seed, first"
        if fault.kind is FaultKind.KILL:
            self.kill(fault.node_id)
        elif fault.kind is FaultKind.PAUSE:
            self.pause(fault.node_id)
        else:
            self._hosts.begin(fault)

    def end_fault(self, fault: PlannedFault) -> None:
        """End one fault; a broker that was killed serves again afterwards."""
        assert self._hosts is not None, "start the cluster, with a seed, first"
        if fault.kind is FaultKind.KILL:
            self.restart(fault.node_id)
        elif fault.kind is FaultKind.PAUSE:
            self.resume(fault.node_id)
        else:
            self._hosts.end(fault)

    def _wait_until_healed(self) -> None:
        wait_until_formed(
            list(self._nodes.values()), controllers=self._voters_expected(), seconds_max=START_MS_MAX / 1000
        )
        deadline = time.monotonic() + HEALED_SECONDS_MAX
        while lacking := self._out_of_sync():
            if time.monotonic() > deadline:
                raise RuntimeError(f"not in sync {HEALED_SECONDS_MAX} s after the last fault: {', '.join(lacking)}")
            time.sleep(LOOK_SECONDS)

    def _out_of_sync(self) -> list[str]:
        with self._admin() as admin:
            return [
                f"{topic.name}-{each.partition}"
                for topic in admin.topics()
                for each in topic.partitions
                if len(each.isr) < len(each.replicas)
            ]

    def _forget(self, node_id: int, each: NodeProcess) -> None:
        if self._hosts is not None:
            self._hosts.ended(each.node)
        each.process.wait()
        each.release()
        del self._processes[node_id]

    def _running(self, node_id: int) -> NodeProcess:
        if node_id not in self._nodes:
            raise ValueError(f"broker {node_id} is not one of {', '.join(map(str, self._nodes))}")
        if node_id not in self._processes:
            raise ValueError(f"broker {node_id} does not run: restart({node_id}) starts it")
        return self._processes[node_id]
