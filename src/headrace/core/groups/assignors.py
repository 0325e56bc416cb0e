"""Who shall read what: the assignors that the broker has for groups of KIP-848. Pure functions of the members.

Each is a generator that stops after some items, so that a large group can be assigned over several turns.
"""

from collections.abc import Callable, Generator, Mapping
from heapq import heapify, heapreplace
from typing import NamedTuple

from headrace.core.groups.consumer_records import Partitions, TopicIdPartition

MOVES_MAX = 10_000
"""Partitions moved from one member to another in one assignment to make it even."""

ITEMS_PER_STEP = 500
"""Members or partitions that an assignment looks at in one step."""


class AssignedTopic(NamedTuple):
    topic_id: bytes
    partition_count: int


class AssignableMember(NamedTuple):
    topics: tuple[AssignedTopic, ...]
    before: Partitions
    """What it was to have so far; kept where that is fair."""
    instance_id: str | None


Assignment = dict[str, Partitions]
Steps = Generator[None, None, Assignment]
Assignor = Callable[[Mapping[str, AssignableMember]], Steps]


def all_steps(steps: Steps) -> Assignment:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assignment: Assignment = end.value
            return assignment


def assign_range(members: Mapping[str, AssignableMember]) -> Assignment:
    return all_steps(range_steps(members))


def assign_uniform(members: Mapping[str, AssignableMember]) -> Assignment:
    return all_steps(uniform_steps(members))


def range_steps(members: Mapping[str, AssignableMember]) -> Steps:
    """Of each topic everyone gets a run of neighbours; the first ones get one more where it does not work out even."""
    found: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    readers = yield from _readers(members)
    done = 0
    for topic, member_ids in readers.items():
        ordered = sorted(member_ids, key=lambda member_id: (members[member_id].instance_id or member_id, member_id))
        share, more = divmod(topic.partition_count, len(ordered))
        first = 0
        for place, member_id in enumerate(ordered):
            end = first + share + (place < more)
            found[member_id].extend((topic.topic_id, partition) for partition in range(first, end))
            first = end
            done += 1
            if done % ITEMS_PER_STEP == 0:
                yield
    return (yield from _sorted(found))


def uniform_steps(members: Mapping[str, AssignableMember]) -> Steps:
    """Everyone gets as many partitions as any other, as far as subscriptions allow, and keeps what it had."""
    readers = {topic: tuple(member_ids) for topic, member_ids in (yield from _readers(members)).items()}
    may_read = {topic.topic_id: frozenset(member_ids) for topic, member_ids in readers.items()}
    left: dict[TopicIdPartition, tuple[str, ...]] = {}
    for topic, member_ids in readers.items():
        for partition in range(topic.partition_count):
            left[topic.topic_id, partition] = member_ids
            if len(left) % ITEMS_PER_STEP == 0:
                yield
    found: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    quotas = _quotas(members, len(left))
    for place, (member_id, member) in enumerate(members.items()):
        kept, quota = found[member_id], quotas[member_id]
        for part in member.before:
            if len(kept) < quota and part in left and member_id in may_read[part[0]]:
                kept.append(part)
                del left[part]
        if place % ITEMS_PER_STEP == 0:
            yield
    yield from _hand_out(left, found)
    yield from _make_even(found, may_read)
    return (yield from _sorted(found))


def _hand_out(
    left: Mapping[TopicIdPartition, tuple[str, ...]], found: dict[str, list[TopicIdPartition]]
) -> Generator[None, None, None]:
    """Each partition to the one of its readers that has least; the first by name of equals."""
    by_load: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for place, (part, member_ids) in enumerate(left.items()):
        heap = by_load.get(member_ids)
        if heap is None:
            heap = by_load[member_ids] = [(len(found[member_id]), member_id) for member_id in member_ids]
            heapify(heap)
        while heap[0][0] != len(found[heap[0][1]]):  # it got something of a topic with other readers meanwhile
            heapreplace(heap, (len(found[heap[0][1]]), heap[0][1]))
        load, member_id = heap[0]
        found[member_id].append(part)
        heapreplace(heap, (load + 1, member_id))
        if place % ITEMS_PER_STEP == 0:
            yield


def _readers(members: Mapping[str, AssignableMember]) -> Generator[None, None, dict[AssignedTopic, list[str]]]:
    readers: dict[AssignedTopic, list[str]] = {}
    for place, member_id in enumerate(sorted(members)):
        for topic in members[member_id].topics:
            readers.setdefault(topic, []).append(member_id)
        if place % ITEMS_PER_STEP == 0:
            yield
    return dict(sorted(readers.items()))


def _sorted(found: Mapping[str, list[TopicIdPartition]]) -> Steps:
    assignment: Assignment = {}
    for place, (member_id, partitions) in enumerate(found.items()):
        assignment[member_id] = tuple(sorted(partitions))
        if place % ITEMS_PER_STEP == 0:
            yield
    return assignment


def _quotas(members: Mapping[str, AssignableMember], partition_count: int) -> dict[str, int]:
    """The most that each may keep. Where all read the same that is an even share, those with more keep one more."""
    if len({member.topics for member in members.values()}) > 1:
        return dict.fromkeys(members, partition_count)
    share, more = divmod(partition_count, max(len(members), 1))
    by_load = sorted(members, key=lambda member_id: (-len(members[member_id].before), member_id))
    return {member_id: share + (place < more) for place, member_id in enumerate(by_load)}


def _make_even(
    found: dict[str, list[TopicIdPartition]], readers: Mapping[bytes, frozenset[str]]
) -> Generator[None, None, None]:
    """Move partitions from those with most to those with least that may read them, until it helps no more."""
    for _ in range(MOVES_MAX):
        move = _next_move(found, readers)
        if move is None:
            return
        rich, poor, part = move
        found[rich].remove(part)
        found[poor].append(part)
        yield


def _next_move(
    found: Mapping[str, list[TopicIdPartition]], readers: Mapping[bytes, frozenset[str]]
) -> tuple[str, str, TopicIdPartition] | None:
    by_load = sorted(found, key=lambda member_id: (len(found[member_id]), member_id))
    for rich in reversed(by_load):
        for poor in by_load:
            if len(found[rich]) - len(found[poor]) <= 1:
                break
            for part in found[rich]:
                if poor in readers[part[0]]:
                    return rich, poor, part
        if len(found[rich]) - len(found[by_load[0]]) <= 1:
            return None
    return None


ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform_steps, "range": range_steps}
DEFAULT_ASSIGNOR = "uniform"
