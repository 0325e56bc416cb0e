"""The group coordinator of one partition of `__consumer_offsets`: decides each request by records and responses.

State is in `GroupTables` and changes only by applied records. Each group speaks one of two protocols, classic or
KIP-848; this module finds out which, moves a group from one to the other, and leaves the rest to the protocols.
"""

from collections.abc import Iterable
from dataclasses import replace

from headrace.core.coordination.deadlines import Deadlines
from headrace.core.coordination.machine import Now, Ticket
from headrace.core.groups import group_descriptions
from headrace.core.groups.classic import ClassicProtocol
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.classic_members import ClassicMembers
from headrace.core.groups.commands import (
    NO_MEMBER,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribedClassicGroup,
    GroupListing,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    MemberClaim,
    Sync,
    SyncResult,
)
from headrace.core.groups.consumer import JOINING_EPOCH, LEAVING_EPOCH, ConsumerProtocol
from headrace.core.groups.consumer_group import LEFT_STATIC_EPOCH, ConsumerGroup, ConsumerGroupState
from headrace.core.groups.deadlines import DeadlineKind, GroupDeadline, GroupDeadlines
from headrace.core.groups.migration import (
    can_downgrade,
    can_upgrade,
    delete_records,
    downgrade_records,
    is_empty,
    upgrade_records,
)
from headrace.core.groups.offset_requests import OffsetRequests
from headrace.core.groups.offset_retention import OffsetRetention
from headrace.core.groups.records import GroupRecord, OffsetRecord, Record
from headrace.core.groups.settings import DEADLINES_PER_TURN, GroupCoordinatorSettings
from headrace.core.groups.states import GroupEvent, GroupState
from headrace.core.groups.tables import GroupDecision, GroupDecisionBuilder, GroupTables
from headrace.core.groups.targets import GroupRequestRefused, TopicCatalog
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE


