"""Members of the classic protocol in a group of KIP-848, while its consumers move from one to the other.

They join, sync and send heartbeats as ever, and the broker answers each at once: the generation of such a member is
its epoch, nobody leads, and the assignment is what the broker has decided. A heartbeat tells it to join again whenever
its next step is due. The rules are Kafka's.
"""

from collections.abc import Sequence

from headrace.core.coordination.machine import Now, Outcome
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
from headrace.core.groups.consumer import ConsumerProtocol
from headrace.core.groups.consumer_group import ConsumerGroup, ConsumerMember, MemberState
from headrace.core.groups.consumer_records import ClassicMember, EpochRecord, Partitions, Subscription
from headrace.core.groups.deadlines import GroupDeadlines, Wait, Waiting
from headrace.core.groups.records import Record
from headrace.core.groups.settings import GROUP_BYTES_MAX, PROTOCOLS_PER_MEMBER_MAX, SUBSCRIBED_TOPICS_MAX
from headrace.core.groups.subscriptions import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerSubscription,
    assignment_of,
    read_subscription,
)
from headrace.core.groups.targets import Refusal, TopicCatalog
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE
_REBALANCE_IN_PROGRESS = ErrorCode.REBALANCE_IN_PROGRESS

Effects = Outcome[Record]


class ClassicMembers:
    def __init__(self, consumer: ConsumerProtocol, deadlines: GroupDeadlines) -> None:
        self._consumer = consumer
        self._deadlines = deadlines

    # Joining

    def join(self, group: ConsumerGroup, command: Join, out: Effects, now: Now) -> JoinResult:
        """Raises Refusal, and then nothing has changed."""
        subscription = self._checked(group, command)
        if command.member_id == NO_MEMBER and command.instance_id is None and command.member_id_required:
            return JoinResult(ErrorCode.MEMBER_ID_REQUIRED, command.new_member_id)
        member_id = command.member_id or command.new_member_id
        known = self._known(group, command, member_id)
        wanted = Subscription(
            command.instance_id,
            subscription.rack_id,
            command.client_id,
            command.client_host,
            tuple(dict.fromkeys(subscription.topics)),
            None,
            command.rebalance_timeout_ms,
            None,
            ClassicMember(command.session_timeout_ms, command.protocols),
        )
        begins = known is None or known.member_id != member_id
        owned = _by_id(subscription, self._consumer.topics)
        member = self._consumer.advance(group, known, member_id, wanted, owned, out, now, begins=begins)
        self._deadlines.drop(Waiting(Wait.REJOIN, group.group_id, member_id))
        self._deadlines.drop(Waiting(Wait.REVOCATION, group.group_id, member_id))
        sync = Waiting(Wait.SYNC, group.group_id, member_id)
        self._deadlines.set(sync, now.monotonic_ms + command.rebalance_timeout_ms)
        self.extend(group, member, now)
        return JoinResult(
            _NONE, member_id, member.current.epoch, CONSUMER_PROTOCOL_TYPE, command.protocols[0][0], NO_MEMBER
        )

    def _checked(self, group: ConsumerGroup, command: Join) -> ConsumerSubscription:
        settings = self._consumer.settings
        if not settings.session_timeout_ms_min <= command.session_timeout_ms <= settings.session_timeout_ms_max:
            raise Refusal(ErrorCode.INVALID_SESSION_TIMEOUT, "the session timeout is out of bounds")
        offered_bytes = sum(len(name) + len(metadata) for name, metadata in command.protocols)
        known = command.member_id in group.members or command.instance_id in group.static_members
        if (not known and len(group.members) >= settings.consumer_members_max) or (
            group.classic_bytes + offered_bytes > GROUP_BYTES_MAX
        ):
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")
        subscription = None
        if command.protocol_type == CONSUMER_PROTOCOL_TYPE and 0 < len(command.protocols) <= PROTOCOLS_PER_MEMBER_MAX:
            subscription = read_subscription(command.protocols[0][1])
        if subscription is None or not group.speaks_classic([name for name, _ in command.protocols]):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the protocols are not those of the group")
        if len(subscription.topics) > SUBSCRIBED_TOPICS_MAX:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"at most {SUBSCRIBED_TOPICS_MAX} topics can be subscribed to")
        return subscription

    def _known(self, group: ConsumerGroup, command: Join, member_id: str) -> ConsumerMember | None:
        """Who joins: one of the group, the earlier life of a static member, or nobody yet."""
        if command.instance_id is None:
            return group.members.get(member_id)
        known = group.members.get(group.static_members.get(command.instance_id, NO_MEMBER))
        if command.member_id != NO_MEMBER:
            if known is None:
                raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "the instance is not in the group")
            if known.member_id != command.member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "the instance has another member id now")
        return known

    # Syncing and living

    def sync(self, group: ConsumerGroup, command: Sync, now: Now) -> SyncResult:
        member = self._member(group, command.member)
        classic = member.subscription.classic
        assert classic is not None
        protocol, metadata = classic.protocols[0]
        if command.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or command.protocol not in (None, protocol):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "it joined with another protocol")
        if group.epoch > member.current.epoch and member.current.state != MemberState.UNREVOKED:
            self._expect_join(group, member, now)
            raise Refusal(_REBALANCE_IN_PROGRESS, "the group has moved on")
        self._deadlines.drop(Waiting(Wait.SYNC, group.group_id, member.member_id))
        self.extend(group, member, now)
        subscription = read_subscription(metadata)
        version = 0 if subscription is None else subscription.version
        assignment = assignment_of(named(member.current.assigned, self._consumer.topics), version)
        return SyncResult(_NONE, CONSUMER_PROTOCOL_TYPE, protocol, assignment)

    def heartbeat(self, group: ConsumerGroup, command: Membership, now: Now) -> ErrorCode:
        """Told to join again: who is behind the group, has to let go, or can get what it waited for."""
        member = self._member(group, command)
        self.extend(group, member, now)
        state = member.current.state
        if (
            member.current.epoch < group.epoch
            or state == MemberState.UNREVOKED
            or (state == MemberState.UNRELEASED and not group.waits_for_others(member))
        ):
            self._expect_join(group, member, now)
            return _REBALANCE_IN_PROGRESS
        return _NONE

    def _member(self, group: ConsumerGroup, command: Membership) -> ConsumerMember:
        member = self._classic_member(group, LeavingMember(command.member_id, command.instance_id))
        if member.current.epoch != command.generation:
            raise Refusal(ErrorCode.ILLEGAL_GENERATION, f"the generation is {member.current.epoch}")
        return member

    def _classic_member(self, group: ConsumerGroup, named_as: LeavingMember) -> ConsumerMember:
        member_id = named_as.member_id
        if named_as.instance_id is not None:
            known = group.static_members.get(named_as.instance_id)
            if known is not None and known != member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "the instance has another member id now")
            member_id = known or NO_MEMBER
        member = group.members.get(member_id)
        if member is None or member.subscription.classic is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "no such member of the classic protocol")
        return member

    def extend(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        classic = member.subscription.classic
        assert classic is not None
        session = Waiting(Wait.SESSION, group.group_id, member.member_id)
        self._deadlines.set(session, now.monotonic_ms + classic.session_timeout_ms)

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        rejoin = Waiting(Wait.REJOIN, group.group_id, member.member_id)
        if self._deadlines.due_ms(rejoin) is None:
            self._deadlines.set(rejoin, now.monotonic_ms + max(member.subscription.rebalance_timeout_ms, 0))

    def restored(self, group: ConsumerGroup, now: Now) -> None:
        for member in group.members.values():
            if member.subscription.classic is not None:
                self.extend(group, member, now)

    # Leaving

    def leave(self, group: ConsumerGroup, leaving: Sequence[LeavingMember], out: Effects) -> list[LeaveResult]:
        results = []
        members_before = len(group.members)
        for each in leaving:
            try:
                self._consumer.forget(group, self._leaving(group, each).member_id, out)
                results.append(LeaveResult(*each, _NONE))
            except Refusal as refusal:
                results.append(LeaveResult(*each, refusal.error))
        if len(group.members) < members_before:
            out.write(EpochRecord(group.group_id, group.epoch + 1))
        return results

    def _leaving(self, group: ConsumerGroup, leaving: LeavingMember) -> ConsumerMember:
        """Of either protocol: administrators take members out by this request, static ones by their instance alone."""
        if leaving.instance_id is None:
            member = group.members.get(leaving.member_id)
        else:
            member = group.members.get(group.static_members.get(leaving.instance_id, NO_MEMBER))
            if member is not None and leaving.member_id not in (NO_MEMBER, member.member_id):
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "the instance has another member id now")
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
        return member


def named(partitions: Partitions, topics: TopicCatalog) -> list[tuple[str, int]]:
    """With names, of those topics that are still there."""
    names = {topic_id: topics.name_of(topic_id) for topic_id in dict.fromkeys(topic_id for topic_id, _ in partitions)}
    return [(name, partition) for topic_id, partition in partitions if (name := names[topic_id]) is not None]


def _by_id(subscription: ConsumerSubscription, topics: TopicCatalog) -> Partitions:
    found = []
    for topic, partition in subscription.owned:
        known = topics.find(topic)
        if known is not None:
            found.append((known[0], partition))
    return tuple(sorted(found))
