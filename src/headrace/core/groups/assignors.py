"""Assignors for KIP-848 groups: pure functions from members to partitions.

Each is a generator that pauses after some items, so that a large group can be assigned over several turns.
"""

from collections.abc import Callable, Generator, Mapping
from heapq import heapify, heapreplace
from typing import NamedTuple

from headrace.core.groups.consumer_records import Partitions, TopicIdPartition

MOVES_MAX = 10_000
"""Partitions that one assignment moves between members to balance their numbers."""

ITEMS_PER_STEP = 500
"""Members or partitions that an assignor processes in one step."""


class AssignedTopic(NamedTuple):
    topic_id: bytes
    partition_count: int


class AssignableMember(NamedTuple):
    topics: tuple[AssignedTopic, ...]
    before: Partitions
    """The previous target of the member; kept where the balance allows."""
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
    """Give each member a range of consecutive partitions of each topic; the first members get the remainder."""
    found: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    subscribers = yield from _subscribers(members)
    done = 0
    for topic, member_ids in subscribers.items():
        ordered = sorted(member_ids, key=lambda member_id: (members[member_id].instance_id or member_id, member_id))
        share, more = divmod(topic.partition_count, len(ordered))
        first = 0
        for index, member_id in enumerate(ordered):
            end = first + share + (index < more)
            found[member_id].extend((topic.topic_id, partition) for partition in range(first, end))
            first = end
            done += 1
            if done % ITEMS_PER_STEP == 0:
                yield
    return (yield from _sorted(found))


def uniform_steps(members: Mapping[str, AssignableMember]) -> Steps:
    """Balance the number of partitions as far as subscriptions allow, and keep previous assignments."""
    subscribers = {topic: tuple(member_ids) for topic, member_ids in (yield from _subscribers(members)).items()}
    may_read = {topic.topic_id: frozenset(member_ids) for topic, member_ids in subscribers.items()}
    unassigned: dict[TopicIdPartition, tuple[str, ...]] = {}
    for topic, member_ids in subscribers.items():
        for partition in range(topic.partition_count):
            unassigned[topic.topic_id, partition] = member_ids
            if len(unassigned) % ITEMS_PER_STEP == 0:
                yield
    found: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    quotas = _quotas(members, len(unassigned))
    for index, (member_id, member) in enumerate(members.items()):
        kept, quota = found[member_id], quotas[member_id]
        for part in member.before:
            if len(kept) < quota and part in unassigned and member_id in may_read[part[0]]:
                kept.append(part)
                del unassigned[part]
        if index % ITEMS_PER_STEP == 0:
            yield
    yield from _hand_out(unassigned, found)
    yield from _make_even(found, may_read)
    return (yield from _sorted(found))


def _hand_out(
    unassigned: Mapping[TopicIdPartition, tuple[str, ...]], found: dict[str, list[TopicIdPartition]]
) -> Generator[None, None, None]:
    """Give each partition to the subscribed member with the fewest partitions; the first by name on a tie."""
    by_load: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for index, (part, member_ids) in enumerate(unassigned.items()):
        heap = by_load.get(member_ids)
        if heap is None:
            heap = by_load[member_ids] = [(len(found[member_id]), member_id) for member_id in member_ids]
            heapify(heap)
        while heap[0][0] != len(found[heap[0][1]]):  # the heap of other subscribers gave it a partition meanwhile
            heapreplace(heap, (len(found[heap[0][1]]), heap[0][1]))
        load, member_id = heap[0]
        found[member_id].append(part)
        heapreplace(heap, (load + 1, member_id))
        if index % ITEMS_PER_STEP == 0:
            yield


def _subscribers(members: Mapping[str, AssignableMember]) -> Generator[None, None, dict[AssignedTopic, list[str]]]:
    subscribers: dict[AssignedTopic, list[str]] = {}
    for index, member_id in enumerate(sorted(members)):
        for topic in members[member_id].topics:
            subscribers.setdefault(topic, []).append(member_id)
        if index % ITEMS_PER_STEP == 0:
            yield
    return dict(sorted(subscribers.items()))


def _sorted(found: Mapping[str, list[TopicIdPartition]]) -> Steps:
    assignment: Assignment = {}
    for index, (member_id, partitions) in enumerate(found.items()):
        assignment[member_id] = tuple(sorted(partitions))
        if index % ITEMS_PER_STEP == 0:
            yield
    return assignment


def _quotas(members: Mapping[str, AssignableMember], partition_count: int) -> dict[str, int]:
    """Return how many partitions each member may keep.

    If all members subscribe to the same topics it is an even share; members with more partitions keep the remainder.
    """
    if len({member.topics for member in members.values()}) > 1:
        return dict.fromkeys(members, partition_count)
    share, more = divmod(partition_count, max(len(members), 1))
    by_load = sorted(members, key=lambda member_id: (-len(members[member_id].before), member_id))
    return {member_id: share + (index < more) for index, member_id in enumerate(by_load)}


def _make_even(
    found: dict[str, list[TopicIdPartition]], subscribers: Mapping[bytes, frozenset[str]]
) -> Generator[None, None, None]:
    """Move partitions from the members with the most to those with the fewest until no move improves the balance."""
    for _ in range(MOVES_MAX):
        move = _next_move(found, subscribers)
        if move is None:
            return
        donor, recipient, part = move
        found[donor].remove(part)
        found[recipient].append(part)
        yield


def _next_move(
    found: Mapping[str, list[TopicIdPartition]], subscribers: Mapping[bytes, frozenset[str]]
) -> tuple[str, str, TopicIdPartition] | None:
    by_load = sorted(found, key=lambda member_id: (len(found[member_id]), member_id))
    for donor in reversed(by_load):
        for recipient in by_load:
            if len(found[donor]) - len(found[recipient]) <= 1:
                break
            for part in found[donor]:
                if recipient in subscribers[part[0]]:
                    return donor, recipient, part
        if len(found[donor]) - len(found[by_load[0]]) <= 1:
            return None
    return None


ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform_steps, "range": range_steps}
DEFAULT_ASSIGNOR = "uniform"
