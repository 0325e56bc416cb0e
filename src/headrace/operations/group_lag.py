"""Lag of a consumer group: committed offset, log end offset and reading member of each partition."""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.types import LATEST, GroupDescription
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition


class PartitionLag(NamedTuple):
    partition: TopicPartition
    committed: int | None
    """None if the group has no committed offset for the partition."""
    end: int | None
    """None if the partition no longer exists."""
    member: str
    """ID of the member that the partition is assigned to; empty if there is none."""

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else max(self.end - self.committed, 0)


def group_lag(admin: Admin, description: GroupDescription) -> list[PartitionLag]:
    """Return the lag of every partition with a committed offset or an assigned member."""
    readers = {part: member.member_id for member in description.members for part in member.partitions}
    committed = {part: found.offset for part, found in admin.group_offsets(description.group).items()}
    partitions = sorted({*readers, *committed})
    ends = end_offsets(admin, partitions)
    return [PartitionLag(part, committed.get(part), ends.get(part), readers.get(part, "")) for part in partitions]


def end_offsets(admin: Admin, partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Return the log end offsets of the partitions that exist."""
    if not partitions:
        return {}
    found = admin.offsets(dict.fromkeys(partitions, LATEST))
    return {part: at.offset for part, at in found.items() if at.error is ErrorCode.NONE}
