"""State that the parts of a cluster's run share."""

from collections.abc import Sequence

from headrace.model.ids import TopicPartition
from headrace.sim.cluster.brokers import VirtualCluster
from headrace.sim.cluster.records import RecordsHistory
from headrace.sim.world import World


class ClusterContext:
    def __init__(self, world: World, cluster: VirtualCluster, places: Sequence[TopicPartition]) -> None:
        self.world = world
        self.cluster = cluster
        self.places = tuple(places)
        """The partitions that applications write to and read."""
        self.history = RecordsHistory()
