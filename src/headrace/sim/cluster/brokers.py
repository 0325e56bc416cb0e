"""The brokers of a virtual cluster, each on a machine of its own."""

from collections.abc import Mapping

from headrace.model.ids import NO_NODE
from headrace.sim.node import VirtualNode
from headrace.sim.world import World

CLIENT_PORT, CLUSTER_PORT = 9092, 9093
KEY_PATH = "data/cluster.key"


def host_of(node_id: int) -> str:
    return f"broker{node_id}"


class VirtualCluster:
    """Brokers 1 to N. The first founds the cluster; the others have its key and join."""

    def __init__(self, world: World, brokers: int, settings: Mapping[str, str]) -> None:
        self.world = world
        ids = range(1, brokers + 1)
        self.nodes = [
            VirtualNode(world, {**settings, **_settings(node_id, ids)}, name=host_of(node_id)) for node_id in ids
        ]

    @property
    def bootstrap_servers(self) -> list[str]:
        return [f"{virtual.machine.name}:{CLIENT_PORT}" for virtual in self.nodes]

    @property
    def all_serve(self) -> bool:
        return all(virtual.serves for virtual in self.nodes)

    def trouble(self) -> str:
        """Return what is missing until every broker serves and shows a leader of every partition; empty if nothing."""
        for virtual in self.nodes:
            name = virtual.machine.name
            if not virtual.serves:
                return f"{name} does not serve"
            for topic in virtual.running.broker.image.topics.values():
                for index, state in enumerate(topic.partitions):
                    if state.leader == NO_NODE:
                        return f"{topic.name}-{index} has no leader in the metadata of {name}"
        return ""

    def controller(self) -> tuple[VirtualNode, int] | None:
        """Return the active controller and its term, if there is one."""
        active = [
            (virtual.node.quorum.term, virtual)
            for virtual in self.nodes
            if virtual.node is not None and virtual.node.quorum.is_active
        ]
        if not active:
            return None
        term, virtual = max(active, key=lambda each: each[0])
        return virtual, term

    def hand_out_key(self) -> None:
        """Copy the secret of the founded cluster to the nodes that have none, as an operator does."""
        key = _content(self.nodes[0])
        for virtual in self.nodes[1:]:
            disk = virtual.machine.disk
            disk.make_directory("data")
            file = disk.open(KEY_PATH, create=True)
            disk.write_vector(file, [key], 0)
            disk.data_sync(file)
            disk.close(file)
            disk.sync_directory("data")


def _content(virtual: VirtualNode) -> bytes:
    disk = virtual.machine.disk
    file = disk.open(KEY_PATH)
    try:
        return bytes(disk.read(file, disk.size(file), 0))
    finally:
        disk.close(file)


def _settings(node_id: int, ids: range) -> dict[str, str]:
    host = host_of(node_id)
    own = {
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{CLIENT_PORT}",
        "advertised.listeners": f"PLAINTEXT://{host}:{CLIENT_PORT}",
    }
    if len(ids) == 1:
        return own
    own["listeners"] += f",CONTROLLER://{host}:{CLUSTER_PORT}"
    own["advertised.listeners"] += f",CONTROLLER://{host}:{CLUSTER_PORT}"
    own["headrace.host"] = host
    if node_id != ids[0]:
        own["controller.quorum.bootstrap.servers"] = ",".join(
            f"{host_of(other)}:{CLUSTER_PORT}" for other in ids if other != node_id
        )
    return own
