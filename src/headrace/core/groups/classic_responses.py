"""Join and sync results of a classic group's generation: some per turn, to the leader first."""

from itertools import islice

from headrace.core.coordination.machine import Now
from headrace.core.groups.classic_group import ClassicGroup, ClassicGroupMember
from headrace.core.groups.commands import NO_MEMBER, JoinResult, SyncResult
from headrace.core.groups.deadlines import DeadlineKind, GroupDeadline, GroupDeadlines
from headrace.core.groups.settings import MEMBER_RESPONSES_PER_TURN, SLICE_PAUSE_MS
from headrace.core.groups.states import GroupState
from headrace.core.groups.tables import GroupDecisionBuilder
from headrace.model.errors import ErrorCode


class ClassicResponses:
    """Responds to the joins and syncs that members hold open, and extends the session of a member that it answers."""

    def __init__(self, deadlines: GroupDeadlines) -> None:
        self._deadlines = deadlines

    def join_result(self, group: ClassicGroup, member: ClassicGroupMember) -> JoinResult:
        is_leader = group.leader == member.member_id
        return JoinResult(
            ErrorCode.NONE,
            member.member_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader or NO_MEMBER,
            group.joined_members() if is_leader else (),
        )

    def sync_result(self, group: ClassicGroup, member: ClassicGroupMember) -> SyncResult:
        return SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol, member.assignment)

    def end_sync(self, member: ClassicGroupMember, result: SyncResult, out: GroupDecisionBuilder) -> None:
        """Respond to the sync that the member holds open, if it does."""
        ticket, member.sync_ticket = member.sync_ticket, None
        if ticket is not None:
            out.respond(ticket, result)

    def extend_session(self, group: ClassicGroup, member: ClassicGroupMember, now: Now) -> None:
        session = GroupDeadline(DeadlineKind.SESSION, group.group_id, member.member_id)
        self._deadlines.set(session, now.monotonic_ms + member.session_timeout_ms)

    def send_some(self, group: ClassicGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Send the join or sync results of a generation to some members per turn, and to the leader first.

        If the next rebalance begins before a member has its join result, the member's held join counts for it.
        """
        for member_id in tuple(islice(group.awaiting_response, MEMBER_RESPONSES_PER_TURN)):
            del group.awaiting_response[member_id]
            member = group.members.get(member_id)
            if member is None:
                continue
            ticket = group.take_join_ticket(member)
            if ticket is not None:
                out.respond(ticket, self.join_result(group, member))
            if group.state is GroupState.STABLE:
                self.end_sync(member, self.sync_result(group, member), out)
            member.is_new = False
            self.extend_session(group, member, now)
        if group.awaiting_response:
            self._deadlines.set(
                GroupDeadline(DeadlineKind.RESPONSES, group.group_id), now.monotonic_ms + SLICE_PAUSE_MS
            )

    def cancel(self, group: ClassicGroup, out: GroupDecisionBuilder) -> None:
        """Discard join and sync results that a new rebalance makes obsolete."""
        for member_id in group.awaiting_response:
            if member_id in group.members:
                self.end_sync(group.members[member_id], SyncResult(ErrorCode.REBALANCE_IN_PROGRESS), out)
        group.awaiting_response.clear()
        self._deadlines.drop(GroupDeadline(DeadlineKind.RESPONSES, group.group_id))
