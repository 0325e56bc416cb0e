"""The power cuts that a cluster must survive although nothing is synced before it is answered.

Its replicas hold what one machine loses. So the power of a machine may be cut when all others have every record: once
they are in sync again after their own power cut, in all partitions.
"""

from headrace.core.controller.image import MetadataImage
from headrace.model.ids import NodeId
from headrace.sim.cluster.brokers import VirtualCluster
from headrace.sim.machine_faults import ARMED_MS_MAX
from headrace.sim.node import VirtualNode

REPLICAS = 3


class PowerLosses:
    def __init__(self, cluster: VirtualCluster, topics: tuple[str, ...]) -> None:
        """`topics` are those with records, besides the internal ones."""
        self._cluster = cluster
        self._topics = topics
        self._last: VirtualNode | None = None
        """The machine that may have lost records last."""
        self._whole_from_ms = 0.0
        """When it has lost its power for sure."""

    def may_cut(self, victim: VirtualNode) -> bool:
        """Return whether the power of a machine may be cut now or soon; the answer yes counts as a cut."""
        now_ms = self._cluster.world.time.now_ms
        if self._last is not None and (now_ms < self._whole_from_ms or not self._is_whole(self._last)):
            return False
        self._last, self._whole_from_ms = victim, now_ms + 2 * ARMED_MS_MAX
        return True

    def _is_whole(self, virtual: VirtualNode) -> bool:
        node = virtual.node
        if node is None or not virtual.serves:
            return False
        images = [other.node.broker.image for other in self._cluster.nodes if other.node is not None]
        image = max(images, key=lambda each: each.version)
        own = image.brokers.get(node.broker.node_id)
        return (
            own is not None
            and own.broker_epoch == node.broker.lifecycle.broker_epoch
            and self._is_in_sync(image, node.broker.node_id)
        )

    def _is_in_sync(self, image: MetadataImage, node_id: NodeId) -> bool:
        for topic in image.topics.values():
            if topic.name in self._topics or topic.name.startswith("__"):
                for state in topic.partitions:
                    if len(state.replicas) < REPLICAS or node_id not in state.isr:
                        return False
        return True
