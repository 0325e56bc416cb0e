"""The machine behind one partition of `__consumer_offsets`: its groups, their offsets, and what they are asked."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headrace.core.coordination.machine import Now, Ticket
from headrace.core.groups import group_descriptions
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.commands import (
    NO_MEMBER,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribedGroup,
    Join,
    JoinResult,
    LeaveResult,
    LeavingMember,
    ListedGroup,
    Membership,
    Sync,
    SyncResult,
)
from headrace.core.groups.consumer import JOINING_EPOCH, LEAVING_EPOCH
from headrace.core.groups.consumer_group import LEFT_STATIC_EPOCH, ConsumerGroup, ConsumerGroupState
from headrace.core.groups.deadlines import Wait, Waiting
from headrace.core.groups.migration import (
    can_downgrade,
    can_upgrade,
    delete_records,
    downgrade_records,
    is_empty,
    upgrade_records,
)
from headrace.core.groups.offset_requests import OffsetRequests
from headrace.core.groups.records import GroupRecord, OffsetRecord, Record
from headrace.core.groups.settings import DEADLINES_PER_TURN
from headrace.core.groups.states import GroupEvent, GroupState
from headrace.core.groups.tables import Effects, GroupDecision
from headrace.core.groups.targets import Refusal
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE


class GroupCoordinator(OffsetRequests):
    # Time

    def loaded(self, now: Now) -> None:
        for group in self.groups.values():
            self._classic.restored(group, now)
        for consumers in self.consumers.values():
            self._consumer.restored(consumers, now)
            self._mixed.restored(consumers, now)
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
            if waiting.wait is Wait.ASSIGNMENT:
                if consumers is not None:
                    self._consumer.assign_some(consumers, out, now)
                continue
            if consumers is not None:
                if waiting.member in consumers.members:
                    self._fence(consumers, waiting.member, out, now)
                continue
            group = self.groups.get(waiting.group)
            if group is None:
                continue
            if waiting.wait is Wait.SESSION:
                self._classic.session_ended(group, waiting.member, out, now)
            elif waiting.wait is Wait.PENDING_MEMBER:
                self._classic.pending_ended(group, waiting.member, out, now)
            elif waiting.wait is Wait.JOINS:
                self._classic.joins_waited_for(group, out, now)
            elif waiting.wait is Wait.ANSWERS:
                self._classic.tell_some(group, out, now)
            else:
                self._classic.syncs_waited_for(group, out, now)
            self._forget_if_void(group)
        return out.decision()

    # Membership

    def consumer_heartbeat(self, command: ConsumerHeartbeat, ticket: Ticket, now: Now) -> GroupDecision:
        """Answered with a ConsumerHeartbeatResult."""
        out = self._outcome()
        try:
            if command.epoch in (LEAVING_EPOCH, LEFT_STATIC_EPOCH):
                result = self._leave_consumers(command, out, now)
            else:
                group = self._consumer_group(command, out, now)
                result = self._consumer.heartbeat(group, command, out, now)
        except Refusal as refusal:
            result = ConsumerHeartbeatResult(refusal.error, refusal.message)
        out.answer(ticket, result)
        return out.decision()

    def _consumer_group(self, command: ConsumerHeartbeat, out: Effects, now: Now) -> ConsumerGroup:
        """The group of that name; one that joins makes it, or takes it over from the classic protocol."""
        group = self.consumers.get(command.group)
        if group is not None:
            return group
        if command.epoch != JOINING_EPOCH:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {command.group}")
        classic = self.groups.get(command.group)
        self._consumer.check_joining(command, 0 if classic is None else len(classic.members))
        if classic is not None:
            self._upgrade(classic, out, now)
        elif len(self.groups) + len(self.consumers) >= self.settings.groups_max:
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "there are too many groups")
        return self.consumers.setdefault(command.group, ConsumerGroup(command.group))

    def _upgrade(self, classic: ClassicGroup, out: Effects, now: Now) -> None:
        records: list[Record] = []
        if not is_empty(classic):
            members_max = self.settings.consumer_members_max
            if not can_upgrade(classic, allowed=self.settings.upgrades, members_max=members_max):
                raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, "the group has members of the classic protocol")
            records = upgrade_records(classic, self._consumer.topics)
        elif classic.recorded is not None:
            records = [GroupRecord(classic.group_id, None)]
        self._classic.disband(classic, out)
        for record in records:
            out.write(record)
        self.groups.pop(classic.group_id, None)
        group = self.consumers.get(classic.group_id)
        if group is not None:
            self._mixed.restored(group, now)

    def _leave_consumers(self, command: ConsumerHeartbeat, out: Effects, now: Now) -> ConsumerHeartbeatResult:
        group = self.consumers.get(command.group)
        if group is None:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {command.group}")
        member = self._consumer.leaving(group, command)
        if command.epoch == LEFT_STATIC_EPOCH:
            self._consumer.step_away(group, member, out)
        else:
            self._fence(group, command.member_id, out, now)
        return ConsumerHeartbeatResult(_NONE, None, command.member_id, command.epoch)

    def _fence(self, group: ConsumerGroup, member_id: str, out: Effects, now: Now) -> None:
        """A member is gone. If it was the last one of the new protocol, the others go on without that."""
        allowed, members_max = self.settings.downgrades, self.settings.members_max
        if can_downgrade(group, member_id, allowed=allowed, members_max=members_max):
            classic = self._downgrade(group, member_id, out, now)
            self._classic.rebalance(classic, out, now)
        else:
            self._consumer.fence(group, member_id, out)

    def _downgrade(self, group: ConsumerGroup, gone: str | None, out: Effects, now: Now) -> ClassicGroup:
        downgrade = downgrade_records(group, gone, self._consumer.topics, now.wall_ms)
        for member_id in group.members:
            self._consumer.forget_waits(group, member_id)
        for record in downgrade.records:
            out.write(record)
        classic = self.groups[group.group_id]
        for member_id, protocols in downgrade.protocols.items():
            classic.speak(classic.members[member_id], protocols)
        self._classic.restored(classic, now)
        return classic

    def join(self, command: Join, ticket: Ticket, now: Now) -> GroupDecision:
        out = self._outcome()
        consumers = self.consumers.get(command.group)
        if consumers is not None and consumers.members:
            self._join_consumers(consumers, command, ticket, out, now)
            return out.decision()
        if consumers is not None:
            for record in delete_records(consumers):
                out.write(record)
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

    def _join_consumers(self, group: ConsumerGroup, command: Join, ticket: Ticket, out: Effects, now: Now) -> None:
        replaced = group.members.get(group.static_members.get(command.instance_id or NO_MEMBER, NO_MEMBER))
        try:
            result = self._mixed.join(group, command, out, now)
        except Refusal as refusal:
            out.answer(ticket, JoinResult(refusal.error, command.member_id))
            return
        last_replaced = replaced is not None and replaced.subscription.classic is None
        all_classic = group.classic_count == len(group.members) <= self.settings.members_max
        if not (last_replaced and all_classic and self.settings.downgrades):
            out.answer(ticket, result)
            return
        settled = group.state is ConsumerGroupState.STABLE
        classic = self._downgrade(group, None, out, now)
        if settled:
            out.answer(ticket, result)
        else:
            # Somebody has to let go of something yet: only a generation of all of them can say who has what.
            self._classic.rebalance(classic, out, now)
            self._classic.join(classic, replace(command, member_id=result.member_id), ticket, out, now)

    def _new_group_error(self, command: Join) -> ErrorCode:
        if command.member_id != NO_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.GROUP_MAX_SIZE_REACHED if len(self.groups) >= self.settings.groups_max else _NONE

    def sync(self, command: Sync, ticket: Ticket, now: Now) -> GroupDecision:
        out = self._outcome()
        group, consumers = self.groups.get(command.member.group), self.consumers.get(command.member.group)
        if group is not None:
            self._classic.sync(group, command, ticket, out, now)
        elif consumers is not None:
            try:
                out.answer(ticket, self._mixed.sync(consumers, command, now))
            except Refusal as refusal:
                out.answer(ticket, SyncResult(refusal.error))
        else:
            out.answer(ticket, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        return out.decision()

    def heartbeat(self, member: Membership, ticket: Ticket, now: Now) -> GroupDecision:
        out = self._outcome()
        out.answer(ticket, self._heartbeat_error(member, now))
        return out.decision()

    def _heartbeat_error(self, member: Membership, now: Now) -> ErrorCode:
        group, consumers = self.groups.get(member.group), self.consumers.get(member.group)
        if group is not None:
            return self._classic.heartbeat(group, member, now)
        if consumers is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            return self._mixed.heartbeat(consumers, member, now)
        except Refusal as refusal:
            return refusal.error

    def leave(self, group_id: str, leaving: Sequence[LeavingMember], ticket: Ticket, now: Now) -> GroupDecision:
        """Answered with a list of LeaveResult."""
        out = self._outcome()
        group, consumers = self.groups.get(group_id), self.consumers.get(group_id)
        if consumers is not None:
            results = self._leave_mixed(consumers, leaving, out, now)
        elif group is None:
            results = [LeaveResult(*member, ErrorCode.UNKNOWN_MEMBER_ID) for member in leaving]
        else:
            members_before = len(group.members)
            results = [self._classic.leave(group, member, out) for member in leaving]
            if len(group.members) < members_before or group.state is GroupState.PREPARING_REBALANCE:
                self._classic.left(group, out, now)
            self._forget_if_void(group)
        out.answer(ticket, results)
        return out.decision()

    def _leave_mixed(
        self, group: ConsumerGroup, leaving: Sequence[LeavingMember], out: Effects, now: Now
    ) -> list[LeaveResult]:
        had_consumers = group.classic_count < len(group.members)
        results = self._mixed.leave(group, leaving, out)
        all_classic = 0 < group.classic_count == len(group.members) <= self.settings.members_max
        if had_consumers and all_classic and self.settings.downgrades:
            self._classic.rebalance(self._downgrade(group, None, out, now), out, now)
        return results

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
        for topic, partition in self._known_partitions(group_id):
            out.write(OffsetRecord(group_id, topic, partition, None))
        if consumers is not None:
            for record in delete_records(consumers):
                out.write(record)
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
            out.answer(ticket, group_descriptions.described(group))
        return out.decision()

    def describe_consumers(self, group_id: str, ticket: Ticket) -> GroupDecision:
        """Answered with a DescribedConsumerGroup, or an ErrorCode if there is no such group."""
        out = self._outcome()
        group = self.consumers.get(group_id)
        if group is None:
            out.answer(ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            out.answer(ticket, group_descriptions.described_consumers(group, self.settings.consumer_assignors[0]))
        return out.decision()

    def list_groups(self, group_ids: Iterable[str], ticket: Ticket) -> GroupDecision:
        """Answered with a list of ListedGroup, of those that are still there."""
        out = self._outcome()
        found: list[ListedGroup] = []
        for group_id in group_ids:
            group, consumers = self.groups.get(group_id), self.consumers.get(group_id)
            if group is not None:
                found.append(group_descriptions.listed(group))
            elif consumers is not None:
                found.append(group_descriptions.listed_consumers(consumers))
        out.answer(ticket, found)
        return out.decision()