class GroupCoordinator:
    def __init__(self, settings: GroupCoordinatorSettings, topics: TopicCatalog) -> None:
        self.settings = settings
        self._deadlines: GroupDeadlines = Deadlines()
        self.tables = GroupTables(self._deadlines)
        self._classic = ClassicProtocol(settings, self._deadlines)
        self._consumer = ConsumerProtocol(settings, self._deadlines, topics)
        self._classic_members = ClassicMembers(settings, self._deadlines, self._consumer)
        self.offset_requests = OffsetRequests(settings, self.tables, self._classic, self._consumer)
        self._retention = OffsetRetention(settings, self.tables, self._deadlines)

    # Records

    def apply(self, record: Record) -> None:
        self.tables.apply(record)

    def apply_pending(self, producer_id: int, record: Record) -> None:
        self.tables.apply_pending(producer_id, record)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        self.tables.end_transaction(producer_id, commit=commit)

    # Time

    def loaded(self, now: Now) -> None:
        for group in self.tables.classic_groups.values():
            self._classic.start_sessions(group, now)
        for consumers in self.tables.consumer_groups.values():
            self._consumer.start_sessions(consumers, now)
            self._classic_members.start_sessions(consumers, now)
        self._retention.schedule(now)

    def next_deadline_ms(self) -> float | None:
        return self._deadlines.next_ms()

    def expire(self, now: Now) -> GroupDecision:
        out = self.tables.begin_decision()
        for deadline in self._deadlines.take_due(now.monotonic_ms, DEADLINES_PER_TURN):
            group = self.tables.classic_groups.get(deadline.group)
            consumers = self.tables.consumer_groups.get(deadline.group)
            if deadline.kind is DeadlineKind.RETENTION:
                self._retention.expire_slice(out, now)
            elif deadline.kind is DeadlineKind.ASSIGNMENT:
                if consumers is not None:
                    self._consumer.continue_assignment(consumers, out, now)
            elif consumers is not None:
                if deadline.member in consumers.members:
                    self._fence(consumers, deadline.member, out, now)
            elif group is not None:
                self._expire_classic(group, deadline, out, now)
        return out.decision()

    def _expire_classic(
        self, group: ClassicGroup, deadline: GroupDeadline, out: GroupDecisionBuilder, now: Now
    ) -> None:
        if deadline.kind is DeadlineKind.SESSION:
            self._classic.session_expired(group, deadline.member, out, now)
        elif deadline.kind is DeadlineKind.PENDING_MEMBER:
            self._classic.pending_member_expired(group, deadline.member, out, now)
        elif deadline.kind is DeadlineKind.JOINS:
            self._classic.join_phase_expired(group, out, now)
        elif deadline.kind is DeadlineKind.RESPONSES:
            self._classic.responses.send_some(group, out, now)
        else:
            self._classic.sync_phase_expired(group, out, now)
        self.tables.forget_if_unused(group)

    # Membership, KIP-848

    def consumer_heartbeat(self, command: ConsumerHeartbeat, ticket: Ticket, now: Now) -> GroupDecision:
        """Keep a member alive, let it join or leave. The response is a ConsumerHeartbeatResult."""
        out = self.tables.begin_decision()
        try:
            if command.epoch in (LEAVING_EPOCH, LEFT_STATIC_EPOCH):
                result = self._leave_consumer_group(command, out, now)
            else:
                group = self._consumer_group(command, out, now)
                result = self._consumer.heartbeat(group, command, out, now)
        except GroupRequestRefused as refusal:
            result = ConsumerHeartbeatResult(refusal.error, refusal.message)
        out.respond(ticket, result)
        return out.decision()

    def _consumer_group(self, command: ConsumerHeartbeat, out: GroupDecisionBuilder, now: Now) -> ConsumerGroup:
        """Return the group of the heartbeat. A joining member creates it, or converts a classic group."""
        group = self.tables.consumer_groups.get(command.group)
        if group is not None:
            return group
        if command.epoch != JOINING_EPOCH:
            raise GroupRequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {command.group} does not exist")
        classic = self.tables.classic_groups.get(command.group)
        self._consumer.check_first_member(command, 0 if classic is None else len(classic.members))
        if classic is not None:
            self._upgrade(classic, out, now)
        elif self.tables.group_count >= self.settings.groups_max:
            raise GroupRequestRefused(ErrorCode.GROUP_MAX_SIZE_REACHED, "the coordinator has too many groups")
        return self.tables.consumer_groups.setdefault(command.group, ConsumerGroup(command.group))

    def _leave_consumer_group(
        self, command: ConsumerHeartbeat, out: GroupDecisionBuilder, now: Now
    ) -> ConsumerHeartbeatResult:
        group = self.tables.consumer_groups.get(command.group)
        if group is None:
            raise GroupRequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {command.group} does not exist")
        member = self._consumer.leaving_member(group, command)
        if command.epoch == LEFT_STATIC_EPOCH:
            self._consumer.leave_temporarily(group, member, out)
        else:
            self._fence(group, command.member_id, out, now)
        return ConsumerHeartbeatResult(_NONE, None, command.member_id, command.epoch)

    def _fence(self, group: ConsumerGroup, member_id: str, out: GroupDecisionBuilder, now: Now) -> None:
        """Remove a member. If it was the last KIP-848 member, the group returns to the classic protocol."""
        allowed, members_max = self.settings.downgrades, self.settings.members_max
        if can_downgrade(group, member_id, allowed=allowed, members_max=members_max):
            classic = self._downgrade(group, member_id, out, now)
            self._classic.rebalance(classic, out, now)
        else:
            self._consumer.fence(group, member_id, out)

    # Migration between the protocols

    def _upgrade(self, classic: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        records: list[Record] = []
        if not is_empty(classic):
            members_max = self.settings.consumer_members_max
            if not can_upgrade(classic, allowed=self.settings.upgrades, members_max=members_max):
                raise GroupRequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, "the group has members of the classic protocol")
            records = upgrade_records(classic, self._consumer.topics)
        elif classic.recorded is not None:
            records = [GroupRecord(classic.group_id, None)]
        self._classic.disband(classic, out)
        for record in records:
            out.write(record)
        self.tables.classic_groups.pop(classic.group_id, None)
        group = self.tables.consumer_groups.get(classic.group_id)
        if group is not None:
            self._classic_members.start_sessions(group, now)

    def _downgrade(
        self, group: ConsumerGroup, removed: str | None, out: GroupDecisionBuilder, now: Now
    ) -> ClassicGroup:
        downgrade = downgrade_records(group, removed, self._consumer.topics, now.wall_ms)
        for member_id in group.members:
            self._consumer.drop_deadlines(group, member_id)
        for record in downgrade.records:
            out.write(record)
        classic = self.tables.classic_groups[group.group_id]
        for member_id, protocols in downgrade.protocols.items():
            classic.set_protocols(classic.members[member_id], protocols)
        self._classic.start_sessions(classic, now)
        return classic

    # Membership, classic

    def join(self, command: Join, ticket: Ticket, now: Now) -> GroupDecision:
        """Join a group. The response is a JoinResult; in a classic group it waits for the other members."""
        out = self.tables.begin_decision()
        consumers = self.tables.consumer_groups.get(command.group)
        if consumers is not None and consumers.members:
            self._join_consumer_group(consumers, command, ticket, out, now)
            return out.decision()
        if consumers is not None:
            for record in delete_records(consumers):
                out.write(record)
        group = self.tables.classic_groups.get(command.group)
        if group is None:
            error = self._new_group_error(command)
            if error is not _NONE:
                out.respond(ticket, JoinResult(error, command.member_id))
                return out.decision()
            group = self.tables.get_or_create_classic_group(command.group)
        self._classic.join(group, command, ticket, out, now)
        self.tables.forget_if_unused(group)
        return out.decision()

    def _join_consumer_group(
        self, group: ConsumerGroup, command: Join, ticket: Ticket, out: GroupDecisionBuilder, now: Now
    ) -> None:
        """Let a classic member join a KIP-848 group; convert the group if it replaces the last KIP-848 member."""
        replaced = group.members.get(group.static_members.get(command.instance_id or NO_MEMBER, NO_MEMBER))
        try:
            result = self._classic_members.join(group, command, out, now)
        except GroupRequestRefused as refusal:
            out.respond(ticket, JoinResult(refusal.error, command.member_id))
            return
        last_replaced = replaced is not None and replaced.subscription.classic is None
        all_classic = group.classic_count == len(group.members) <= self.settings.members_max
        if not (last_replaced and all_classic and self.settings.downgrades):
            out.respond(ticket, result)
            return
        was_stable = group.state is ConsumerGroupState.STABLE
        classic = self._downgrade(group, None, out, now)
        if was_stable:
            out.respond(ticket, result)
        else:
            # A member still has to revoke a partition: only a generation of all members can reassign it.
            self._classic.rebalance(classic, out, now)
            self._classic.join(classic, replace(command, member_id=result.member_id), ticket, out, now)

    def _new_group_error(self, command: Join) -> ErrorCode:
        if command.member_id != NO_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_full = len(self.tables.classic_groups) >= self.settings.groups_max
        return ErrorCode.GROUP_MAX_SIZE_REACHED if is_full else _NONE

    def sync(self, command: Sync, ticket: Ticket, now: Now) -> GroupDecision:
        """Hand in or collect an assignment. The response is a SyncResult; it waits for the leader's assignment."""
        out = self.tables.begin_decision()
        group = self.tables.classic_groups.get(command.member.group)
        consumers = self.tables.consumer_groups.get(command.member.group)
        if group is not None:
            self._classic.sync(group, command, ticket, out, now)
        elif consumers is not None:
            try:
                out.respond(ticket, self._classic_members.sync(consumers, command, now))
            except GroupRequestRefused as refusal:
                out.respond(ticket, SyncResult(refusal.error))
        else:
            out.respond(ticket, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        return out.decision()

    def heartbeat(self, member: MemberClaim, ticket: Ticket, now: Now) -> GroupDecision:
        """Extend the session of a classic member. The response is an ErrorCode."""
        out = self.tables.begin_decision()
        out.respond(ticket, self._heartbeat_error(member, now))
        return out.decision()

    def _heartbeat_error(self, member: MemberClaim, now: Now) -> ErrorCode:
        group = self.tables.classic_groups.get(member.group)
        if group is not None:
            return self._classic.heartbeat(group, member, now)
        consumers = self.tables.consumer_groups.get(member.group)
        if consumers is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            return self._classic_members.heartbeat(consumers, member, now)
        except GroupRequestRefused as refusal:
            return refusal.error

    def leave(self, command: Leave, ticket: Ticket, now: Now) -> GroupDecision:
        """Remove members from a group. The response is a list of LeaveResult."""
        out = self.tables.begin_decision()
        group = self.tables.classic_groups.get(command.group)
        consumers = self.tables.consumer_groups.get(command.group)
        if consumers is not None:
            results = self._leave_mixed_group(consumers, command, out, now)
        elif group is None:
            results = [LeaveResult(*member, ErrorCode.UNKNOWN_MEMBER_ID) for member in command.members]
        else:
            members_before = len(group.members)
            results = [self._classic.leave(group, member, out) for member in command.members]
            if len(group.members) < members_before or group.state is GroupState.PREPARING_REBALANCE:
                self._classic.members_removed(group, out, now)
            self.tables.forget_if_unused(group)
        out.respond(ticket, results)
        return out.decision()

    def _leave_mixed_group(
        self, group: ConsumerGroup, command: Leave, out: GroupDecisionBuilder, now: Now
    ) -> list[LeaveResult]:
        had_consumers = group.classic_count < len(group.members)
        results = self._classic_members.leave(group, command.members, out)
        all_classic = 0 < group.classic_count == len(group.members) <= self.settings.members_max
        if had_consumers and all_classic and self.settings.downgrades:
            self._classic.rebalance(self._downgrade(group, None, out, now), out, now)
        return results

    # Administration

    def delete_group(self, group_id: str, ticket: Ticket) -> GroupDecision:
        """Delete a group without members, and its offsets. The response is an ErrorCode."""
        out = self.tables.begin_decision()
        group, consumers = self.tables.classic_groups.get(group_id), self.tables.consumer_groups.get(group_id)
        if group is None and consumers is None:
            out.respond(ticket, ErrorCode.GROUP_ID_NOT_FOUND)
            return out.decision()
        if (consumers is not None and consumers.members) or (
            group is not None and (group.state is not GroupState.EMPTY or group.pending)
        ):
            out.respond(ticket, ErrorCode.NON_EMPTY_GROUP)
            return out.decision()
        for topic, partition in self.tables.partitions_with_offsets(group_id):
            out.write(OffsetRecord(group_id, topic, partition, None))
        if consumers is not None:
            for record in delete_records(consumers):
                out.write(record)
        if group is not None:
            group.move(GroupEvent.DELETED)
            out.write(GroupRecord(group_id, None))
        out.respond(ticket, _NONE)
        return out.decision()

    def describe_classic_group(self, group_id: str, ticket: Ticket) -> GroupDecision:
        """Describe a classic group. The response is a DescribedClassicGroup."""
        out = self.tables.begin_decision()
        group = self.tables.classic_groups.get(group_id)
        if group is None:
            out.respond(ticket, DescribedClassicGroup(ErrorCode.GROUP_ID_NOT_FOUND, group_id, GroupState.DEAD))
        else:
            out.respond(ticket, group_descriptions.describe_classic_group(group))
        return out.decision()

    def describe_consumer_group(self, group_id: str, ticket: Ticket) -> GroupDecision:
        """Describe a KIP-848 group. The response is a DescribedConsumerGroup, or an ErrorCode if there is none."""
        out = self.tables.begin_decision()
        group = self.tables.consumer_groups.get(group_id)
        if group is None:
            out.respond(ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            default_assignor = self.settings.consumer_assignors[0]
            out.respond(ticket, group_descriptions.describe_consumer_group(group, default_assignor))
        return out.decision()

    def list_groups(self, group_ids: Iterable[str], ticket: Ticket) -> GroupDecision:
        """List groups. The response is a list with a GroupListing for each of these ids that still exists."""
        out = self.tables.begin_decision()
        found: list[GroupListing] = []
        for group_id in group_ids:
            group, consumers = self.tables.classic_groups.get(group_id), self.tables.consumer_groups.get(group_id)
            if group is not None:
                found.append(group_descriptions.list_classic_group(group))
            elif consumers is not None:
                found.append(group_descriptions.list_consumer_group(consumers))
        out.respond(ticket, found)
        return out.decision()
