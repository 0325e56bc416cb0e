"""The protocol of KIP-848: by one request, the heartbeat, a member says what it wants and has, and is told the rest.

The broker decides who shall have what (the target), and brings each member there step by step: a partition is given
to its next owner when the one before has said that it let go of it.
"""

from collections.abc import Iterable
from typing import Protocol

from headrace.core.coordination.machine import Now, Outcome
from headrace.core.groups.assignors import ASSIGNORS, AssignableMember, AssignedTopic
from headrace.core.groups.commands import ConsumerHeartbeat, ConsumerHeartbeatResult, Membership
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
    TargetEpochRecord,
    TargetRecord,
)
from headrace.core.groups.deadlines import GroupDeadlines, Wait, Waiting
from headrace.core.groups.records import Record
from headrace.core.groups.settings import SUBSCRIBED_TOPICS_MAX, GroupSettings
from headrace.core.groups.topic_patterns import PatternRefused, TopicPattern
from headrace.model.errors import ErrorCode

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
_NONE = ErrorCode.NONE

Effects = Outcome[Record]


class TopicCatalog(Protocol):
    """The topics of the cluster, as they are now."""

    @property
    def version(self) -> int:
        """Another one when anything has changed."""

    def find(self, name: str) -> tuple[bytes, int] | None:
        """The id of a topic and how many partitions it has."""

    def names(self) -> Iterable[str]:
        """Those that an expression may match."""


class Refusal(Exception):
    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


