"""The classic group protocol: members join, the leader assigns partitions, all members sync and send heartbeats.

The rules are Kafka's, including the odd ones, because clients rely on them: which members a rebalance waits for, what
each response contains, and which error makes a client take which step.
"""

from headrace.core.coordination.machine import Now, Ticket
from headrace.core.groups.classic_group import ClassicGroup, ClassicGroupMember
from headrace.core.groups.classic_responses import ClassicResponses
from headrace.core.groups.commands import (
    NO_MEMBER,
    Join,
    JoinResult,
    LeaveResult,
    LeavingMember,
    MemberClaim,
    Sync,
    SyncResult,
)
from headrace.core.groups.deadlines import DeadlineKind, GroupDeadline, GroupDeadlines, drop_group_deadlines
from headrace.core.groups.records import GroupRecord
from headrace.core.groups.settings import (
    GROUP_BYTES_MAX,
    NEW_MEMBER_WAIT_MS_MAX,
    PENDING_MEMBERS_MAX,
    PROTOCOLS_PER_MEMBER_MAX,
    GroupCoordinatorSettings,
)
from headrace.core.groups.states import GroupEvent, GroupState
from headrace.core.groups.tables import GroupDecisionBuilder
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE
_REBALANCE_IN_PROGRESS = ErrorCode.REBALANCE_IN_PROGRESS


