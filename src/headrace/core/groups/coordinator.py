"""The machine behind one partition of `__consumer_offsets`: its groups, their offsets, and what they are asked."""

from collections.abc import Collection, Iterable, Sequence

from headrace.core.coordination.deadlines import Deadlines
from headrace.core.coordination.machine import Decision, Now, Outcome, Ticket
from headrace.core.groups import describing
from headrace.core.groups.classic import ClassicProtocol
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.commands import (
    NO_MEMBER,
    Commit,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribedGroup,
    FetchedOffset,
    Join,
    JoinResult,
    LeaveResult,
    LeavingMember,
    ListedGroup,
    Membership,
    Sync,
    SyncResult,
)
from headrace.core.groups.consumer import JOINING_EPOCH, ConsumerProtocol, Refusal, TopicCatalog
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.consumer_records import ConsumerRecord, EpochRecord, TargetEpochRecord
from headrace.core.groups.deadlines import GroupDeadlines, Wait, Waiting
from headrace.core.groups.offsets import GroupOffsets, expired, expired_since_commit
from headrace.core.groups.records import CommittedOffset, GroupRecord, OffsetRecord, Record
from headrace.core.groups.settings import (
    DEADLINES_PER_TURN,
    GROUPS_PER_SLICE,
    OFFSETS_PER_GROUP_MAX,
    OFFSETS_PER_SLICE,
    SLICE_PAUSE_MS,
    GroupSettings,
)
from headrace.core.groups.states import GroupEvent, GroupState
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TIMESTAMP

_NONE = ErrorCode.NONE
_NO_OFFSETS = GroupOffsets()

GroupDecision = Decision[Record]
Effects = Outcome[Record]


