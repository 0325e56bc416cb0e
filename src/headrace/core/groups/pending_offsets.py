"""Offsets of open transactions: they take effect when the transaction commits, and are dropped when it aborts."""

from typing import NamedTuple

from headrace.core.groups.records import CommittedOffset, OffsetRecord

TopicPartition = tuple[str, int]


class ReleasedOffsets(NamedTuple):
    committed: list[OffsetRecord]
    """The offsets that take effect now; none after an abort."""
    group_ids: tuple[str, ...]
    """All groups for which the transaction had staged offsets."""


class PendingOffsets:
    """Staged offsets by group and partition, each with its producers in the order of writing."""

    __slots__ = ("_by_group", "_by_producer", "count")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, dict[int, CommittedOffset | None]]] = {}
        """None for an offset that a later commit has superseded: the newest record of a partition wins."""
        self._by_producer: dict[int, dict[tuple[str, TopicPartition], None]] = {}
        self.count = 0

    def stage(self, producer_id: int, record: OffsetRecord) -> None:
        part = (record.topic, record.partition)
        staged = self._by_group.setdefault(record.group, {}).setdefault(part, {})
        if producer_id in staged:
            del staged[producer_id]  # so that the newest comes last
        else:
            self.count += 1
        staged[producer_id] = record.committed
        self._by_producer.setdefault(producer_id, {})[record.group, part] = None

    def supersede(self, group_id: str, topic: str, partition: int) -> None:
        """Supersede the staged offsets of a partition: a commit outside of transactions was written after them."""
        staged = self._by_group.get(group_id, {}).get((topic, partition))
        if staged is not None:
            for producer_id in staged:
                staged[producer_id] = None

    def forget(self, group_id: str, topic: str, partition: int) -> None:
        """Drop the staged offsets of a partition, because its committed offset was deleted."""
        for producer_id in tuple(self._by_group.get(group_id, {}).get((topic, partition), ())):
            self._remove(producer_id, group_id, (topic, partition))
            of_producer = self._by_producer[producer_id]
            del of_producer[group_id, (topic, partition)]
            if not of_producer:
                del self._by_producer[producer_id]

    def end(self, producer_id: int, *, commit: bool) -> ReleasedOffsets:
        """End the producer's transaction and return the offsets that take effect."""
        committed_now: list[OffsetRecord] = []
        group_ids: dict[str, None] = {}
        for group_id, part in self._by_producer.pop(producer_id, ()):
            staged = self._by_group[group_id][part]
            committed = staged[producer_id]
            if commit and committed is not None:
                for earlier in staged:
                    if earlier == producer_id:
                        break
                    staged[earlier] = None
                committed_now.append(OffsetRecord(group_id, *part, committed))
            self._remove(producer_id, group_id, part)
            group_ids[group_id] = None
        return ReleasedOffsets(committed_now, tuple(group_ids))

    def _remove(self, producer_id: int, group_id: str, part: TopicPartition) -> None:
        of_group = self._by_group[group_id]
        del of_group[part][producer_id]
        self.count -= 1
        if not of_group[part]:
            del of_group[part]
            if not of_group:
                del self._by_group[group_id]

    # Lookups

    def has_group(self, group_id: str) -> bool:
        return group_id in self._by_group

    def is_staged(self, group_id: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self._by_group.get(group_id, ())

    def partitions(self, group_id: str) -> tuple[TopicPartition, ...]:
        return tuple(self._by_group.get(group_id, ()))

    def group_ids(self) -> tuple[str, ...]:
        return tuple(self._by_group)

    def topics(self) -> set[str]:
        return {topic for parts in self._by_group.values() for topic, _ in parts}

    def staged(self) -> dict[tuple[str, TopicPartition, int], CommittedOffset | None]:
        """Return all staged offsets, for tests and checkers."""
        return {
            (group_id, part, producer_id): committed
            for group_id, parts in self._by_group.items()
            for part, staged in parts.items()
            for producer_id, committed in staged.items()
        }
