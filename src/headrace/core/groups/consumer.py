"""The protocol of KIP-848: by one request, the heartbeat, a member says what it wants and has, and is told the rest.

The broker decides who shall have what (the target), and brings each member there step by step: a partition is given
to its next owner when the one before has said that it let go of it.
"""

from headrace.core.coordination.machine import Now, Outcome
from headrace.core.groups.commands import (
    Commit,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    Membership,
    is_nobody,
)
from headrace.core.groups.consumer_group import (
    LEFT_STATIC_EPOCH,
    NOTHING_YET,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from headrace.core.groups.consumer_records import (
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    Partitions,
    Subscription,
    TargetRecord,
)
from headrace.core.groups.deadlines import MEMBER_WAITS, GroupDeadlines, Wait, Waiting
from headrace.core.groups.records import Record
from headrace.core.groups.settings import (
    ASSIGNMENT_PAUSE_MS,
    SLICE_PAUSE_MS,
    SUBSCRIBED_TOPICS_MAX,
    GroupSettings,
)
from headrace.core.groups.targets import (
    Refusal,
    TopicCatalog,
    find_matches,
    is_small,
    new_target,
    topics_changed,
    topics_matching,
)
from headrace.model.errors import ErrorCode

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
_NONE = ErrorCode.NONE

Effects = Outcome[Record]


class ConsumerProtocol:
    def __init__(self, settings: GroupSettings, deadlines: GroupDeadlines, topics: TopicCatalog) -> None:
        self.settings = settings
        self.topics = topics
        self._deadlines = deadlines

    # The heartbeat

    def heartbeat(
        self, group: ConsumerGroup, command: ConsumerHeartbeat, out: Effects, now: Now
    ) -> ConsumerHeartbeatResult:
        """Of one that does not leave. Raises Refusal, and then nothing has changed."""
        member = self._member(group, command)
        wanted = self._wanted(member, command)
        before = NOTHING_YET if member is None else member.current
        begins = member is None or member.member_id != command.member_id or command.epoch == JOINING_EPOCH
        current = self.advance(group, member, command.member_id, wanted, command.owned, out, now, begins=begins)
        self._extend(group, current, now)
        full = command.rebalance_timeout_ms >= 0 and command.owned is not None
        told = full or command.epoch == JOINING_EPOCH or current.current.assigned != before.assigned
        # More often than with Kafka: whoever has other than it shall may have lost the answer that said so.
        told = told or (command.owned is not None and set(command.owned) != set(current.current.assigned))
        return ConsumerHeartbeatResult(
            _NONE,
            None,
            command.member_id,
            current.current.epoch,
            self.settings.consumer_heartbeat_interval_ms,
            current.current.assigned if told else None,
        )

    def check_joining(self, command: ConsumerHeartbeat, members: int) -> None:
        """Raises Refusal for one that no group of so many members takes in."""
        wanted = self._wanted(None, command)
        if wanted.regex is not None:
            topics_matching(wanted.regex, self.topics)
        if members >= self.settings.consumer_members_max:
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")

    def advance(
        self,
        group: ConsumerGroup,
        member: ConsumerMember | None,
        member_id: str,
        wanted: Subscription,
        owned: Partitions | None,
        out: Effects,
        now: Now,
        *,
        begins: bool,
    ) -> ConsumerMember:
        """Write down what a member wants, decide anew who shall have what if that changes it, and take its next step.

        `member` is what is known of it; one that begins has nothing, and may take the place of another.
        """
        changed = find_matches(group, wanted, self.topics)
        if begins:
            changed = self._join(group, member, member_id, wanted, out) or changed
        elif member is not None and member.subscription != wanted:
            changed = changed or member.subscription.asks_other_than(wanted)
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

    def _assign(self, group: ConsumerGroup, out: Effects, now: Now) -> None:
        """Decide anew who shall have what: now, or for a large group soon."""
        if group.assigning is None and (is_small(group) or not group.target_epoch):
            for record in new_target(group, self.settings.consumer_assignors[0]):
                if record is not None:
                    out.write(record)
            return
        waiting = Waiting(Wait.ASSIGNMENT, group.group_id)
        if self._deadlines.due_ms(waiting) is None:
            self._deadlines.set(waiting, now.monotonic_ms + ASSIGNMENT_PAUSE_MS)

    def assign_some(self, group: ConsumerGroup, out: Effects, now: Now) -> None:
        """Take the next step of an assignment; the first one if none is under way."""
        waiting = Waiting(Wait.ASSIGNMENT, group.group_id)
        if group.assigning is None and group.epoch > group.target_epoch:
            group.assigning = new_target(group, self.settings.consumer_assignors[0])
        for record in group.assigning or ():
            if record is None:
                self._deadlines.set(waiting, now.monotonic_ms + SLICE_PAUSE_MS)
                return
            out.write(record)
        group.assigning = None
        if group.epoch > group.target_epoch:
            self._deadlines.set(waiting, now.monotonic_ms + ASSIGNMENT_PAUSE_MS)

    def _member(self, group: ConsumerGroup, command: ConsumerHeartbeat) -> ConsumerMember | None:
        """Who says so: one of the group, the earlier life of a static member, or nobody yet."""
        joins = command.epoch == JOINING_EPOCH
        if command.instance_id is not None:
            known = group.members.get(group.static_members.get(command.instance_id, ""))
            if known is not None and known.member_id != command.member_id:
                if not joins:
                    raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "the instance has another member id now")
                if known.current.epoch != LEFT_STATIC_EPOCH and known.subscription.classic is None:
                    raise Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, "the instance is used by another member")
                return known
        else:
            known = group.members.get(command.member_id)
        if known is None:
            if not joins:
                raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
            if len(group.members) >= self.settings.consumer_members_max:
                raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")
            return None
        if not joins:
            self._check_epoch(known.current, command)
        return known

    def _check_epoch(self, current: CurrentAssignment, command: ConsumerHeartbeat) -> None:
        if command.epoch == current.epoch:
            return
        # An answer may have been lost: a member one step behind is told again, if it has nothing that is not its own.
        # One that does not say what it has would not be told what it is to have: it begins again, as with Kafka.
        has_its_own = command.owned is not None and set(command.owned) <= set(current.assigned)
        lost_answer = command.epoch == current.previous_epoch and has_its_own
        if command.epoch > current.epoch or not lost_answer:
            raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, f"the epoch of the member is {current.epoch}")

    def _wanted(self, member: ConsumerMember | None, command: ConsumerHeartbeat) -> Subscription:
        before = None if member is None else member.subscription
        topics, regex = command.topics, command.regex
        if before is None and topics is None and regex is None:
            raise Refusal(ErrorCode.INVALID_REQUEST, "a member that joins says what it subscribes to")
        if topics is not None and len(topics) > SUBSCRIBED_TOPICS_MAX:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"at most {SUBSCRIBED_TOPICS_MAX} topics can be subscribed to")
        if command.assignor is not None and command.assignor not in self.settings.consumer_assignors:
            known = ", ".join(self.settings.consumer_assignors)
            raise Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, f"there are the assignors {known}")
        timeout_ms = command.rebalance_timeout_ms
        return Subscription(
            command.instance_id if before is None else before.instance_id,
            command.rack_id if command.rack_id is not None or before is None else before.rack_id,
            command.client_id,
            command.client_host,
            tuple(dict.fromkeys(topics)) if topics is not None else (before.topics if before else ()),
            (regex or None) if regex is not None else (before.regex if before else None),
            timeout_ms if timeout_ms >= 0 or before is None else before.rebalance_timeout_ms,
            command.assignor if command.assignor is not None or before is None else before.assignor,
        )

    # Coming and going

    def _join(
        self, group: ConsumerGroup, member: ConsumerMember | None, member_id: str, wanted: Subscription, out: Effects
    ) -> bool:
        """A new member, one that begins again, or a static one that is back and goes on with what it had.

        Whether the others are concerned.
        """
        returning = member is not None and member.member_id != member_id
        target = group.targets.get(member.member_id) if member is not None and returning else None
        if member is not None and (returning or member.current.epoch != NOTHING_YET.epoch):
            self.forget(group, member.member_id, out)
        out.write(MemberRecord(group.group_id, member_id, wanted))
        if target is not None:
            out.write(TargetRecord(group.group_id, member_id, target))
        out.write(CurrentRecord(group.group_id, member_id, NOTHING_YET))
        return member is None or target is None or member.subscription.asks_other_than(wanted)

    def leaving(self, group: ConsumerGroup, command: ConsumerHeartbeat) -> ConsumerMember:
        member = group.members.get(command.member_id)
        if command.instance_id is not None:
            known = group.static_members.get(command.instance_id)
            if known is not None and known != command.member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "the instance has another member id now")
            member = None if known is None else member  # nobody is away under a name that is not its own
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
        return member

    def step_away(self, group: ConsumerGroup, member: ConsumerMember, out: Effects) -> None:
        """A static member says that it will be back."""
        away = member.current._replace(epoch=LEFT_STATIC_EPOCH, previous_epoch=member.current.epoch)
        out.write(CurrentRecord(group.group_id, member.member_id, away))

    def fence(self, group: ConsumerGroup, member_id: str, out: Effects) -> None:
        """Without it the others get its partitions."""
        self.forget(group, member_id, out)
        out.write(EpochRecord(group.group_id, group.epoch + 1))

    def forget(self, group: ConsumerGroup, member_id: str, out: Effects) -> None:
        self.forget_waits(group, member_id)
        out.write(CurrentRecord(group.group_id, member_id, None))
        out.write(TargetRecord(group.group_id, member_id, None))
        out.write(MemberRecord(group.group_id, member_id, None))

    def forget_waits(self, group: ConsumerGroup, member_id: str) -> None:
        for wait in MEMBER_WAITS:
            self._deadlines.drop(Waiting(wait, group.group_id, member_id))

    def _extend(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        """Its next heartbeat is waited for, and that it lets go of what it has to."""
        session = Waiting(Wait.SESSION, group.group_id, member.member_id)
        self._deadlines.set(session, now.monotonic_ms + self.settings.consumer_session_timeout_ms)
        revocation = Waiting(Wait.REVOCATION, group.group_id, member.member_id)
        if member.current.state != MemberState.UNREVOKED:
            self._deadlines.drop(revocation)
        elif self._deadlines.due_ms(revocation) is None:
            self._deadlines.set(revocation, now.monotonic_ms + max(member.subscription.rebalance_timeout_ms, 0))

    def restored(self, group: ConsumerGroup, now: Now) -> None:
        for member in group.members.values():
            if member.subscription.classic is None:
                self._extend(group, member, now)

    # From what a member has to what it shall have

    def _reconcile(self, group: ConsumerGroup, member: ConsumerMember, owned: Partitions | None, out: Effects) -> None:
        current = member.current
        if current.state == MemberState.UNREVOKED and (owned is None or set(owned) & set(current.revoking)):
            return  # it has not let go of them yet
        if current.state == MemberState.STABLE and current.epoch == group.target_epoch:
            return
        following = self._next(group, member, owned)
        if following != current:
            out.write(CurrentRecord(group.group_id, member.member_id, following))

    def _next(self, group: ConsumerGroup, member: ConsumerMember, owned: Partitions | None) -> CurrentAssignment:
        current, target = member.current, group.targets.get(member.member_id, ())
        shall_have = set(target)
        kept = tuple(part for part in current.assigned if part in shall_have)
        revoked = tuple(part for part in current.assigned if part not in shall_have)
        if revoked and (owned is None or set(owned) & set(revoked)):
            return current._replace(state=MemberState.UNREVOKED, assigned=kept, revoking=revoked)
        has = set(kept)
        free = [
            part for part in target if part not in has and group.owners.get(part, member.member_id) == member.member_id
        ]
        assigned = tuple(sorted((*kept, *free)))
        state = MemberState.STABLE if len(assigned) == len(target) else MemberState.UNRELEASED
        previous = current.epoch if current.epoch != group.target_epoch else current.previous_epoch
        return CurrentAssignment(group.target_epoch, previous, state, assigned, ())

    # Offsets

    def commit_error(self, group: ConsumerGroup, command: Commit) -> ErrorCode:
        """Only a member of the present epoch may say how far it has read (promise G5)."""
        member = command.member
        if member.generation < 0 and not group.members:
            return _NONE
        if command.producer is not None and is_nobody(member):
            return _NONE
        error = self.member_error(group, member)
        if command.producer is not None:
            return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error
        known = group.members.get(member.member_id)
        if known is not None and known.subscription.classic is None and not command.epochs_understood:
            return ErrorCode.UNSUPPORTED_VERSION
        return error

    def member_error(self, group: ConsumerGroup, member: Membership) -> ErrorCode:
        known = group.members.get(member.member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known.current.epoch == member.generation:
            return _NONE
        return ErrorCode.STALE_MEMBER_EPOCH if known.subscription.classic is None else ErrorCode.ILLEGAL_GENERATION
