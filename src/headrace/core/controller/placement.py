"""Place the replicas of new partitions: spread over machines first, over brokers second."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from headrace.core.controller.commands import Refused
from headrace.core.controller.image import BrokerImage
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId


def place_replicas(
    brokers: Iterable[BrokerImage], *, partition_count: int, replication_factor: int, start: int
) -> list[tuple[NodeId, ...]]:
    """Return one replica list per partition, its first member the preferred leader; `start` rotates the first one."""
    ring = _interleaved_by_host(brokers)
    if replication_factor > len(ring):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs more brokers than the {len(ring)} in the cluster",
        )
    rounds = [_walk(ring, start + index, replication_factor) for index in range(min(partition_count, len(ring)))]
    return [rounds[index % len(rounds)] for index in range(partition_count)]


def _interleaved_by_host(brokers: Iterable[BrokerImage]) -> list[BrokerImage]:
    hosts: dict[str, list[BrokerImage]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.node_id):
        hosts.setdefault(broker.host, []).append(broker)
    rounds = zip_longest(*hosts.values())
    return [broker for one_of_each_host in rounds for broker in one_of_each_host if broker is not None]


def _walk(ring: Sequence[BrokerImage], start: int, count: int) -> tuple[NodeId, ...]:
    """Return the next `count` brokers of the ring, those on unused machines first."""
    turned = [ring[(start + step) % len(ring)] for step in range(len(ring))]
    seen: set[str] = set()
    fresh: list[NodeId] = []
    repeated: list[NodeId] = []
    for broker in turned:
        (repeated if broker.host in seen else fresh).append(broker.node_id)
        seen.add(broker.host)
    return tuple((fresh + repeated)[:count])
