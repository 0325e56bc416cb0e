"""The committed offsets of one group, and the search for expired ones."""

from collections.abc import Collection, Iterator

from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.records import CommittedOffset, OffsetRecord
from headrace.core.groups.states import GroupState
from headrace.model.ids import NO_TIMESTAMP


class GroupOffsets:
    """Committed offsets by topic and partition, in the order of their first commit."""

    __slots__ = ("by_topic", "count")

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[int, CommittedOffset]] = {}
        self.count = 0

    def apply(self, record: OffsetRecord) -> None:
        partitions = self.by_topic.get(record.topic)
        if record.committed is None:
            if partitions is not None and partitions.pop(record.partition, None) is not None:
                self.count -= 1
                if not partitions:
                    del self.by_topic[record.topic]
            return
        if partitions is None:
            partitions = self.by_topic[record.topic] = {}
        if record.partition not in partitions:
            self.count += 1
        partitions[record.partition] = record.committed

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        partitions = self.by_topic.get(topic)
        return None if partitions is None else partitions.get(partition)

    def __iter__(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self.by_topic.items():
            for partition, committed in partitions.items():
                yield topic, partition, committed


def unused_for_long(
    offsets: GroupOffsets, in_use: Collection[str], *, empty_since_ms: int, now_ms: int, retention_ms: int
) -> list[tuple[str, int]]:
    """Return the partitions of topics not in use whose offsets were committed longer ago than the retention.

    The offsets of a KIP-848 group without members are kept for the retention time after the coordinator found it empty:
    a group that reads a quiet topic may have committed long ago, and must survive a short stop. (Kafka counts from the
    commit alone.)
    """
    return [
        (topic, partition)
        for topic, partition, committed in offsets
        if topic not in in_use and now_ms - max(committed.committed_at_ms, empty_since_ms) >= retention_ms
    ]


def expired(offsets: GroupOffsets, group: ClassicGroup, *, now_ms: int, retention_ms: int) -> list[tuple[str, int]]:
    """Return the partitions of a classic group whose offsets have outlived their retention (KIP-211).

    The retention counts from the time when the group became empty; for consumers without membership, and for topics
    that a live group no longer reads, it counts from the commit.
    """
    if group.protocol_type is not None and group.state is not GroupState.EMPTY:
        if not group.uses_consumer_protocol or group.subscribed is None or group.state is not GroupState.STABLE:
            return []
        in_use = group.subscribed
    else:
        in_use = frozenset()
    from_commit = group.protocol_type is None or group.state is not GroupState.EMPTY or group.since_ms == NO_TIMESTAMP
    found = []
    for topic, partition, committed in offsets:
        if topic in in_use:
            continue
        if committed.expires_at_ms != NO_TIMESTAMP:
            is_over = now_ms >= committed.expires_at_ms
        else:
            is_over = now_ms - (committed.committed_at_ms if from_commit else group.since_ms) >= retention_ms
        if is_over:
            found.append((topic, partition))
    return found