class ConsumerProtocol:
    def __init__(self, settings: GroupSettings, deadlines: GroupDeadlines) -> None:
        self.settings = settings
        self._deadlines = deadlines

    # The heartbeat

    def heartbeat(
        self, group: ConsumerGroup, command: ConsumerHeartbeat, topics: TopicCatalog, out: Effects, now: Now
    ) -> ConsumerHeartbeatResult:
        """Raises Refusal, and then nothing has changed."""
        if command.epoch in (LEAVING_EPOCH, LEFT_STATIC_EPOCH):
            return self._leave(group, command, out)
        member = self._member(group, command)
        wanted = self._wanted(member, command)
        changed = self._find_matches(group, wanted, topics)
        before = NOTHING_YET if member is None else member.current
        if member is None or member.member_id != command.member_id or command.epoch == JOINING_EPOCH:
            self._join(group, member, command, wanted, out)
            changed = True
        elif member.subscription != wanted:
            said = member.subscription
            changed = changed or (said.topics, said.regex) != (wanted.topics, wanted.regex)
            out.write(MemberRecord(group.group_id, command.member_id, wanted))
        if changed or group.topics is None or group.seen_version != topics.version:
            changed = self._topics_changed(group, topics) or changed
        if changed:
            out.write(EpochRecord(group.group_id, group.epoch + 1))
        if group.epoch > group.target_epoch:
            self._retarget(group, out)
        current = group.members[command.member_id]
        self._reconcile(group, current, command.owned, out)
        self._extend(group, current, now)
        full = command.rebalance_timeout_ms >= 0 and command.owned is not None
        told = full or command.epoch == JOINING_EPOCH or current.current.assigned != before.assigned
        return ConsumerHeartbeatResult(
            _NONE,
            None,
            command.member_id,
            current.current.epoch,
            self.settings.consumer_heartbeat_interval_ms,
            current.current.assigned if told else None,
        )

    def _member(self, group: ConsumerGroup, command: ConsumerHeartbeat) -> ConsumerMember | None:
        """Who says so: one of the group, the earlier life of a static member, or nobody yet."""
        joins = command.epoch == JOINING_EPOCH
        if command.instance_id is not None:
            known = group.members.get(group.static_members.get(command.instance_id, ""))
            if known is not None and known.member_id != command.member_id:
                if not joins:
                    raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "the instance has another member id now")
                if known.current.epoch != LEFT_STATIC_EPOCH:
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
        lost_answer = command.epoch == current.previous_epoch and set(command.owned or ()) <= set(current.assigned)
        if command.epoch > current.epoch or not lost_answer:
            raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, f"the epoch of the member is {current.epoch}")

    def _wanted(self, member: ConsumerMember | None, command: ConsumerHeartbeat) -> Subscription:
        before = None if member is None else member.subscription
        topics, regex = command.topics, command.regex
        if before is None and topics is None and not regex:
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
        self,
        group: ConsumerGroup,
        member: ConsumerMember | None,
        command: ConsumerHeartbeat,
        wanted: Subscription,
        out: Effects,
    ) -> None:
        """A new member, one that begins again, or a static one that is back and goes on with what it had."""
        returning = member is not None and member.member_id != command.member_id
        target = group.targets.get(member.member_id) if member is not None and returning else None
        if member is not None and (returning or member.current.epoch != NOTHING_YET.epoch):
            self._forget(group, member.member_id, out)
        out.write(MemberRecord(group.group_id, command.member_id, wanted))
        if target is not None:
            out.write(TargetRecord(group.group_id, command.member_id, target))
        out.write(CurrentRecord(group.group_id, command.member_id, NOTHING_YET))

    def _leave(self, group: ConsumerGroup, command: ConsumerHeartbeat, out: Effects) -> ConsumerHeartbeatResult:
        member = group.members.get(command.member_id)
        if command.instance_id is not None:
            known = group.static_members.get(command.instance_id)
            if known is not None and known != command.member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "the instance has another member id now")
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
        if command.epoch == LEFT_STATIC_EPOCH:
            away = member.current._replace(epoch=LEFT_STATIC_EPOCH, previous_epoch=member.current.epoch)
            out.write(CurrentRecord(group.group_id, command.member_id, away))
        else:
            self.fence(group, command.member_id, out)
        return ConsumerHeartbeatResult(_NONE, None, command.member_id, command.epoch)

    def fence(self, group: ConsumerGroup, member_id: str, out: Effects) -> None:
        """Without it the others get its partitions."""
        self._forget(group, member_id, out)
        out.write(EpochRecord(group.group_id, group.epoch + 1))

    def _forget(self, group: ConsumerGroup, member_id: str, out: Effects) -> None:
        for wait in (Wait.SESSION, Wait.REVOCATION):
            self._deadlines.drop(Waiting(wait, group.group_id, member_id))
        out.write(CurrentRecord(group.group_id, member_id, None))
        out.write(TargetRecord(group.group_id, member_id, None))
        out.write(MemberRecord(group.group_id, member_id, None))

    def _extend(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        session = Waiting(Wait.SESSION, group.group_id, member.member_id)
        self._deadlines.set(session, now.monotonic_ms + self.settings.consumer_session_timeout_ms)
        revocation = Waiting(Wait.REVOCATION, group.group_id, member.member_id)
        if member.current.state != MemberState.UNREVOKED:
            self._deadlines.drop(revocation)
        elif self._deadlines.due_ms(revocation) is None:
            self._deadlines.set(revocation, now.monotonic_ms + max(member.subscription.rebalance_timeout_ms, 0))

    def restored(self, group: ConsumerGroup, now: Now) -> None:
        for member in group.members.values():
            self._extend(group, member, now)

    # Topics

    def _find_matches(self, group: ConsumerGroup, wanted: Subscription, topics: TopicCatalog) -> bool:
        """Match the expressions of the group again if topics have changed; whether the matches have."""
        if group.seen_version == topics.version and (wanted.regex is None or wanted.regex in group.matched):
            return False
        changed = False
        used = [member.subscription.regex for member in group.members.values()]
        for regex in dict.fromkeys((wanted.regex, *used)):
            known = group.matched.get(regex or "")
            if regex is None or (known is not None and known[0] == topics.version):
                continue
            try:
                found = TopicPattern(regex).matching(topics.names())
            except PatternRefused as refusal:
                raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, str(refusal)) from None
            group.matched[regex] = (topics.version, found)
            changed = changed or known is None or known[1] != found
        for regex in [each for each in group.matched if each != wanted.regex and each not in used]:
            del group.matched[regex]
        return changed

    def _topics_changed(self, group: ConsumerGroup, topics: TopicCatalog) -> bool:
        """Whether what is subscribed to is other than when the target was last decided."""
        names = dict.fromkeys(name for member in group.members.values() for name in group.subscribed(member))
        found = {name: known for name in names if (known := topics.find(name)) is not None}
        changed = found != group.topics
        group.topics, group.seen_version = found, topics.version
        return changed

    def _retarget(self, group: ConsumerGroup, out: Effects) -> None:
        known = group.topics or {}
        members = {
            member_id: AssignableMember(
                tuple(sorted(AssignedTopic(*known[name]) for name in group.subscribed(member) if name in known)),
                group.targets.get(member_id, ()),
                member.subscription.instance_id,
            )
            for member_id, member in group.members.items()
        }
        assign = ASSIGNORS[group.assignor(self.settings.consumer_assignors[0])]
        for member_id, partitions in assign(members).items():
            if group.targets.get(member_id) != partitions:
                out.write(TargetRecord(group.group_id, member_id, partitions))
        out.write(TargetEpochRecord(group.group_id, group.epoch))

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

    def commit_error(self, group: ConsumerGroup, member: Membership) -> ErrorCode:
        """Only a member of the present epoch may say how far it has read (promise G5)."""
        if member.generation < 0 and not group.members:
            return _NONE
        known = group.members.get(member.member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _NONE if known.current.epoch == member.generation else ErrorCode.STALE_MEMBER_EPOCH
