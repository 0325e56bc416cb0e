"""The KIP-848 group protocol, in which members send only heartbeats and the broker assigns partitions.

A heartbeat carries the member's subscription and owned partitions; the response carries its assignment. The broker
computes a target assignment and reconciles each member with it step by step: a partition goes to its next owner after
the previous owner has confirmed its revocation.
"""

from headrace.core.coordination.machine import Now
from headrace.core.groups.commands import (
    Commit,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    MemberClaim,
    is_anonymous,
)
from headrace.core.groups.consumer_group import (
    INITIAL_ASSIGNMENT,
    LEFT_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
)
from headrace.core.groups.consumer_records import (
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    MemberSubscription,
    Partitions,
    TargetRecord,
)
from headrace.core.groups.deadlines import MEMBER_DEADLINES, DeadlineKind, GroupDeadline, GroupDeadlines
from headrace.core.groups.settings import (
    ASSIGNMENT_PAUSE_MS,
    SLICE_PAUSE_MS,
    SUBSCRIBED_TOPICS_MAX,
    GroupCoordinatorSettings,
)
from headrace.core.groups.tables import GroupDecisionBuilder
from headrace.core.groups.targets import (
    GroupRequestRefused,
    TopicCatalog,
    find_matches,
    is_small,
    new_target,
    topics_changed,
    topics_matching,
)
from headrace.model.access import Requester
from headrace.model.errors import ErrorCode

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
_NONE = ErrorCode.NONE


