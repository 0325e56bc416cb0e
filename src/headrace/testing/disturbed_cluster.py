"""The further parts of a cluster with a seed: proxies between the brokers, disks that can be slow, planned faults."""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

from headrace.operations.local_nodes import LocalNode
from headrace.testing.fault_schedule import FaultKind, PlannedFault
from headrace.testing.link_proxies import Link, LinkProxies
from headrace.testing.slow_disk import write_delay

SLOW_DISK_MODULE = "headrace.testing.slow_disk"


class FaultyHosts:
    """The links and disks of the brokers; the other brokers know each one by the address of its proxy."""

    def __init__(self, nodes: Mapping[int, LocalNode], new_port: Callable[[], int]) -> None:
        self._nodes = nodes
        self._ports = {node_id: new_port() for node_id in nodes}
        self._proxies = LinkProxies()

    def close(self) -> None:
        self._proxies.close()

    # Processes

    def as_seen_by(self, node: LocalNode) -> list[LocalNode]:
        """Return all nodes, the others with the ports of their proxies."""
        return [
            other if other is node else other._replace(cluster_port=self._ports[node_id])
            for node_id, other in self._nodes.items()
        ]

    def configs(self, node: LocalNode) -> dict[str, str]:
        proxy = f"{node.host}:{self._ports[node.node_id]}"
        return {"advertised.listeners": f"PLAINTEXT://{node.address},CONTROLLER://{proxy}"}

    def command(self, node: LocalNode, command: Sequence[str]) -> list[str]:
        """Return the command of a broker whose disk can be slow, made of that of a usual one."""
        python, _module_option, _module, *words = command
        return [python, "-m", SLOW_DISK_MODULE, _delay_file(node), *words]

    def started(self, node: LocalNode) -> None:
        proxied = self._ports[node.node_id]
        self._proxies.accept(node.node_id, node.host, port=proxied, target_port=node.cluster_port)

    def ended(self, node: LocalNode) -> None:
        self._proxies.refuse(node.node_id)

    # Faults

    def begin(self, fault: PlannedFault) -> None:
        """Begin a fault of the links or the disk of a broker."""
        if fault.kind is FaultKind.SLOW_DISK:
            write_delay(_delay_file(self._nodes[fault.node_id]), fault.delay_ms)
        elif fault.kind in (FaultKind.CUT, FaultKind.ONE_WAY_CUT):
            self._proxies.cut(self._links(fault))

    def end(self, fault: PlannedFault) -> None:
        if fault.kind is FaultKind.SLOW_DISK:
            write_delay(_delay_file(self._nodes[fault.node_id]), 0)
        elif fault.kind in (FaultKind.CUT, FaultKind.ONE_WAY_CUT):
            self._proxies.cut(())

    def _links(self, fault: PlannedFault) -> list[Link]:
        both = [link for link in permutations(self._nodes, 2) if fault.node_id in link]
        return both if fault.kind is FaultKind.CUT else [link for link in both if link[0] == fault.node_id]


def _delay_file(node: LocalNode) -> str:
    return f"{node.folder}.delay"
