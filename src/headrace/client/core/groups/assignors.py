"""Assignors of classic groups, run by the group leader: range, round-robin and cooperative-sticky.

Range and sticky are the functions by which the broker assigns KIP-848 groups, with topics by name.
"""

from collections.abc import Callable, Mapping
from itertools import cycle

from headrace.client.core.groups.consumer_protocol import ConsumerProtocolSubscription
from headrace.core.groups.assignors import AssignableMember, AssignedTopic, assign_range, assign_uniform
from headrace.core.groups.consumer_records import Partitions
from headrace.model.ids import TopicPartition

Assignment = dict[str, tuple[TopicPartition, ...]]
Counts = Mapping[str, int]
"""The number of partitions of each topic that exists."""


def assign_by_range(members: Mapping[str, ConsumerProtocolSubscription], counts: Counts) -> Assignment:
    """Assign consecutive partitions of each topic to every member that subscribes to it."""
    return _named(assign_range({name: _member(each, counts, ()) for name, each in members.items()}))


def assign_round_robin(members: Mapping[str, ConsumerProtocolSubscription], counts: Counts) -> Assignment:
    """Assign all partitions in order, each to the next member in order that subscribes to its topic."""
    found: dict[str, list[TopicPartition]] = {name: [] for name in members}
    turn = cycle(sorted(members))
    topics = sorted({topic for each in members.values() for topic in each.topics if topic in counts})
    for topic in topics:
        for partition in range(counts[topic]):
            name = next(name for name in turn if topic in members[name].topics)
            found[name].append(TopicPartition(topic, partition))
    return {name: tuple(partitions) for name, partitions in found.items()}


def assign_cooperatively(members: Mapping[str, ConsumerProtocolSubscription], counts: Counts) -> Assignment:
    """Assign even shares that move few partitions; a partition that moves is assigned only after its owner has revoked
    it.

    In this round no member gets a partition that another still owns: the owner sees it missing, revokes it and asks all
    members to rejoin (KIP-429).
    """
    owned = _owners(members)
    target = _named(
        assign_uniform({name: _member(each, counts, owned.get(name, ())) for name, each in members.items()})
    )
    holder = {partition: name for name, partitions in owned.items() for partition in partitions}
    return {
        name: tuple(partition for partition in partitions if holder.get(partition, name) == name)
        for name, partitions in target.items()
    }


def _owners(members: Mapping[str, ConsumerProtocolSubscription]) -> dict[str, tuple[TopicPartition, ...]]:
    """Return the owner of each partition; of two that claim the same one, the newer generation is right."""
    holders: dict[TopicPartition, str] = {}
    for name in sorted(members):
        for partition in members[name].owned:
            other = holders.get(partition)
            if other is None or members[other].generation < members[name].generation:
                holders[partition] = name
            elif members[other].generation == members[name].generation:
                holders.pop(partition)  # Both claims are wrong: the partition is free.
    owned: dict[str, list[TopicPartition]] = {name: [] for name in members}
    for partition, name in holders.items():
        owned[name].append(partition)
    return {name: tuple(sorted(partitions)) for name, partitions in owned.items()}


def _member(
    subscription: ConsumerProtocolSubscription, counts: Counts, owned: tuple[TopicPartition, ...]
) -> AssignableMember:
    topics = tuple(
        AssignedTopic(topic.encode(), counts[topic]) for topic in sorted(set(subscription.topics)) if topic in counts
    )
    return AssignableMember(topics, tuple((topic.encode(), partition) for topic, partition in owned), None)


def _named(assigned: Mapping[str, Partitions]) -> Assignment:
    return {
        name: tuple(TopicPartition(topic.decode(), partition) for topic, partition in partitions)
        for name, partitions in assigned.items()
    }


ASSIGNORS: Mapping[str, Callable[[Mapping[str, ConsumerProtocolSubscription], Counts], Assignment]] = {
    "range": assign_by_range,
    "roundrobin": assign_round_robin,
    "cooperative-sticky": assign_cooperatively,
}
COOPERATIVE = frozenset({"cooperative-sticky"})
"""Assignors whose members keep their partitions during a rebalance."""
