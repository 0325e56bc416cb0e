"""Place the replicas of new partitions: evenly over hosts, then racks, then brokers.

Each partition's preferred leader is on the host that has the fewest preferred leaders of the topic; of those, the one
that has the fewest of all topics, so that successive topics continue where the earlier ones ended. Hosts that are equal
alternate between racks. The same rules choose the broker of the host. Further replicas avoid hosts that already have
one, then brokers that are fenced or impaired, then racks: a broker that restarts gets its replicas although it cannot
lead now.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from headrace.core.controller.broker_image import BrokerImage
from headrace.core.controller.commands import Refused
from headrace.core.controller.image import MetadataImage
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId

REPLICATION_FACTOR_MAX = 127
"""Replicas of one partition."""

DEFAULT_REPLICATION_FACTOR = 3
"""Replicas of the partitions of a new topic if neither the topic nor the cluster says otherwise, with a host each."""


class _Place(NamedTuple):
    """The rank of a host or broker; the lowest gets the next partition."""

    of_topic: int
    of_all: int
    order: int
    """The place among equals."""

    def taken(self) -> "_Place":
        return _Place(self.of_topic + 1, self.of_all + 1, self.order)


class Placement:
    """Places partitions on the brokers of one image, and counts what it has placed."""

    def __init__(self, brokers: Iterable[BrokerImage], preferred_leaders: Mapping[NodeId, int]) -> None:
        registered = sorted(brokers, key=lambda broker: broker.node_id)
        running = [broker for broker in registered if broker.takes_partitions]
        available = [broker for broker in running if not broker.impaired] or running
        self._hosts = _alternating_racks(available)
        self._available = frozenset(broker.node_id for broker in available)
        self._unavailable = [broker for broker in registered if broker.node_id not in self._available]
        self._broker_count = len(registered)
        self._preferred = {broker.node_id: preferred_leaders.get(broker.node_id, 0) for broker in available}

    def place(
        self, partition_count: int, replication_factor: int, existing: Mapping[NodeId, int] | None = None
    ) -> list[tuple[NodeId, ...]]:
        """Return one replica list per partition, its first member the preferred leader.

        `existing` counts the partitions that the topic has already by their preferred leaders.
        """
        if replication_factor > self._broker_count:
            raise Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"replication factor {replication_factor} needs more brokers than the {self._broker_count} that are "
                "registered: request fewer replicas, or start more brokers",
            )
        if not self._hosts:
            raise Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"all {self._broker_count} brokers are fenced or shutting down, so that none can lead new partitions: "
                "start one",
            )
        leaders = self._leaders(partition_count, existing or {})
        for _, broker in leaders:
            self._preferred[broker.node_id] += 1
        return [self._replicas(host, broker, replication_factor) for host, broker in leaders]

    def _leaders(self, count: int, existing: Mapping[NodeId, int]) -> list[tuple[int, BrokerImage]]:
        """Return the host number and the broker of each partition's preferred leader."""
        hosts: list[_Place] = []
        brokers: list[list[_Place]] = []
        for number, host in enumerate(self._hosts):
            places = [
                _Place(existing.get(broker.node_id, 0), self._preferred[broker.node_id], order)
                for order, broker in enumerate(host)
            ]
            hosts.append(_Place(sum(p.of_topic for p in places), sum(p.of_all for p in places), number))
            heapify(places)
            brokers.append(places)
        heapify(hosts)
        leaders: list[tuple[int, BrokerImage]] = []
        for _ in range(count):
            host_place = hosts[0]
            number = host_place.order
            heapreplace(hosts, host_place.taken())
            broker_place = brokers[number][0]
            heapreplace(brokers[number], broker_place.taken())
            leaders.append((number, self._hosts[number][broker_place.order]))
        return leaders

    def _replicas(self, number: int, leader: BrokerImage, count: int) -> tuple[NodeId, ...]:
        """Return the leader and further brokers: on other hosts, available and in other racks, in this order."""
        if count == 1:
            return (leader.node_id,)
        chosen = [leader]
        turned = [*self._hosts[number + 1 :], *self._hosts[: number + 1], self._unavailable]
        while len(chosen) < count:
            hosts, racks = {broker.host for broker in chosen}, {broker.rack for broker in chosen}
            chosen.append(
                min(
                    (broker for host in turned for broker in host if broker not in chosen),
                    key=lambda broker: (
                        broker.host in hosts,
                        broker.node_id not in self._available,
                        not broker.takes_partitions,
                        broker.rack in racks,
                    ),
                )
            )
        return tuple(broker.node_id for broker in chosen)


def _alternating_racks(brokers: Sequence[BrokerImage]) -> list[list[BrokerImage]]:
    """Return the brokers of each host; hosts of different racks take turns."""
    hosts: dict[str, list[BrokerImage]] = {}
    for broker in brokers:
        hosts.setdefault(broker.host, []).append(broker)
    in_rack: dict[str | None, int] = {}
    turns: list[tuple[int, list[BrokerImage]]] = []
    for host in hosts.values():
        turn = in_rack[host[0].rack] = in_rack.get(host[0].rack, -1) + 1
        turns.append((turn, host))
    return [host for _, host in sorted(turns, key=lambda each: each[0])]


def internal_replication_factor(image: MetadataImage, wanted: int) -> int:
    """Return the replicas of an internal topic: as many as the operator wants, if there are hosts for them."""
    if not image.replicates:
        return 1
    return max(1, min(wanted, failure_domains(image.brokers.values()), REPLICATION_FACTOR_MAX))


def failure_domains(brokers: Iterable[BrokerImage]) -> int:
    """Return the number of hosts of the registered brokers: replicas beyond it would share one."""
    return len({broker.host for broker in brokers})