class ClassicProtocol:
    """Decides for one group at a time; `now` and `out` belong to the request or deadline being decided."""

    def __init__(self, settings: GroupCoordinatorSettings, deadlines: GroupDeadlines) -> None:
        self._settings = settings
        self._deadlines = deadlines
        self.responses = ClassicResponses(deadlines)

    # Join

    def join(self, group: ClassicGroup, command: Join, ticket: Ticket, out: GroupDecisionBuilder, now: Now) -> None:
        error = self._join_error(group, command)
        if error is not _NONE:
            out.respond(ticket, JoinResult(error, command.member_id))
        elif command.member_id == NO_MEMBER:
            self._join_new(group, command, ticket, out, now)
        elif command.member_id in group.pending and command.instance_id is None:
            self._add(group, command, command.member_id, ticket, out, now)
        else:
            self._join_again(group, command, ticket, out, now)

    def _join_error(self, group: ClassicGroup, command: Join) -> ErrorCode:
        settings = self._settings
        if not settings.session_timeout_ms_min <= command.session_timeout_ms <= settings.session_timeout_ms_max:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if not self._has_room(group, command):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if len(command.protocols) > PROTOCOLS_PER_MEMBER_MAX or not group.supports_protocols(
            command.protocol_type, command.protocols
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return _NONE

    def _has_room(self, group: ClassicGroup, command: Join) -> bool:
        member = group.members.get(command.member_id)
        offered_bytes = sum(len(name) + len(metadata) for name, metadata in command.protocols)
        held_bytes = group.metadata_bytes - (member.metadata_bytes() if member is not None else 0)
        if held_bytes + offered_bytes > GROUP_BYTES_MAX:
            return False
        members_max = self._settings.members_max
        if group.state is GroupState.PREPARING_REBALANCE:
            return (member is not None and member.join_ticket is not None) or group.waiting_joins < members_max
        return member is not None or len(group.members) < members_max

    def _join_new(
        self, group: ClassicGroup, command: Join, ticket: Ticket, out: GroupDecisionBuilder, now: Now
    ) -> None:
        if command.instance_id is not None:
            if command.instance_id in group.static_members:
                self._replace_static(group, command, ticket, out, now)
            else:
                self._add(group, command, command.new_member_id, ticket, out, now)
        elif command.member_id_required:
            self._reserve_member_id(group, command, now)
            out.respond(ticket, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, command.new_member_id))
        else:
            self._add(group, command, command.new_member_id, ticket, out, now)

    def _reserve_member_id(self, group: ClassicGroup, command: Join, now: Now) -> None:
        """Keep the id of a new member until the member joins with it; beyond the limit drop the oldest unused id.

        Refusing the join would be fatal to clients. A client whose id was dropped gets UNKNOWN_MEMBER_ID and asks for
        another one.
        """
        if len(group.pending) >= PENDING_MEMBERS_MAX:
            self._drop_pending(group, next(iter(group.pending)))
        group.pending[command.new_member_id] = None
        deadline = GroupDeadline(DeadlineKind.PENDING_MEMBER, group.group_id, command.new_member_id)
        self._deadlines.set(deadline, now.monotonic_ms + command.session_timeout_ms)
        self._extend_initial_wait(group, now)

    def _join_again(
        self, group: ClassicGroup, command: Join, ticket: Ticket, out: GroupDecisionBuilder, now: Now
    ) -> None:
        error = group.member_error(command.member_id, command.instance_id)
        if error is not _NONE or group.state is GroupState.EMPTY:
            out.respond(ticket, JoinResult(error or ErrorCode.UNKNOWN_MEMBER_ID, command.member_id))
            return
        member = group.members[command.member_id]
        is_leader = group.leader == command.member_id
        same = member.protocols == command.protocols
        if same and (
            group.state is GroupState.COMPLETING_REBALANCE or (group.state is GroupState.STABLE and not is_leader)
        ):
            # Resend the result of the join: the previous response may have been lost.
            out.respond(ticket, self.responses.join_result(group, member))
            self.responses.extend_session(group, member, now)
            return
        self._update(group, member, command, ticket, out, now)
        self._rebalance_or_complete(group, out, now)

    def _add(
        self, group: ClassicGroup, command: Join, member_id: str, ticket: Ticket, out: GroupDecisionBuilder, now: Now
    ) -> None:
        member = ClassicGroupMember(
            member_id=member_id,
            instance_id=command.instance_id,
            client_id=command.client_id,
            client_host=command.client_host,
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            session_timeout_ms=command.session_timeout_ms,
            protocols=command.protocols,
        )
        member.is_new = True
        if not group.members:
            group.protocol_type = command.protocol_type
        self._drop_pending(group, member_id)
        group.add(member)
        group.hold_join(member, ticket)
        session = GroupDeadline(DeadlineKind.SESSION, group.group_id, member_id)
        self._deadlines.set(session, now.monotonic_ms + NEW_MEMBER_WAIT_MS_MAX)
        self._rebalance_or_complete(group, out, now)
        self._extend_initial_wait(group, now)

    def _update(
        self,
        group: ClassicGroup,
        member: ClassicGroupMember,
        command: Join,
        ticket: Ticket,
        out: GroupDecisionBuilder,
        now: Now,
    ) -> None:
        member.session_timeout_ms = command.session_timeout_ms
        member.rebalance_timeout_ms = command.rebalance_timeout_ms
        member.client_id, member.client_host = command.client_id, command.client_host
        group.set_protocols(member, command.protocols)
        earlier = group.hold_join(member, ticket)
        if earlier is not None:
            out.respond(earlier, JoinResult(_REBALANCE_IN_PROGRESS, member.member_id))
        self.responses.extend_session(group, member, now)

    def _replace_static(
        self, group: ClassicGroup, command: Join, ticket: Ticket, out: GroupDecisionBuilder, now: Now
    ) -> None:
        """Give a static member that restarted a new member id, and fence requests with the old one (KIP-345)."""
        assert command.instance_id is not None
        leader_before = group.leader
        old_member_id = group.static_members[command.instance_id]
        member = group.replace_static(command.instance_id, command.new_member_id)
        self._deadlines.drop(GroupDeadline(DeadlineKind.SESSION, group.group_id, old_member_id))
        old_join = group.take_join_ticket(member)
        if old_join is not None:
            out.respond(old_join, JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_member_id))
        old_sync, member.sync_ticket = member.sync_ticket, None
        if old_sync is not None:
            out.respond(old_sync, SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        self._update(group, member, command, ticket, out, now)
        if group.state is GroupState.STABLE and group.elected_protocol() == group.protocol:
            self._keep_generation(group, member, command, leader_before, out, now)
        elif group.state is not GroupState.PREPARING_REBALANCE:
            self._prepare(group, out, now)
        else:
            self._complete_if_all_joined(group, out, now)

    def _keep_generation(
        self,
        group: ClassicGroup,
        member: ClassicGroupMember,
        command: Join,
        leader_before: str | None,
        out: GroupDecisionBuilder,
        now: Now,
    ) -> None:
        """Record the new id of a static member without a rebalance."""
        ticket = group.take_join_ticket(member)
        assert ticket is not None
        group.move(GroupEvent.MEMBER_REPLACED)
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        out.write(GroupRecord(group.group_id, group.to_metadata(assignments, group.since_ms)))
        is_leader = group.leader == member.member_id
        result = self.responses.join_result(group, member)
        if command.skip_assignment_supported:
            out.respond(ticket, result._replace(skip_assignment=is_leader))
        else:
            # A leader would compute an assignment: name the leader by its old id, so that the member does not.
            out.respond(ticket, result._replace(leader=leader_before or NO_MEMBER, members=()))

    # Rebalance

    def _rebalance_or_complete(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        if group.state is GroupState.PREPARING_REBALANCE:
            self._complete_if_all_joined(group, out, now)
        else:
            self._prepare(group, out, now)

    def _prepare(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Begin a rebalance: all members must join again. A new group first waits for more members."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            for member in group.members.values():
                group.assign(member, b"")
                self.responses.end_sync(member, SyncResult(_REBALANCE_IN_PROGRESS), out)
        self.responses.cancel(group, out)
        self._deadlines.drop(GroupDeadline(DeadlineKind.SYNCS, group.group_id))
        group.unsynced.clear()
        group.joins_initially = group.state is GroupState.EMPTY
        group.move(GroupEvent.REBALANCE_NEEDED)
        if group.joins_initially:
            delay_ms = min(self._settings.initial_rebalance_delay_ms, group.rebalance_timeout_ms)
            group.initial_wait_end_ms = now.monotonic_ms + delay_ms
            if delay_ms:
                self._extend_initial_wait(group, now)
            else:
                self._complete(group, out, now)
        else:
            joins = GroupDeadline(DeadlineKind.JOINS, group.group_id)
            self._deadlines.set(joins, now.monotonic_ms + group.rebalance_timeout_ms)
            self._complete_if_all_joined(group, out, now)

    def _extend_initial_wait(self, group: ClassicGroup, now: Now) -> None:
        """Extend the wait of a new group by another quiet period, within its initial delay, after a member came."""
        if group.state is GroupState.PREPARING_REBALANCE and group.joins_initially:
            quiet_end_ms = now.monotonic_ms + self._settings.initial_rebalance_quiet_ms
            self._deadlines.set(
                GroupDeadline(DeadlineKind.JOINS, group.group_id), min(quiet_end_ms, group.initial_wait_end_ms)
            )

    def join_phase_expired(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """End the join phase; a new group keeps waiting for members that have an id and have not joined with it."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if group.joins_initially and group.pending and now.monotonic_ms < group.initial_wait_end_ms:
            self._extend_initial_wait(group, now)
        else:
            self._complete(group, out, now)

    def _complete_if_all_joined(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        if group.all_joined and (not group.joins_initially or not group.members):
            self._complete(group, out, now)

    def _complete(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Begin the generation of the members that joined. Static members may be late; others are removed."""
        self._deadlines.drop(GroupDeadline(DeadlineKind.JOINS, group.group_id))
        late = [each for each in group.members.values() if each.join_ticket is None and each.instance_id is None]
        for member in late:
            self._remove_member(group, member.member_id, out)
        if group.members and not self._elect_leader(group):
            deadline = GroupDeadline(DeadlineKind.JOINS, group.group_id)
            self._deadlines.set(deadline, now.monotonic_ms + group.rebalance_timeout_ms)
            return
        group.joins_initially = False
        group.begin_generation()
        if not group.members:
            group.move(GroupEvent.NONE_JOINED)
            out.write(GroupRecord(group.group_id, group.to_metadata({}, now.wall_ms)))
            return
        group.move(GroupEvent.ALL_JOINED)
        group.unsynced = dict.fromkeys(group.members)
        group.awaiting_response = dict.fromkeys((group.leader or NO_MEMBER, *group.members))
        self.responses.send_some(group, out, now)
        self._deadlines.set(
            GroupDeadline(DeadlineKind.SYNCS, group.group_id), now.monotonic_ms + group.rebalance_timeout_ms
        )

    def _elect_leader(self, group: ClassicGroup) -> bool:
        """Choose a leader among the members that have joined; return False if none has."""
        leader = group.members.get(group.leader or NO_MEMBER)
        if leader is None or leader.join_ticket is None:
            group.leader = next((each.member_id for each in group.members.values() if each.join_ticket), group.leader)
            leader = group.members.get(group.leader or NO_MEMBER)
        return leader is not None and leader.join_ticket is not None

    # Sync

    def sync(self, group: ClassicGroup, command: Sync, ticket: Ticket, out: GroupDecisionBuilder, now: Now) -> None:
        error = self._sync_error(group, command)
        if error is not _NONE:
            out.respond(ticket, SyncResult(error))
            return
        member = group.members[command.member.member_id]
        self._mark_synced(group, member)
        if group.state is GroupState.STABLE:
            self.responses.extend_session(group, member, now)
            out.respond(ticket, self.responses.sync_result(group, member))
            return
        earlier, member.sync_ticket = member.sync_ticket, ticket
        if earlier is not None:
            out.respond(earlier, SyncResult(_REBALANCE_IN_PROGRESS))
        if group.leader == member.member_id:
            self._assign(group, dict(command.assignments), out, now)

    def _sync_error(self, group: ClassicGroup, command: Sync) -> ErrorCode:
        error = self.membership_error(group, command.member)
        if error is not _NONE:
            return error
        if command.protocol_type is not None and command.protocol_type != group.protocol_type:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if command.protocol is not None and command.protocol != group.protocol:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.PREPARING_REBALANCE:
            return _REBALANCE_IN_PROGRESS
        return ErrorCode.UNKNOWN_MEMBER_ID if group.state is GroupState.EMPTY else _NONE

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes], out: GroupDecisionBuilder, now: Now) -> None:
        assigned_bytes = sum(map(len, assignments.values()))
        if group.metadata_bytes + assigned_bytes > GROUP_BYTES_MAX:
            for member in group.members.values():
                self.responses.end_sync(member, SyncResult(ErrorCode.UNKNOWN_SERVER_ERROR), out)
            self._prepare(group, out, now)
            return
        group.move(GroupEvent.ASSIGNED)
        out.write(GroupRecord(group.group_id, group.to_metadata(assignments, now.wall_ms)))
        group.awaiting_response.update(
            dict.fromkeys(each.member_id for each in group.members.values() if each.sync_ticket)
        )
        self.responses.send_some(group, out, now)

    def _mark_synced(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        group.unsynced.pop(member.member_id, None)
        if not group.unsynced:
            self._deadlines.drop(GroupDeadline(DeadlineKind.SYNCS, group.group_id))

    def sync_phase_expired(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Remove members that joined and did not ask for their assignment in time."""
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.unsynced:
            return
        for member_id in tuple(group.unsynced):
            self._remove_member(group, member_id, out)
        self._prepare(group, out, now)

    # Heartbeats and sessions

    def heartbeat(self, group: ClassicGroup, member: MemberClaim, now: Now) -> ErrorCode:
        error = self.membership_error(group, member)
        if error is not _NONE:
            return error
        if group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self.responses.extend_session(group, group.members[member.member_id], now)
        return _REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else _NONE

    def commit_error(self, group: ClassicGroup, member: MemberClaim) -> ErrorCode:
        """Check that the committing member belongs to the current generation ("Groups" in docs/guarantees.md)."""
        error = self.membership_error(group, member)
        if error is _NONE and group.state is GroupState.COMPLETING_REBALANCE:
            return _REBALANCE_IN_PROGRESS
        return error

    def membership_error(self, group: ClassicGroup, member: MemberClaim) -> ErrorCode:
        error = group.member_error(member.member_id, member.instance_id)
        if error is not _NONE:
            return error
        return _NONE if member.generation == group.generation else ErrorCode.ILLEGAL_GENERATION

    def session_expired(self, group: ClassicGroup, member_id: str, out: GroupDecisionBuilder, now: Now) -> None:
        member = group.members.get(member_id)
        if member is None:
            return
        if not member.is_new and (member.join_ticket is not None or member.sync_ticket is not None):
            return  # the member waits for a response, which will extend its session
        self._remove_member(group, member_id, out)
        self.members_removed(group, out, now)

    def pending_member_expired(self, group: ClassicGroup, member_id: str, out: GroupDecisionBuilder, now: Now) -> None:
        if member_id in group.pending:
            del group.pending[member_id]
            if group.state is GroupState.PREPARING_REBALANCE:
                self._complete_if_all_joined(group, out, now)

    # Leave

    def leave(self, group: ClassicGroup, leaving: LeavingMember, out: GroupDecisionBuilder) -> LeaveResult:
        """Remove one member; the caller calls `members_removed` after the last one of the request."""
        member_id, instance_id = leaving
        if instance_id is not None and member_id == NO_MEMBER:
            member_id = group.static_members.get(instance_id, NO_MEMBER)
        elif member_id in group.pending and instance_id is None:
            self._drop_pending(group, member_id)
            return LeaveResult(leaving.member_id, instance_id, _NONE)
        error = group.member_error(member_id, instance_id)
        if error is _NONE:
            self._remove_member(group, member_id, out)
        return LeaveResult(leaving.member_id, instance_id, error)

    def members_removed(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Begin a rebalance, or complete one that waited only for the removed members."""
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare(group, out, now)
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._complete_if_all_joined(group, out, now)

    def _remove_member(self, group: ClassicGroup, member_id: str, out: GroupDecisionBuilder) -> None:
        member = group.remove(member_id)
        assert member is not None, f"{member_id} is not a member"
        self._deadlines.drop(GroupDeadline(DeadlineKind.SESSION, group.group_id, member_id))
        if member.join_ticket is not None:
            out.respond(member.join_ticket, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            member.join_ticket = None
        self.responses.end_sync(member, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID), out)

    def _drop_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.pending.pop(member_id, None)
        self._deadlines.drop(GroupDeadline(DeadlineKind.PENDING_MEMBER, group.group_id, member_id))

    def disband(self, group: ClassicGroup, out: GroupDecisionBuilder) -> None:
        """End the classic group because it moves to the KIP-848 protocol; waiting members must join again."""
        group.awaiting_response.clear()
        drop_group_deadlines(self._deadlines, group)
        for member in group.members.values():
            ticket = group.take_join_ticket(member)
            if ticket is not None:
                out.respond(ticket, JoinResult(_REBALANCE_IN_PROGRESS, member.member_id))
            self.responses.end_sync(member, SyncResult(_REBALANCE_IN_PROGRESS), out)
            self._deadlines.drop(GroupDeadline(DeadlineKind.SESSION, group.group_id, member.member_id))

    def rebalance(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Begin a rebalance for a reason outside of the group."""
        self._prepare(group, out, now)

    def start_sessions(self, group: ClassicGroup, now: Now) -> None:
        """Give each member of a group that was loaded or converted one session timeout to send a heartbeat."""
        for member in group.members.values():
            self.responses.extend_session(group, member, now)
