"""The state behind one partition of `__consumer_offsets`, and the one way in which it changes: records, applied."""

from headrace.core.coordination.deadlines import Deadlines
from headrace.core.coordination.machine import Decision, Outcome
from headrace.core.groups.classic import ClassicProtocol
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.consumer import ConsumerProtocol
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.consumer_records import ConsumerRecord
from headrace.core.groups.deadlines import GroupDeadlines
from headrace.core.groups.mixed import ClassicMembers
from headrace.core.groups.offsets import GroupOffsets
from headrace.core.groups.pending_offsets import PendingOffsets
from headrace.core.groups.records import GroupRecord, OffsetRecord, Record
from headrace.core.groups.settings import GroupSettings
from headrace.core.groups.states import GroupState
from headrace.core.groups.targets import TopicCatalog

GroupDecision = Decision[Record]
Effects = Outcome[Record]

NO_OFFSETS = GroupOffsets()


class GroupTables:
    def __init__(self, settings: GroupSettings, topics: TopicCatalog) -> None:
        self.groups: dict[str, ClassicGroup] = {}
        self.consumers: dict[str, ConsumerGroup] = {}
        """Groups of KIP-848; no group is in both."""
        self.offsets: dict[str, GroupOffsets] = {}
        self.pending = PendingOffsets()
        """Of open transactions."""
        self._deadlines: GroupDeadlines = Deadlines()
        self._classic = ClassicProtocol(settings, self._deadlines)
        self._consumer = ConsumerProtocol(settings, self._deadlines, topics)
        self._mixed = ClassicMembers(self._consumer, self._deadlines)

    @property
    def settings(self) -> GroupSettings:
        return self._classic.settings

    def configure(self, settings: GroupSettings) -> None:
        self._classic.settings = self._consumer.settings = settings

    def group_ids(self) -> list[str]:
        return [*self.groups, *self.consumers]

    def groups_with_offsets(self) -> list[str]:
        """Also those for which only transactions have staged some."""
        return list(dict.fromkeys((*self.offsets, *self.pending.group_ids())))

    def topics_with_offsets(self) -> set[str]:
        committed = {topic for offsets in self.offsets.values() for topic in offsets.by_topic}
        return committed | self.pending.topics()

    # Records

    def apply(self, record: Record) -> None:
        if isinstance(record, OffsetRecord):
            if self.pending.count:
                seen = self.pending.overtake if record.committed is not None else self.pending.forget
                seen(record.group, record.topic, record.partition)
            self._apply_offset(record)
        elif not isinstance(record, GroupRecord):
            self._apply_consumer(record)
        elif record.metadata is not None:
            self._group_for(record.group).settle(record.metadata)
        else:
            group = self.groups.get(record.group)
            if group is not None:
                group.recorded = None
                for member_id in tuple(group.members):
                    group.remove(member_id)
                group.state = GroupState.EMPTY
                group.protocol_type = None
                self._forget_if_void(group)

    def apply_pending(self, producer_id: int, record: Record) -> None:
        """An offset that counts when the transaction of its producer is committed."""
        if isinstance(record, OffsetRecord) and record.committed is not None:
            self.pending.stage(producer_id, record)
            if record.group not in self.consumers:
                self._group_for(record.group)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        ended = self.pending.end(producer_id, commit=commit)
        for record in ended.committed:
            self._apply_offset(record)
        for group_id in ended.group_ids:
            self._forget_if_unused(group_id)

    def _apply_offset(self, record: OffsetRecord) -> None:
        offsets = self.offsets.get(record.group)
        if offsets is None:
            if record.committed is None:
                self._forget_if_unused(record.group)
                return
            offsets = self.offsets[record.group] = GroupOffsets()
            if record.group not in self.consumers:
                self._group_for(record.group)
        offsets.apply(record)
        if not offsets.count:
            del self.offsets[record.group]
            self._forget_if_unused(record.group)

    def _apply_consumer(self, record: ConsumerRecord) -> None:
        group = self.consumers.get(record.group)
        if group is None:
            if record[-1] is None:
                return
            group = self.consumers[record.group] = ConsumerGroup(record.group)
            self.groups.pop(record.group, None)  # one that only kept the offsets
        group.apply(record)
        if group.is_void:
            del self.consumers[record.group]
            if self._has_offsets(record.group):
                self._group_for(record.group)

    def _group_for(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _has_offsets(self, group_id: str) -> bool:
        """Committed ones, or some that a transaction may commit."""
        return group_id in self.offsets or self.pending.has_group(group_id)

    def _forget_if_unused(self, group_id: str) -> None:
        if group_id in self.groups:
            self._forget_if_void(self.groups[group_id])

    def _forget_if_void(self, group: ClassicGroup) -> None:
        if group.is_void and not self._has_offsets(group.group_id):
            self._classic.forget_waits(group)
            self.groups.pop(group.group_id, None)

    def _outcome(self) -> Effects:
        return Outcome(self.apply)
