"""The replica from which a consumer should read: one in its rack that has what it asks for (KIP-392)."""

from collections.abc import Callable

from headrace.broker.partitions.reader import WantedRead, locate
from headrace.broker.partitions.replica import Replica
from headrace.broker.services import FetchServices
from headrace.core.replication.leader import Leader
from headrace.model.ids import NO_NODE, NodeId


def nearest_replica(services: FetchServices, rack: bytes, listener: str) -> Callable[[WantedRead], NodeId] | None:
    """Return the choice for a client of this rack; None if this broker is in it, or no other one is.

    Only brokers that have an address at the client's listener count.
    """
    name = rack.decode(errors="replace")
    image, own = services.image, services.config.node_id
    in_rack = frozenset(node for node, _ in image.endpoints(listener) if image.brokers[node].rack == name)
    if own in in_rack or not in_rack:
        return None

    def choose(wanted: WantedRead) -> NodeId:
        partition = locate(wanted)
        role = partition.role if isinstance(partition, Replica) else None
        if isinstance(role, Leader) and wanted.leader_epoch in (-1, role.leader_epoch):
            for node in role.replicas_with(wanted.offset):
                if node in in_rack:
                    return node
        return NO_NODE

    return choose
