"""The classic group protocol: members join, one of them assigns, all sync, and each shows that it lives.

The rules, also the odd ones, are Kafka's, because clients rely on them: who is waited for, who is told what, and
which error makes a client do what next.
"""

from itertools import islice

from headrace.core.coordination.machine import Now, Outcome, Ticket
from headrace.core.groups.classic_group import ClassicGroup, Member
from headrace.core.groups.commands import (
    NO_MEMBER,
    Join,
    JoinResult,
    LeaveResult,
    LeavingMember,
    Membership,
    Sync,
    SyncResult,
)
from headrace.core.groups.deadlines import GroupDeadlines, Wait, Waiting
from headrace.core.groups.records import GroupRecord, Record
from headrace.core.groups.settings import (
    GROUP_BYTES_MAX,
    MEMBERS_TOLD_PER_TURN,
    NEW_MEMBER_WAIT_MS_MAX,
    PENDING_MEMBERS_MAX,
    PROTOCOLS_PER_MEMBER_MAX,
    SLICE_PAUSE_MS,
    GroupSettings,
)
from headrace.core.groups.states import GroupEvent, GroupState
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE
_REBALANCE_IN_PROGRESS = ErrorCode.REBALANCE_IN_PROGRESS

Effects = Outcome[Record]


class ClassicProtocol:
    """Decides for one group at a time; `now` and the outcome belong to the event being decided."""

    def __init__(self, settings: GroupSettings, deadlines: GroupDeadlines) -> None:
        self.settings = settings
        self._deadlines = deadlines

    # Joining

    def join(self, group: ClassicGroup, command: Join, ticket: Ticket, out: Effects, now: Now) -> None:
        error = self._join_error(group, command)
        if error is not _NONE:
            out.answer(ticket, JoinResult(error, command.member_id))
        elif command.member_id == NO_MEMBER:
            self._join_new(group, command, ticket, out, now)
        elif command.member_id in group.pending and command.instance_id is None:
            self._add(group, command, command.member_id, ticket, out, now)
        else:
            self._join_again(group, command, ticket, out, now)

    def _join_error(self, group: ClassicGroup, command: Join) -> ErrorCode:
        settings = self.settings
        if not settings.session_timeout_ms_min <= command.session_timeout_ms <= settings.session_timeout_ms_max:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if not self._has_room(group, command):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if len(command.protocols) > PROTOCOLS_PER_MEMBER_MAX or not group.can_speak(
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
        members_max = self.settings.members_max
        if group.state is GroupState.PREPARING_REBALANCE:
            return (member is not None and member.join_ticket is not None) or group.waiting_joins < members_max
        return member is not None or len(group.members) < members_max

    def _join_new(self, group: ClassicGroup, command: Join, ticket: Ticket, out: Effects, now: Now) -> None:
        if command.instance_id is not None:
            if command.instance_id in group.static_members:
                self._replace_static(group, command, ticket, out, now)
            else:
                self._add(group, command, command.new_member_id, ticket, out, now)
        elif command.member_id_required:
            self._give_id(group, command, now)
            out.answer(ticket, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, command.new_member_id))
        else:
            self._add(group, command, command.new_member_id, ticket, out, now)

    def _give_id(self, group: ClassicGroup, command: Join, now: Now) -> None:
        """Note the id of a new member until the member joins with it; beyond the limit the oldest unused id goes.

        A refusal would be fatal to clients. The owner of an id that went is told UNKNOWN_MEMBER_ID and asks again.
        """
        if len(group.pending) >= PENDING_MEMBERS_MAX:
            self._drop_pending(group, next(iter(group.pending)))
        group.pending[command.new_member_id] = None
        waiting = Waiting(Wait.PENDING_MEMBER, group.group_id, command.new_member_id)
        self._deadlines.set(waiting, now.monotonic_ms + command.session_timeout_ms)
        self._wait_for_more(group, now)

    def _join_again(self, group: ClassicGroup, command: Join, ticket: Ticket, out: Effects, now: Now) -> None:
        error = group.member_error(command.member_id, command.instance_id)
        if error is not _NONE or group.state is GroupState.EMPTY:
            out.answer(ticket, JoinResult(error or ErrorCode.UNKNOWN_MEMBER_ID, command.member_id))
            return
        member = group.members[command.member_id]
        is_leader = group.leader == command.member_id
        same = member.protocols == command.protocols
        if same and (
            group.state is GroupState.COMPLETING_REBALANCE or (group.state is GroupState.STABLE and not is_leader)
        ):
            # Its last answer was lost, or it asks without need: it is told again what was decided.
            out.answer(ticket, self._joined(group, member))
            self._extend_session(group, member, now)
            return
        self._update(group, member, command, ticket, out, now)
        self._rebalance_or_complete(group, out, now)

    def _add(self, group: ClassicGroup, command: Join, member_id: str, ticket: Ticket, out: Effects, now: Now) -> None:
        member = Member(
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
        group.wait_for_others(member, ticket)
        session = Waiting(Wait.SESSION, group.group_id, member_id)
        self._deadlines.set(session, now.monotonic_ms + NEW_MEMBER_WAIT_MS_MAX)
        self._rebalance_or_complete(group, out, now)
        self._wait_for_more(group, now)

    def _update(
        self, group: ClassicGroup, member: Member, command: Join, ticket: Ticket, out: Effects, now: Now
    ) -> None:
        member.session_timeout_ms = command.session_timeout_ms
        member.rebalance_timeout_ms = command.rebalance_timeout_ms
        member.client_id, member.client_host = command.client_id, command.client_host
        group.speak(member, command.protocols)
        earlier = group.wait_for_others(member, ticket)
        if earlier is not None:
            out.answer(earlier, JoinResult(_REBALANCE_IN_PROGRESS, member.member_id))
        self._extend_session(group, member, now)

    def _replace_static(self, group: ClassicGroup, command: Join, ticket: Ticket, out: Effects, now: Now) -> None:
        """A static member started again: it gets a new id, and whoever still uses the old one is fenced (KIP-345)."""
        assert command.instance_id is not None
        leader_before = group.leader
        old_member_id = group.static_members[command.instance_id]
        member = group.replace_static(command.instance_id, command.new_member_id)
        self._deadlines.drop(Waiting(Wait.SESSION, group.group_id, old_member_id))
        old_join = group.take_join_ticket(member)
        if old_join is not None:
            out.answer(old_join, JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_member_id))
        old_sync, member.sync_ticket = member.sync_ticket, None
        if old_sync is not None:
            out.answer(old_sync, SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        self._update(group, member, command, ticket, out, now)
        if group.state is GroupState.STABLE and group.elected_protocol() == group.protocol:
            self._keep_generation(group, member, command, leader_before, out, now)
        elif group.state is not GroupState.PREPARING_REBALANCE:
            self._prepare(group, out, now)
        else:
            self._complete_if_all_joined(group, out, now)

    def _keep_generation(
        self, group: ClassicGroup, member: Member, command: Join, leader_before: str | None, out: Effects, now: Now
    ) -> None:
        """The group goes on as it is; the new id is written down."""
        ticket = group.take_join_ticket(member)
        assert ticket is not None
        group.move(GroupEvent.MEMBER_REPLACED)
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        out.write(GroupRecord(group.group_id, group.agreement(assignments, group.since_ms)))
        is_leader = group.leader == member.member_id
        joined = self._joined(group, member)
        if command.skip_assignment_supported:
            out.answer(ticket, joined._replace(skip_assignment=is_leader))
        else:
            # One that takes itself for the leader would assign anew: it is told of the leader under the old id.
            out.answer(ticket, joined._replace(leader=leader_before or NO_MEMBER, members=()))

    def _joined(self, group: ClassicGroup, member: Member) -> JoinResult:
        is_leader = group.leader == member.member_id
        return JoinResult(
            _NONE,
            member.member_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader or NO_MEMBER,
            group.joined_members() if is_leader else (),
        )

    # From one generation to the next

    def _rebalance_or_complete(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        if group.state is GroupState.PREPARING_REBALANCE:
            self._complete_if_all_joined(group, out, now)
        else:
            self._prepare(group, out, now)

    def _prepare(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        """Ask all members to join again; a new group waits for more members before it begins."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            for member in group.members.values():
                group.assign(member, b"")
                self._answer_sync(member, SyncResult(_REBALANCE_IN_PROGRESS), out)
        self._leave_untold(group, out)
        self._deadlines.drop(Waiting(Wait.SYNCS, group.group_id))
        group.unsynced.clear()
        group.joins_initially = group.state is GroupState.EMPTY
        group.move(GroupEvent.REBALANCE_NEEDED)
        if group.joins_initially:
            delay_ms = min(self.settings.initial_rebalance_delay_ms, group.rebalance_timeout_ms)
            group.initial_wait_end_ms = now.monotonic_ms + delay_ms
            if delay_ms:
                self._wait_for_more(group, now)
            else:
                self._complete(group, out, now)
        else:
            joins = Waiting(Wait.JOINS, group.group_id)
            self._deadlines.set(joins, now.monotonic_ms + group.rebalance_timeout_ms)
            self._complete_if_all_joined(group, out, now)

    def _wait_for_more(self, group: ClassicGroup, now: Now) -> None:
        """Let a new group wait for another quiet period, within its initial delay: a member has come."""
        if group.state is GroupState.PREPARING_REBALANCE and group.joins_initially:
            quiet_end_ms = now.monotonic_ms + self.settings.initial_rebalance_quiet_ms
            self._deadlines.set(Waiting(Wait.JOINS, group.group_id), min(quiet_end_ms, group.initial_wait_end_ms))

    def joins_waited_for(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        """End the time for joining; a new group waits on for members that have an id and did not join with it yet."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if group.joins_initially and group.pending and now.monotonic_ms < group.initial_wait_end_ms:
            self._wait_for_more(group, now)
        else:
            self._complete(group, out, now)

    def _complete_if_all_joined(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        if group.all_joined and (not group.joins_initially or not group.members):
            self._complete(group, out, now)

    def _complete(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        """Begin the generation of those that joined. Static members may be late; others are out."""
        self._deadlines.drop(Waiting(Wait.JOINS, group.group_id))
        late = [each for each in group.members.values() if each.join_ticket is None and each.instance_id is None]
        for member in late:
            self._forget_member(group, member.member_id, out)
        if group.members and not self._elect_leader(group):
            waiting = Waiting(Wait.JOINS, group.group_id)
            self._deadlines.set(waiting, now.monotonic_ms + group.rebalance_timeout_ms)
            return
        group.joins_initially = False
        group.begin_generation()
        if not group.members:
            group.move(GroupEvent.NONE_JOINED)
            out.write(GroupRecord(group.group_id, group.agreement({}, now.wall_ms)))
            return
        group.move(GroupEvent.ALL_JOINED)
        group.unsynced = dict.fromkeys(group.members)
        group.untold = dict.fromkeys((group.leader or NO_MEMBER, *group.members))
        self.tell_some(group, out, now)
        self._deadlines.set(Waiting(Wait.SYNCS, group.group_id), now.monotonic_ms + group.rebalance_timeout_ms)

    def tell_some(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        """Answer members who waited for what is decided now, some of very many, and the leader first.

        One that is not told before the next rebalance has joined that as well, by the join that still waits.
        """
        for member_id in tuple(islice(group.untold, MEMBERS_TOLD_PER_TURN)):
            del group.untold[member_id]
            member = group.members.get(member_id)
            if member is None:
                continue
            ticket = group.take_join_ticket(member)
            if ticket is not None:
                out.answer(ticket, self._joined(group, member))
            if group.state is GroupState.STABLE:
                self._answer_sync(member, self._assigned(group, member), out)
            member.is_new = False
            self._extend_session(group, member, now)
        if group.untold:
            self._deadlines.set(Waiting(Wait.ANSWERS, group.group_id), now.monotonic_ms + SLICE_PAUSE_MS)

    def _leave_untold(self, group: ClassicGroup, out: Effects) -> None:
        """What they were to be told does not count any more."""
        for member_id in group.untold:
            if member_id in group.members:
                self._answer_sync(group.members[member_id], SyncResult(_REBALANCE_IN_PROGRESS), out)
        group.untold.clear()
        self._deadlines.drop(Waiting(Wait.ANSWERS, group.group_id))

    def _elect_leader(self, group: ClassicGroup) -> bool:
        """The leader must be one that has joined; False if nobody has."""
        leader = group.members.get(group.leader or NO_MEMBER)
        if leader is None or leader.join_ticket is None:
            group.leader = next((each.member_id for each in group.members.values() if each.join_ticket), group.leader)
            leader = group.members.get(group.leader or NO_MEMBER)
        return leader is not None and leader.join_ticket is not None

    # Syncing

    def sync(self, group: ClassicGroup, command: Sync, ticket: Ticket, out: Effects, now: Now) -> None:
        error = self._sync_error(group, command)
        if error is not _NONE:
            out.answer(ticket, SyncResult(error))
            return
        member = group.members[command.member.member_id]
        self._synced(group, member)
        if group.state is GroupState.STABLE:
            self._extend_session(group, member, now)
            out.answer(ticket, self._assigned(group, member))
            return
        earlier, member.sync_ticket = member.sync_ticket, ticket
        if earlier is not None:
            out.answer(earlier, SyncResult(_REBALANCE_IN_PROGRESS))
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

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes], out: Effects, now: Now) -> None:
        assigned_bytes = sum(map(len, assignments.values()))
        if group.metadata_bytes + assigned_bytes > GROUP_BYTES_MAX:
            for member in group.members.values():
                self._answer_sync(member, SyncResult(ErrorCode.UNKNOWN_SERVER_ERROR), out)
            self._prepare(group, out, now)
            return
        group.move(GroupEvent.ASSIGNED)
        out.write(GroupRecord(group.group_id, group.agreement(assignments, now.wall_ms)))
        group.untold.update(dict.fromkeys(each.member_id for each in group.members.values() if each.sync_ticket))
        self.tell_some(group, out, now)

    def _assigned(self, group: ClassicGroup, member: Member) -> SyncResult:
        return SyncResult(_NONE, group.protocol_type, group.protocol, member.assignment)

    def _answer_sync(self, member: Member, result: SyncResult, out: Effects) -> None:
        ticket, member.sync_ticket = member.sync_ticket, None
        if ticket is not None:
            out.answer(ticket, result)

    def _synced(self, group: ClassicGroup, member: Member) -> None:
        group.unsynced.pop(member.member_id, None)
        if not group.unsynced:
            self._deadlines.drop(Waiting(Wait.SYNCS, group.group_id))

    def syncs_waited_for(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        """Members that joined and never asked for their assignment are out."""
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.unsynced:
            return
        for member_id in tuple(group.unsynced):
            self._forget_member(group, member_id, out)
        self._prepare(group, out, now)

    # Living

    def heartbeat(self, group: ClassicGroup, member: Membership, now: Now) -> ErrorCode:
        error = self.membership_error(group, member)
        if error is not _NONE:
            return error
        if group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._extend_session(group, group.members[member.member_id], now)
        return _REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else _NONE

    def commit_error(self, group: ClassicGroup, member: Membership) -> ErrorCode:
        """Whether what the member has read may be written down: it must be of the generation (promise G5)."""
        error = self.membership_error(group, member)
        if error is _NONE and group.state is GroupState.COMPLETING_REBALANCE:
            return _REBALANCE_IN_PROGRESS
        return error

    def showed_life(self, group: ClassicGroup, member: Membership, now: Now) -> None:
        self._extend_session(group, group.members[member.member_id], now)

    def membership_error(self, group: ClassicGroup, member: Membership) -> ErrorCode:
        error = group.member_error(member.member_id, member.instance_id)
        if error is not _NONE:
            return error
        return _NONE if member.generation == group.generation else ErrorCode.ILLEGAL_GENERATION

    def _extend_session(self, group: ClassicGroup, member: Member, now: Now) -> None:
        session = Waiting(Wait.SESSION, group.group_id, member.member_id)
        self._deadlines.set(session, now.monotonic_ms + member.session_timeout_ms)

    def session_ended(self, group: ClassicGroup, member_id: str, out: Effects, now: Now) -> None:
        member = group.members.get(member_id)
        if member is None:
            return
        if not member.is_new and (member.join_ticket is not None or member.sync_ticket is not None):
            return  # it waits for us: its session goes on when it is answered
        self._forget_member(group, member_id, out)
        self._member_gone(group, out, now)

    def pending_ended(self, group: ClassicGroup, member_id: str, out: Effects, now: Now) -> None:
        if member_id in group.pending:
            del group.pending[member_id]
            if group.state is GroupState.PREPARING_REBALANCE:
                self._complete_if_all_joined(group, out, now)

    # Leaving

    def leave(self, group: ClassicGroup, leaving: LeavingMember, out: Effects) -> LeaveResult:
        """Take one member out; `left` follows when all of the request are."""
        member_id, instance_id = leaving
        if instance_id is not None and member_id == NO_MEMBER:
            member_id = group.static_members.get(instance_id, NO_MEMBER)
        elif member_id in group.pending and instance_id is None:
            self._drop_pending(group, member_id)
            return LeaveResult(leaving.member_id, instance_id, _NONE)
        error = group.member_error(member_id, instance_id)
        if error is _NONE:
            self._forget_member(group, member_id, out)
        return LeaveResult(leaving.member_id, instance_id, error)

    def left(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        self._member_gone(group, out, now)

    def _member_gone(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare(group, out, now)
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._complete_if_all_joined(group, out, now)

    def _forget_member(self, group: ClassicGroup, member_id: str, out: Effects) -> None:
        member = group.remove(member_id)
        assert member is not None, f"{member_id} is not a member"
        self._deadlines.drop(Waiting(Wait.SESSION, group.group_id, member_id))
        if member.join_ticket is not None:
            out.answer(member.join_ticket, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            member.join_ticket = None
        self._answer_sync(member, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID), out)

    def _drop_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.pending.pop(member_id, None)
        self._deadlines.drop(Waiting(Wait.PENDING_MEMBER, group.group_id, member_id))

    def forget_waits(self, group: ClassicGroup) -> None:
        """The group is gone."""
        group.untold.clear()
        for wait in (Wait.JOINS, Wait.SYNCS, Wait.ANSWERS):
            self._deadlines.drop(Waiting(wait, group.group_id))
        for member_id in group.pending:
            self._deadlines.drop(Waiting(Wait.PENDING_MEMBER, group.group_id, member_id))

    def disband(self, group: ClassicGroup, out: Effects) -> None:
        """The group goes on in another protocol: whoever waits joins again, and nothing is waited for any more."""
        self.forget_waits(group)
        for member in group.members.values():
            ticket = group.take_join_ticket(member)
            if ticket is not None:
                out.answer(ticket, JoinResult(_REBALANCE_IN_PROGRESS, member.member_id))
            self._answer_sync(member, SyncResult(_REBALANCE_IN_PROGRESS), out)
            self._deadlines.drop(Waiting(Wait.SESSION, group.group_id, member.member_id))

    def rebalance(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        """Members are asked to join again, for a reason that is not theirs."""
        self._prepare(group, out, now)

    def restored(self, group: ClassicGroup, now: Now) -> None:
        """The group comes from the log: its members get one session to show that they live."""
        for member in group.members.values():
            self._extend_session(group, member, now)
