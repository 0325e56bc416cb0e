"""How far a group has read, partition by partition, beside where the partitions end and who reads them."""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.types import LATEST, GroupDescription
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition


class PartitionLag(NamedTuple):
    partition: TopicPartition
    committed: int | None
    """None where the group has committed nothing."""
    end: int | None
    """None where the partition is not there any more."""
    member: str
    """Who reads it now, or nobody."""

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else max(self.end - self.committed, 0)


def group_lag(admin: Admin, description: GroupDescription) -> list[PartitionLag]:
    """Every partition that the group has committed for, or that a member of it was given."""
    readers = {part: member.member_id for member in description.members for part in member.partitions}
    committed = {part: found.offset for part, found in admin.group_offsets(description.group).items()}
    partitions = sorted({*readers, *committed})
    ends = end_offsets(admin, partitions)
    return [PartitionLag(part, committed.get(part), ends.get(part), readers.get(part, "")) for part in partitions]


def end_offsets(admin: Admin, partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Of those that there are."""
    if not partitions:
        return {}
    found = admin.offsets(dict.fromkeys(partitions, LATEST))
    return {part: at.offset for part, at in found.items() if at.error is ErrorCode.NONE}
