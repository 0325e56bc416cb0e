"""The state behind one partition of `__consumer_offsets`: groups, committed offsets and pending offsets.

The state changes only by `apply`, `apply_pending` and `end_transaction`, in a live coordinator and in a replay alike.
"""

from headrace.core.coordination.machine import Decision, DecisionBuilder, PendingProducer
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.consumer_records import ConsumerRecord
from headrace.core.groups.deadlines import GroupDeadlines, drop_group_deadlines
from headrace.core.groups.offsets import GroupOffsets
from headrace.core.groups.pending_offsets import PendingOffsets
from headrace.core.groups.records import GroupRecord, OffsetRecord, Record
from headrace.core.groups.states import GroupState

GroupDecision = Decision[Record]
GroupDecisionBuilder = DecisionBuilder[Record]

NO_OFFSETS = GroupOffsets()


class GroupTables:
    def __init__(self, deadlines: GroupDeadlines) -> None:
        self.classic_groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        """Groups of the KIP-848 protocol. A group id is in at most one of the two tables."""
        self.offsets: dict[str, GroupOffsets] = {}
        self.pending_offsets = PendingOffsets()
        """Offsets of open transactions."""
        self._deadlines = deadlines

    def begin_decision(self) -> GroupDecisionBuilder:
        """Return an empty decision; each record written to it is applied at once."""
        return DecisionBuilder(self.apply)

    def begin_pending_decision(self, producer: PendingProducer) -> GroupDecisionBuilder:
        """Return an empty decision whose records belong to the producer's open transaction."""
        return DecisionBuilder(lambda record: self.apply_pending(producer.producer_id, record))

    # Lookups

    @property
    def group_count(self) -> int:
        return len(self.classic_groups) + len(self.consumer_groups)

    def group_ids(self) -> list[str]:
        return [*self.classic_groups, *self.consumer_groups]

    def groups_with_offsets(self) -> list[str]:
        """Return the ids of groups with committed or pending offsets."""
        return list(dict.fromkeys((*self.offsets, *self.pending_offsets.group_ids())))

    def topics_with_offsets(self) -> set[str]:
        committed = {topic for offsets in self.offsets.values() for topic in offsets.by_topic}
        return committed | self.pending_offsets.topics()

    def partitions_with_offsets(self, group_id: str) -> list[tuple[str, int]]:
        """Return the partitions for which the group has a committed or a pending offset."""
        committed = [(topic, partition) for topic, partition, _ in self.offsets.get(group_id, NO_OFFSETS)]
        return list(dict.fromkeys((*committed, *self.pending_offsets.partitions(group_id))))

    # Records

    def apply(self, record: Record) -> None:
        if isinstance(record, OffsetRecord):
            if self.pending_offsets.count:
                update = self.pending_offsets.supersede if record.committed is not None else self.pending_offsets.forget
                update(record.group, record.topic, record.partition)
            self._apply_offset(record)
        elif not isinstance(record, GroupRecord):
            self._apply_consumer(record)
        elif record.metadata is not None:
            self.get_or_create_classic_group(record.group).apply_metadata(record.metadata)
        else:
            group = self.classic_groups.get(record.group)
            if group is not None:
                group.recorded = None
                for member_id in tuple(group.members):
                    group.remove(member_id)
                group.state = GroupState.EMPTY
                group.protocol_type = None
                self.forget_if_unused(group)

    def apply_pending(self, producer_id: int, record: Record) -> None:
        """Stage an offset that takes effect when the producer's transaction commits."""
        if isinstance(record, OffsetRecord) and record.committed is not None:
            self.pending_offsets.stage(producer_id, record)
            if record.group not in self.consumer_groups:
                self.get_or_create_classic_group(record.group)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        ended = self.pending_offsets.end(producer_id, commit=commit)
        for record in ended.committed:
            self._apply_offset(record)
        for group_id in ended.group_ids:
            self._forget_id_if_unused(group_id)

    def _apply_offset(self, record: OffsetRecord) -> None:
        offsets = self.offsets.get(record.group)
        if offsets is None:
            if record.committed is None:
                self._forget_id_if_unused(record.group)
                return
            offsets = self.offsets[record.group] = GroupOffsets()
            if record.group not in self.consumer_groups:
                self.get_or_create_classic_group(record.group)
        offsets.apply(record)
        if not offsets.count:
            del self.offsets[record.group]
            self._forget_id_if_unused(record.group)

    def _apply_consumer(self, record: ConsumerRecord) -> None:
        group = self.consumer_groups.get(record.group)
        if group is None:
            if record[-1] is None:
                return
            group = self.consumer_groups[record.group] = ConsumerGroup(record.group)
            self.classic_groups.pop(record.group, None)  # it existed only to hold the offsets
        group.apply(record)
        if group.is_void:
            del self.consumer_groups[record.group]
            if self._has_offsets(record.group):
                self.get_or_create_classic_group(record.group)

    # Groups come and go

    def get_or_create_classic_group(self, group_id: str) -> ClassicGroup:
        group = self.classic_groups.get(group_id)
        if group is None:
            group = self.classic_groups[group_id] = ClassicGroup(group_id)
        return group

    def forget_if_unused(self, group: ClassicGroup) -> None:
        """Remove a classic group that has neither members nor a record nor offsets."""
        if group.is_void and not self._has_offsets(group.group_id):
            drop_group_deadlines(self._deadlines, group)
            self.classic_groups.pop(group.group_id, None)

    def _forget_id_if_unused(self, group_id: str) -> None:
        if group_id in self.classic_groups:
            self.forget_if_unused(self.classic_groups[group_id])

    def _has_offsets(self, group_id: str) -> bool:
        """Return whether the group has committed offsets, or pending ones that a transaction may commit."""
        return group_id in self.offsets or self.pending_offsets.has_group(group_id)