class ConsumerProtocol:
    def __init__(self, settings: GroupCoordinatorSettings, deadlines: GroupDeadlines, topics: TopicCatalog) -> None:
        self._settings = settings
        self.topics = topics
        self._deadlines = deadlines

    # The heartbeat

    def heartbeat(
        self, group: ConsumerGroup, command: ConsumerHeartbeat, out: GroupDecisionBuilder, now: Now
    ) -> ConsumerHeartbeatResult:
        """Process the heartbeat of a member that does not leave. Raises GroupRequestRefused before anything changes."""
        member = self._member(group, command)
        wanted = self._wanted(member, command)
        before = INITIAL_ASSIGNMENT if member is None else member.current
        begins = member is None or member.member_id != command.member_id or command.epoch == JOINING_EPOCH
        current = self.advance(
            group,
            member,
            command.member_id,
            wanted,
            command.owned,
            out,
            now,
            begins=begins,
            requester=command.requester,
        )
        self._extend_deadlines(group, current, now)
        full = command.rebalance_timeout_ms >= 0 and command.owned is not None
        resend = full or command.epoch == JOINING_EPOCH or current.current.assigned != before.assigned
        # Resend the assignment when the owned partitions differ: the previous response may have been lost. Kafka does
        # not do this.
        resend = resend or (command.owned is not None and set(command.owned) != set(current.current.assigned))
        return ConsumerHeartbeatResult(
            _NONE,
            None,
            command.member_id,
            current.current.epoch,
            self._settings.consumer_heartbeat_interval_ms,
            current.current.assigned if resend else None,
        )

    def check_first_member(self, command: ConsumerHeartbeat, classic_members: int) -> None:
        """Raise GroupRequestRefused if the member cannot join a new group, or a group of this many classic members."""
        wanted = self._wanted(None, command)
        if wanted.regex is not None:
            topics_matching(wanted.regex, self.topics, command.requester)
        if classic_members >= self._settings.consumer_members_max:
            raise GroupRequestRefused(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")

    def advance(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember | None,
        member_id: str,
        wanted: MemberSubscription,
        owned: Partitions | None,
        out: GroupDecisionBuilder,
        now: Now,
        *,
        begins: bool,
        requester: Requester,
    ) -> ConsumerGroupMember:
        """Record a member's subscription, compute a new target if it changed, and reconcile the member with its target.

        `member` is the known state of the member, or the static member that it replaces. A member that `begins` owns
        no partitions.
        """
        changed = find_matches(group, wanted, self.topics, requester)
        if begins:
            changed = self._join(group, member, member_id, wanted, out) or changed
        elif member is not None and member.subscription != wanted:
            changed = changed or member.subscription.differs_in_topics(wanted)
            out.write(MemberRecord(group.group_id, member_id, wanted))
        if changed or group.topics is None or group.seen_version != self.topics.version:
            changed = topics_changed(group, self.topics) or changed
        if changed:
            out.write(EpochRecord(group.group_id, group.epoch + 1))
        if group.epoch > group.target_epoch:
            self._assign(group, out, now)
        current = group.members[member_id]
        self._reconcile(group, current, owned, out)
        return current

    def _assign(self, group: ConsumerGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Compute a new target: now for a small group, and step by step for a large one."""
        if group.assigning is None and (is_small(group) or not group.target_epoch):
            for record in new_target(group, self._settings.consumer_assignors[0]):
                if record is not None:
                    out.write(record)
            return
        deadline = GroupDeadline(DeadlineKind.ASSIGNMENT, group.group_id)
        if self._deadlines.due_ms(deadline) is None:
            self._deadlines.set(deadline, now.monotonic_ms + ASSIGNMENT_PAUSE_MS)

    def continue_assignment(self, group: ConsumerGroup, out: GroupDecisionBuilder, now: Now) -> None:
        """Run the next step of the target computation of a large group, or begin one."""
        deadline = GroupDeadline(DeadlineKind.ASSIGNMENT, group.group_id)
        if group.assigning is None and group.epoch > group.target_epoch:
            group.assigning = new_target(group, self._settings.consumer_assignors[0])
        for record in group.assigning or ():
            if record is None:
                self._deadlines.set(deadline, now.monotonic_ms + SLICE_PAUSE_MS)
                return
            out.write(record)
        group.assigning = None
        if group.epoch > group.target_epoch:
            self._deadlines.set(deadline, now.monotonic_ms + ASSIGNMENT_PAUSE_MS)

    def _member(self, group: ConsumerGroup, command: ConsumerHeartbeat) -> ConsumerGroupMember | None:
        """Return the sender: a member, the earlier incarnation of a static member, or None for a new member."""
        joins = command.epoch == JOINING_EPOCH
        if command.instance_id is not None:
            known = group.members.get(group.static_members.get(command.instance_id, ""))
            if known is not None and known.member_id != command.member_id:
                if not joins:
                    raise GroupRequestRefused(ErrorCode.FENCED_INSTANCE_ID, "a newer member uses this instance id")
                if known.current.epoch != LEFT_STATIC_EPOCH and known.subscription.classic is None:
                    raise GroupRequestRefused(
                        ErrorCode.UNRELEASED_INSTANCE_ID, "another member still uses this instance id"
                    )
                return known
        else:
            known = group.members.get(command.member_id)
        if known is None:
            if not joins:
                raise GroupRequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
            if len(group.members) >= self._settings.consumer_members_max:
                raise GroupRequestRefused(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")
            return None
        if not joins:
            self._check_epoch(known.current, command)
        return known

    def _check_epoch(self, current: CurrentAssignment, command: ConsumerHeartbeat) -> None:
        if command.epoch == current.epoch:
            return
        # The previous response may have been lost: accept a member that is one epoch behind if it owns no partition
        # outside of its assignment. A member that does not send its owned partitions would not get its assignment
        # again, so it is fenced and starts over, as with Kafka.
        owns_only_assigned = command.owned is not None and set(command.owned) <= set(current.assigned)
        response_lost = command.epoch == current.previous_epoch and owns_only_assigned
        if command.epoch > current.epoch or not response_lost:
            raise GroupRequestRefused(ErrorCode.FENCED_MEMBER_EPOCH, f"the member epoch is {current.epoch}")

    def _wanted(self, member: ConsumerGroupMember | None, command: ConsumerHeartbeat) -> MemberSubscription:
        before = None if member is None else member.subscription
        topics, regex = command.topics, command.regex
        if before is None and topics is None and regex is None:
            raise GroupRequestRefused(
                ErrorCode.INVALID_REQUEST, "a joining member must name topics or a regular expression"
            )
        if topics is not None and len(topics) > SUBSCRIBED_TOPICS_MAX:
            raise GroupRequestRefused(
                ErrorCode.INVALID_REQUEST, f"a subscription can name at most {SUBSCRIBED_TOPICS_MAX} topics"
            )
        if command.assignor is not None and command.assignor not in self._settings.consumer_assignors:
            known = ", ".join(self._settings.consumer_assignors)
            raise GroupRequestRefused(ErrorCode.UNSUPPORTED_ASSIGNOR, f"the broker supports the assignors {known}")
        timeout_ms = command.rebalance_timeout_ms
        return MemberSubscription(
            command.instance_id if before is None else before.instance_id,
            command.rack_id if command.rack_id is not None or before is None else before.rack_id,
            command.client_id,
            command.client_host,
            tuple(dict.fromkeys(topics)) if topics is not None else (before.topics if before else ()),
            (regex or None) if regex is not None else (before.regex if before else None),
            timeout_ms if timeout_ms >= 0 or before is None else before.rebalance_timeout_ms,
            command.assignor if command.assignor is not None or before is None else before.assignor,
        )

    # Members join and leave

    def _join(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember | None,
        member_id: str,
        wanted: MemberSubscription,
        out: GroupDecisionBuilder,
    ) -> bool:
        """Add a new member, a member that starts over, or a static member that returns and keeps its target.

        Returns whether the group needs a new target.
        """
        returning = member is not None and member.member_id != member_id
        target = group.targets.get(member.member_id) if member is not None and returning else None
        if member is not None and (returning or member.current.epoch != INITIAL_ASSIGNMENT.epoch):
            self.remove(group, member.member_id, out)
        out.write(MemberRecord(group.group_id, member_id, wanted))
        if target is not None:
            out.write(TargetRecord(group.group_id, member_id, target))
        out.write(CurrentRecord(group.group_id, member_id, INITIAL_ASSIGNMENT))
        return member is None or target is None or member.subscription.differs_in_topics(wanted)

    def leaving_member(self, group: ConsumerGroup, command: ConsumerHeartbeat) -> ConsumerGroupMember:
        member = group.members.get(command.member_id)
        if command.instance_id is not None:
            known = group.static_members.get(command.instance_id)
            if known is not None and known != command.member_id:
                raise GroupRequestRefused(ErrorCode.FENCED_INSTANCE_ID, "a newer member uses this instance id")
            member = None if known is None else member  # a member leaves temporarily only under its own instance id
        if member is None:
            raise GroupRequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
        return member

    def leave_temporarily(self, group: ConsumerGroup, member: ConsumerGroupMember, out: GroupDecisionBuilder) -> None:
        """Keep the assignment of a static member that will return."""
        away = member.current._replace(epoch=LEFT_STATIC_EPOCH, previous_epoch=member.current.epoch)
        out.write(CurrentRecord(group.group_id, member.member_id, away))

    def fence(self, group: ConsumerGroup, member_id: str, out: GroupDecisionBuilder) -> None:
        """Remove a member and begin a new group epoch, which gives its partitions to the others."""
        self.remove(group, member_id, out)
        out.write(EpochRecord(group.group_id, group.epoch + 1))

    def remove(self, group: ConsumerGroup, member_id: str, out: GroupDecisionBuilder) -> None:
        self.drop_deadlines(group, member_id)
        out.write(CurrentRecord(group.group_id, member_id, None))
        out.write(TargetRecord(group.group_id, member_id, None))
        out.write(MemberRecord(group.group_id, member_id, None))

    def drop_deadlines(self, group: ConsumerGroup, member_id: str) -> None:
        for kind in MEMBER_DEADLINES:
            self._deadlines.drop(GroupDeadline(kind, group.group_id, member_id))

    def _extend_deadlines(self, group: ConsumerGroup, member: ConsumerGroupMember, now: Now) -> None:
        """Extend the session, and set or drop the deadline of a revocation."""
        session = GroupDeadline(DeadlineKind.SESSION, group.group_id, member.member_id)
        self._deadlines.set(session, now.monotonic_ms + self._settings.consumer_session_timeout_ms)
        revocation = GroupDeadline(DeadlineKind.REVOCATION, group.group_id, member.member_id)
        if member.current.state != MemberState.UNREVOKED:
            self._deadlines.drop(revocation)
        elif self._deadlines.due_ms(revocation) is None:
            self._deadlines.set(revocation, now.monotonic_ms + max(member.subscription.rebalance_timeout_ms, 0))

    def start_sessions(self, group: ConsumerGroup, now: Now) -> None:
        """Start the sessions of the KIP-848 members of a group that was loaded from the log."""
        for member in group.members.values():
            if member.subscription.classic is None:
                self._extend_deadlines(group, member, now)

    # Reconciliation with the target

    def _reconcile(
        self, group: ConsumerGroup, member: ConsumerGroupMember, owned: Partitions | None, out: GroupDecisionBuilder
    ) -> None:
        current = member.current
        if current.state == MemberState.UNREVOKED and (owned is None or set(owned) & set(current.revoking)):
            return  # the member has not revoked them yet
        if current.state == MemberState.STABLE and current.epoch == group.target_epoch:
            return
        following = self._next(group, member, owned)
        if following != current:
            out.write(CurrentRecord(group.group_id, member.member_id, following))

    def _next(self, group: ConsumerGroup, member: ConsumerGroupMember, owned: Partitions | None) -> CurrentAssignment:
        current, target = member.current, group.targets.get(member.member_id, ())
        target_set = set(target)
        kept = tuple(part for part in current.assigned if part in target_set)
        revoked = tuple(part for part in current.assigned if part not in target_set)
        if revoked and (owned is None or set(owned) & set(revoked)):
            return current._replace(state=MemberState.UNREVOKED, assigned=kept, revoking=revoked)
        kept_set = set(kept)
        free = [
            part
            for part in target
            if part not in kept_set and group.owners.get(part, member.member_id) == member.member_id
        ]
        assigned = tuple(sorted((*kept, *free)))
        state = MemberState.STABLE if len(assigned) == len(target) else MemberState.UNRELEASED
        previous = current.epoch if current.epoch != group.target_epoch else current.previous_epoch
        return CurrentAssignment(group.target_epoch, previous, state, assigned, ())

    # Offsets

    def commit_error(self, group: ConsumerGroup, command: Commit) -> ErrorCode:
        """Check that the committing member has the current member epoch ("Groups" in docs/guarantees.md)."""
        member = command.member
        if member.generation < 0 and not group.members:
            return _NONE
        if command.producer is not None and is_anonymous(member):
            return _NONE
        error = self.member_error(group, member)
        if command.producer is not None:
            return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error
        known = group.members.get(member.member_id)
        if known is not None and known.subscription.classic is None and not command.epochs_understood:
            return ErrorCode.UNSUPPORTED_VERSION
        return error

    def member_error(self, group: ConsumerGroup, member: MemberClaim) -> ErrorCode:
        known = group.members.get(member.member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known.current.epoch == member.generation:
            return _NONE
        return ErrorCode.STALE_MEMBER_EPOCH if known.subscription.classic is None else ErrorCode.ILLEGAL_GENERATION
