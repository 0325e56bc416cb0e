"""Brokers of a cluster with the partitions that they lead and the disk space that they use."""

from collections import Counter
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.client.types import Broker, LogDirDescription
from headrace.model.ids import NO_NODE

UNKNOWN = -1
"""The size of a broker that does not answer."""


class BrokerUsage(NamedTuple):
    broker: Broker
    leads: int
    """Partitions that it leads."""
    log_dirs: tuple[LogDirDescription, ...]
    """Empty if the broker does not answer."""

    @property
    def size_bytes(self) -> int:
        if not self.log_dirs:
            return UNKNOWN
        return sum(replica.size_bytes for folder in self.log_dirs for replica in folder.replicas)


class ClusterUsage(NamedTuple):
    cluster_id: str | None
    topics: int
    partitions: int
    partitions_without_leader: int
    brokers: tuple[BrokerUsage, ...]
    """All registered ones."""


def cluster_usage(admin: Admin) -> ClusterUsage:
    cluster = admin.cluster(include_fenced=True)
    topics = admin.topics()
    led = Counter(partition.leader for topic in topics for partition in topic.partitions)
    brokers = tuple(BrokerUsage(each, led[each.node_id], _log_dirs(admin, each)) for each in cluster.brokers)
    return ClusterUsage(cluster.cluster_id, len(topics), led.total(), led[NO_NODE], brokers)


def _log_dirs(admin: Admin, broker: Broker) -> tuple[LogDirDescription, ...]:
    """Return the log directories of a broker; none if it does not answer."""
    try:
        return () if broker.is_fenced else admin.log_dirs([broker.node_id])
    except ClientError:
        return ()