class GroupCoordinator:
    def __init__(self, settings: GroupSettings) -> None:
        self.groups: dict[str, ClassicGroup] = {}
        self.consumers: dict[str, ConsumerGroup] = {}
        """Groups of KIP-848; no group is in both."""
        self.offsets: dict[str, GroupOffsets] = {}
        self._deadlines: GroupDeadlines = Deadlines()
        self._classic = ClassicProtocol(settings, self._deadlines)
        self._consumer = ConsumerProtocol(settings, self._deadlines)
        self._to_look_at: list[str] = []
        """Groups whose offsets the round of retention that is under way has not looked at yet."""

    @property
    def settings(self) -> GroupSettings:
        return self._classic.settings

    def configure(self, settings: GroupSettings) -> None:
        self._classic.settings = self._consumer.settings = settings

    # Records

    def apply(self, record: Record) -> None:
        if isinstance(record, OffsetRecord):
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

    def _apply_offset(self, record: OffsetRecord) -> None:
        offsets = self.offsets.get(record.group)
        if offsets is None:
            if record.committed is None:
                return
            offsets = self.offsets[record.group] = GroupOffsets()
            if record.group not in self.consumers:
                self._group_for(record.group)
        offsets.apply(record)
        if not offsets.count:
            del self.offsets[record.group]
            if record.group in self.groups:
                self._forget_if_void(self.groups[record.group])

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
            if record.group in self.offsets:
                self._group_for(record.group)

    def _group_for(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _forget_if_void(self, group: ClassicGroup) -> None:
        if group.is_void and group.group_id not in self.offsets:
            self._classic.forget_waits(group)
            self.groups.pop(group.group_id, None)

    def _outcome(self) -> Effects:
        return Outcome(self.apply)

    # Time

    def loaded(self, now: Now) -> None:
        for group in self.groups.values():
            self._classic.restored(group, now)
        for consumers in self.consumers.values():
            self._consumer.restored(consumers, now)
        self._deadlines.set(Waiting(Wait.RETENTION), now.monotonic_ms + self.settings.offset_check_interval_ms)

    def next_deadline_ms(self) -> float | None:
        return self._deadlines.next_ms()

    def expire(self, now: Now) -> GroupDecision:
        out = self._outcome()
        for waiting in self._deadlines.take_due(now.monotonic_ms, DEADLINES_PER_TURN):
            if waiting.wait is Wait.RETENTION:
                self._look_at_retention(out, now)
                continue
            consumers = self.consumers.get(waiting.group)
            if consumers is not None and waiting.member in consumers.members:
                self._consumer.fence(consumers, waiting.member, out)
            group = self.groups.get(waiting.group)
            if group is None:
                continue
            if waiting.wait is Wait.SESSION:
                self._classic.session_ended(group, waiting.member, out, now)
            elif waiting.wait is Wait.PENDING_MEMBER:
                self._classic.pending_ended(group, waiting.member, out, now)
            elif waiting.wait is Wait.JOINS:
                self._classic.joins_waited_for(group, out, now)
            else:
                self._classic.syncs_waited_for(group, out, now)
            self._forget_if_void(group)
        return out.decision()

    def _look_at_retention(self, out: Effects, now: Now) -> None:
        """Some groups of this round; the next ones in the next turn, and the next round after the interval."""
        if not self._to_look_at:
            self._to_look_at = list(reversed(self.group_ids()))
        offsets_left = OFFSETS_PER_SLICE
        for _ in range(GROUPS_PER_SLICE):
            if not self._to_look_at or offsets_left <= 0:
                break
            group_id = self._to_look_at.pop()
            offsets_left -= self.offsets.get(group_id, _NO_OFFSETS).count
            if group_id in self.groups:
                self._expire_offsets(self.groups[group_id], out, now)
            elif group_id in self.consumers:
                self._expire_consumer_offsets(self.consumers[group_id], out, now)
        wait_ms = SLICE_PAUSE_MS if self._to_look_at else self.settings.offset_check_interval_ms
        self._deadlines.set(Waiting(Wait.RETENTION), now.monotonic_ms + wait_ms)

    def _expire_offsets(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        offsets = self.offsets.get(group.group_id, _NO_OFFSETS)
        over = expired(offsets, group, now_ms=now.wall_ms, retention_ms=self.settings.offset_retention_ms)
        all_over = len(over) == offsets.count
        for topic, partition in over:
            out.write(OffsetRecord(group.group_id, topic, partition, None))
        if all_over and group.state is GroupState.EMPTY and not group.pending and group.recorded is not None:
            out.write(GroupRecord(group.group_id, None))

    def _expire_consumer_offsets(self, group: ConsumerGroup, out: Effects, now: Now) -> None:
        offsets = self.offsets.get(group.group_id, _NO_OFFSETS)
        in_use = {topic for member in group.members.values() for topic in group.subscribed(member)}
        over = expired_since_commit(offsets, in_use, now_ms=now.wall_ms, retention_ms=self.settings.offset_retention_ms)
        all_over = len(over) == offsets.count
        for topic, partition in over:
            out.write(OffsetRecord(group.group_id, topic, partition, None))
        if all_over and not group.members:
            self._delete_consumer_group(group, out)

    def _delete_consumer_group(self, group: ConsumerGroup, out: Effects) -> None:
        out.write(TargetEpochRecord(group.group_id, None))
        out.write(EpochRecord(group.group_id, None))

    def group_ids(self) -> list[str]:
        return [*self.groups, *self.consumers]

    # Membership

    def consumer_heartbeat(
        self, command: ConsumerHeartbeat, topics: TopicCatalog, ticket: Ticket, now: Now
    ) -> GroupDecision:
        """Answered with a ConsumerHeartbeatResult."""
        out = self._outcome()
        try:
            group = self._consumer_group(command)
            result = self._consumer.heartbeat(group, command, topics, out, now)
        except Refusal as refusal:
            result = ConsumerHeartbeatResult(refusal.error, refusal.message)
        classic = self.groups.get(command.group)
        if command.group in self.consumers and self.consumers[command.group].is_void:
            del self.consumers[command.group]
        elif classic is not None and command.group in self.consumers:
            if classic.recorded is not None:
                out.write(GroupRecord(command.group, None))
            self.groups.pop(command.group, None)
        out.answer(ticket, result)
        return out.decision()

    def _consumer_group(self, command: ConsumerHeartbeat) -> ConsumerGroup:
        """The group; a new one is forgotten again if nothing is written to it."""
        group = self.consumers.get(command.group)
        if group is not None:
            return group
        if command.epoch != JOINING_EPOCH:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {command.group}")
        classic = self.groups.get(command.group)
        if classic is not None and (classic.members or classic.pending or classic.state is not GroupState.EMPTY):
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, "the group has members of the classic protocol")
        if classic is None and len(self.groups) + len(self.consumers) >= self.settings.groups_max:
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "there are too many groups")
        group = self.consumers[command.group] = ConsumerGroup(command.group)
        return group

    def join(self, command: Join, ticket: Ticket, now: Now) -> GroupDecision:
        out = self._outcome()
        consumers = self.consumers.get(command.group)
        if consumers is not None and consumers.members:
            out.answer(ticket, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id))
            return out.decision()
        if consumers is not None:
            self._delete_consumer_group(consumers, out)
        group = self.groups.get(command.group)
        if group is None:
            error = self._new_group_error(command)
            if error is not _NONE:
                out.answer(ticket, JoinResult(error, command.member_id))
                return out.decision()
            group = self._group_for(command.group)
        self._classic.join(group, command, ticket, out, now)
        self._forget_if_void(group)
        return out.decision()

    def _new_group_error(self, command: Join) -> ErrorCode:
        if command.member_id != NO_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.GROUP_MAX_SIZE_REACHED if len(self.groups) >= self.settings.groups_max else _NONE

    def sync(self, command: Sync, ticket: Ticket, now: Now) -> GroupDecision:
        out = self._outcome()
        group = self.groups.get(command.member.group)
        if group is None:
            out.answer(ticket, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._classic.sync(group, command, ticket, out, now)
        return out.decision()

    def heartbeat(self, member: Membership, ticket: Ticket, now: Now) -> GroupDecision:
        out = self._outcome()
        group = self.groups.get(member.group)
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._classic.heartbeat(group, member, now)
        out.answer(ticket, error)
        return out.decision()

    def leave(self, group_id: str, leaving: Sequence[LeavingMember], ticket: Ticket, now: Now) -> GroupDecision:
        """Answered with a list of LeaveResult."""
        out = self._outcome()
        group = self.groups.get(group_id)
        if group is None:
            results = [LeaveResult(*member, ErrorCode.UNKNOWN_MEMBER_ID) for member in leaving]
        else:
            members_before = len(group.members)
            results = [self._classic.leave(group, member, out) for member in leaving]
            if len(group.members) < members_before or group.state is GroupState.PREPARING_REBALANCE:
                self._classic.left(group, out, now)
            self._forget_if_void(group)
        out.answer(ticket, results)
        return out.decision()

    # Offsets

    def commit(self, command: Commit, ticket: Ticket, now: Now) -> GroupDecision:
        """Answered with one ErrorCode for each offset."""
        out = self._outcome()
        error = self._commit_error(command, now)
        errors = []
        for asked in command.offsets:
            if error is not _NONE:
                errors.append(error)
            elif len(asked.metadata.encode()) > self.settings.offset_metadata_bytes_max:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            elif self.offsets.get(command.member.group, _NO_OFFSETS).count >= OFFSETS_PER_GROUP_MAX:
                errors.append(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
            else:
                expires = now.wall_ms + command.retention_ms if command.retention_ms >= 0 else NO_TIMESTAMP
                committed = CommittedOffset(asked.offset, asked.leader_epoch, asked.metadata, now.wall_ms, expires)
                out.write(OffsetRecord(command.member.group, asked.topic, asked.partition, committed))
                errors.append(_NONE)
        out.answer(ticket, errors)
        return out.decision()

    def _commit_error(self, command: Commit, now: Now) -> ErrorCode:
        member = command.member
        if member.group in self.consumers:
            return self._consumer.commit_error(self.consumers[member.group], member)
        group = self.groups.get(member.group)
        if group is None:
            if member.generation >= 0:
                return command.unknown_group_error
            # Not a member of anything: an administrator, or a consumer that assigns partitions to itself.
            too_many = len(self.groups) >= self.settings.groups_max
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if too_many else _NONE
        if member.generation < 0 and group.state is GroupState.EMPTY:
            return _NONE
        if member.generation < 0 and member.member_id == NO_MEMBER and member.instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self._classic.commit_error(group, member)
        if error is _NONE:
            self._classic.showed_life(group, member, now)
        return error

    def fetch_offsets(
        self,
        group_id: str,
        wanted: Iterable[tuple[str, int]] | None,
        ticket: Ticket,
        now: Now,
        member: Membership | None = None,
    ) -> GroupDecision:
        """Answered with a list of FetchedOffset: those asked for, or all there are; or with an ErrorCode."""
        out = self._outcome()
        if member is not None and group_id in self.consumers:
            error = self._consumer.commit_error(self.consumers[group_id], member)
            if error is not _NONE:
                out.answer(ticket, error)
                return out.decision()
        offsets = self.offsets.get(group_id, _NO_OFFSETS)
        if wanted is None:
            found = [FetchedOffset(*each) for each in offsets]
        else:
            found = [FetchedOffset(topic, partition, offsets.get(topic, partition)) for topic, partition in wanted]
        out.answer(ticket, found)
        return out.decision()

    def delete_offsets(
        self, group_id: str, doomed: Sequence[tuple[str, int]], ticket: Ticket, now: Now
    ) -> GroupDecision:
        """Answered with one ErrorCode for all, and one for each offset."""
        out = self._outcome()
        group = self.groups.get(group_id) or self.consumers.get(group_id)
        if group is None:
            out.answer(ticket, (ErrorCode.GROUP_ID_NOT_FOUND, []))
        elif isinstance(group, ClassicGroup) and not (group.state is GroupState.EMPTY or group.uses_consumer_protocol):
            out.answer(ticket, (ErrorCode.NON_EMPTY_GROUP, []))
        else:
            errors = []
            offsets = self.offsets.get(group_id, _NO_OFFSETS)
            for topic, partition in doomed:
                subscribed = group.is_subscribed_to(topic)
                if not subscribed and offsets.get(topic, partition) is not None:
                    out.write(OffsetRecord(group_id, topic, partition, None))
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else _NONE)
            out.answer(ticket, (_NONE, errors))
        return out.decision()

    def forget_topics(self, topics: Collection[str], group_ids: Iterable[str], ticket: Ticket) -> GroupDecision:
        """The topics were deleted: what these groups committed for them goes too."""
        out = self._outcome()
        for group_id in group_ids:
            offsets = self.offsets.get(group_id, _NO_OFFSETS)
            for topic in topics:
                for partition in tuple(offsets.by_topic.get(topic, ())):
                    out.write(OffsetRecord(group_id, topic, partition, None))
        out.answer(ticket, _NONE)
        return out.decision()

    # Groups as a whole

    def delete_group(self, group_id: str, ticket: Ticket, now: Now) -> GroupDecision:
        """Answered with an ErrorCode."""
        out = self._outcome()
        group, consumers = self.groups.get(group_id), self.consumers.get(group_id)
        if group is None and consumers is None:
            out.answer(ticket, ErrorCode.GROUP_ID_NOT_FOUND)
            return out.decision()
        if (consumers is not None and consumers.members) or (
            group is not None and (group.state is not GroupState.EMPTY or group.pending)
        ):
            out.answer(ticket, ErrorCode.NON_EMPTY_GROUP)
            return out.decision()
        for topic, partition, _ in tuple(self.offsets.get(group_id, _NO_OFFSETS)):
            out.write(OffsetRecord(group_id, topic, partition, None))
        if consumers is not None:
            self._delete_consumer_group(consumers, out)
        if group is not None:
            group.move(GroupEvent.DELETED)
            out.write(GroupRecord(group_id, None))
        out.answer(ticket, _NONE)
        return out.decision()

    def describe(self, group_id: str, ticket: Ticket) -> GroupDecision:
        out = self._outcome()
        group = self.groups.get(group_id)
        if group is None:
            out.answer(ticket, DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, group_id, GroupState.DEAD))
        else:
            out.answer(ticket, describing.described(group))
        return out.decision()

    def describe_consumers(self, group_id: str, ticket: Ticket) -> GroupDecision:
        """Answered with a DescribedConsumerGroup, or an ErrorCode if there is no such group."""
        out = self._outcome()
        group = self.consumers.get(group_id)
        if group is None:
            out.answer(ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            out.answer(ticket, describing.described_consumers(group, self.settings.consumer_assignors[0]))
        return out.decision()

    def list_groups(self, group_ids: Iterable[str], ticket: Ticket) -> GroupDecision:
        """Answered with a list of ListedGroup, of those that are still there."""
        out = self._outcome()
        found: list[ListedGroup] = []
        for group_id in group_ids:
            group, consumers = self.groups.get(group_id), self.consumers.get(group_id)
            if group is not None:
                found.append(describing.listed(group))
            elif consumers is not None:
                found.append(describing.listed_consumers(consumers))
        out.answer(ticket, found)
        return out.decision()
