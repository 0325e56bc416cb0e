"""Deletes committed offsets that outlived their retention, in rounds over all groups, a slice of groups per turn."""

from collections.abc import Sequence

from headrace.core.coordination.machine import Now
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.deadlines import DeadlineKind, GroupDeadline, GroupDeadlines
from headrace.core.groups.migration import delete_records
from headrace.core.groups.offsets import expired, unused_for_long
from headrace.core.groups.records import GroupRecord, OffsetRecord
from headrace.core.groups.settings import (
    GROUPS_PER_SLICE,
    OFFSETS_PER_SLICE,
    SLICE_PAUSE_MS,
    GroupCoordinatorSettings,
)
from headrace.core.groups.states import GroupState
from headrace.core.groups.tables import NO_OFFSETS, GroupDecisionBuilder, GroupTables
from headrace.model.ids import NO_TIMESTAMP


class OffsetRetention:
    def __init__(self, settings: GroupCoordinatorSettings, tables: GroupTables, deadlines: GroupDeadlines) -> None:
        self._settings = settings
        self._tables = tables
        self._deadlines = deadlines
        self._unchecked: list[str] = []
        """Groups that the current round has not checked yet, the next one last."""

    def schedule(self, now: Now) -> None:
        """Set the deadline of the next slice of this round, or of the next round."""
        wait_ms = SLICE_PAUSE_MS if self._unchecked else self._settings.offset_check_interval_ms
        self._deadlines.set(GroupDeadline(DeadlineKind.RETENTION), now.monotonic_ms + wait_ms)

    def expire_slice(self, out: GroupDecisionBuilder, now: Now) -> None:
        """Delete the expired offsets of some groups, and schedule the next slice."""
        tables = self._tables
        if not self._unchecked:
            self._unchecked = list(reversed(tables.group_ids()))
        offsets_left = OFFSETS_PER_SLICE
        for _ in range(GROUPS_PER_SLICE):
            if not self._unchecked or offsets_left <= 0:
                break
            group_id = self._unchecked.pop()
            offsets_left -= tables.offsets.get(group_id, NO_OFFSETS).count
            if group_id in tables.classic_groups:
                self._expire_classic(tables.classic_groups[group_id], out, now)
            elif group_id in tables.consumer_groups:
                self._expire_consumer(tables.consumer_groups[group_id], out, now)
        self.schedule(now)

    def _expire_classic(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        offsets = self._tables.offsets.get(group.group_id, NO_OFFSETS)
        over = expired(offsets, group, now_ms=now.wall_ms, retention_ms=self._settings.offset_retention_ms)
        all_over = self._delete(group.group_id, over, out)
        if all_over and group.state is GroupState.EMPTY and not group.pending and group.recorded is not None:
            out.write(GroupRecord(group.group_id, None))

    def _expire_consumer(self, group: ConsumerGroup, out: GroupDecisionBuilder, now: Now) -> None:
        if not group.knows_its_topics:
            return
        if not group.members and group.empty_since_ms is None:
            group.empty_since_ms = now.wall_ms
        offsets = self._tables.offsets.get(group.group_id, NO_OFFSETS)
        in_use = {topic for member in group.members.values() for topic in group.subscribed(member)}
        over = unused_for_long(
            offsets,
            in_use,
            empty_since_ms=NO_TIMESTAMP if group.empty_since_ms is None else group.empty_since_ms,
            now_ms=now.wall_ms,
            retention_ms=self._settings.offset_retention_ms,
        )
        if self._delete(group.group_id, over, out) and not group.members:
            for record in delete_records(group):
                out.write(record)

    def _delete(self, group_id: str, over: Sequence[tuple[str, int]], out: GroupDecisionBuilder) -> bool:
        """Delete these offsets; return whether the group has none left, committed or pending.

        A committed offset is kept while a transaction has staged a newer one for its partition.
        """
        pending = self._tables.pending_offsets
        deleted = [each for each in over if not pending.is_staged(group_id, *each)]
        none_left = len(deleted) == self._tables.offsets.get(group_id, NO_OFFSETS).count and not pending.has_group(
            group_id
        )
        for topic, partition in deleted:
            out.write(OffsetRecord(group_id, topic, partition, None))
        return none_left
