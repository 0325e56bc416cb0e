"""Classic members of a KIP-848 group, while its consumers migrate from one protocol to the other.

They join, sync and send heartbeats as before, and the broker responds to each request at once: the generation of such
a member is its member epoch, the group has no leader, and the broker computes the assignment. The response to a
heartbeat makes the member join again whenever its next reconciliation step is due. The rules are Kafka's.
"""

from collections.abc import Sequence

from headrace.core.coordination.machine import Now
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
from headrace.core.groups.consumer import ConsumerProtocol
from headrace.core.groups.consumer_group import ConsumerGroup, ConsumerGroupMember, MemberState
from headrace.core.groups.consumer_records import ClassicMemberMetadata, EpochRecord, MemberSubscription, Partitions
from headrace.core.groups.deadlines import DeadlineKind, GroupDeadline, GroupDeadlines
from headrace.core.groups.settings import (
    GROUP_BYTES_MAX,
    PROTOCOLS_PER_MEMBER_MAX,
    SUBSCRIBED_TOPICS_MAX,
    GroupCoordinatorSettings,
)
from headrace.core.groups.subscriptions import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerSubscription,
    assignment_of,
    read_subscription,
)
from headrace.core.groups.tables import GroupDecisionBuilder
from headrace.core.groups.targets import GroupRequestRefused, TopicCatalog
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE
_REBALANCE_IN_PROGRESS = ErrorCode.REBALANCE_IN_PROGRESS


class ClassicMembers:
    def __init__(
        self, settings: GroupCoordinatorSettings, deadlines: GroupDeadlines, consumer: ConsumerProtocol
    ) -> None:
        self._settings = settings
        self._deadlines = deadlines
        self._consumer = consumer

    # Join

    def join(self, group: ConsumerGroup, command: Join, out: GroupDecisionBuilder, now: Now) -> JoinResult:
        """Add or update a classic member. Raises GroupRequestRefused before anything changes."""
        subscription = self._checked_subscription(group, command)
        if command.member_id == NO_MEMBER and command.instance_id is None and command.member_id_required:
            return JoinResult(ErrorCode.MEMBER_ID_REQUIRED, command.new_member_id)
        member_id = command.member_id or command.new_member_id
        known = self._known(group, command, member_id)
        wanted = MemberSubscription(
            command.instance_id,
            subscription.rack_id,
            command.client_id,
            command.client_host,
            tuple(dict.fromkeys(subscription.topics)),
            None,
            command.rebalance_timeout_ms,
            None,
            ClassicMemberMetadata(command.session_timeout_ms, command.protocols),
        )
        begins = known is None or known.member_id != member_id
        owned = _by_id(subscription, self._consumer.topics)
        member = self._consumer.advance(
            group, known, member_id, wanted, owned, out, now, begins=begins, requester=command.requester
        )
        self._deadlines.drop(GroupDeadline(DeadlineKind.REJOIN, group.group_id, member_id))
        self._deadlines.drop(GroupDeadline(DeadlineKind.REVOCATION, group.group_id, member_id))
        sync = GroupDeadline(DeadlineKind.SYNC, group.group_id, member_id)
        self._deadlines.set(sync, now.monotonic_ms + command.rebalance_timeout_ms)
        self._extend_session(group, member, now)
        return JoinResult(
            _NONE, member_id, member.current.epoch, CONSUMER_PROTOCOL_TYPE, command.protocols[0][0], NO_MEMBER
        )

    def _checked_subscription(self, group: ConsumerGroup, command: Join) -> ConsumerSubscription:
        settings = self._settings
        if not settings.session_timeout_ms_min <= command.session_timeout_ms <= settings.session_timeout_ms_max:
            raise GroupRequestRefused(
                ErrorCode.INVALID_SESSION_TIMEOUT, "the session timeout is outside of the broker's limits"
            )
        offered_bytes = sum(len(name) + len(metadata) for name, metadata in command.protocols)
        known = command.member_id in group.members or command.instance_id in group.static_members
        if (not known and len(group.members) >= settings.consumer_members_max) or (
            group.classic_bytes + offered_bytes > GROUP_BYTES_MAX
        ):
            raise GroupRequestRefused(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")
        subscription = None
        if command.protocol_type == CONSUMER_PROTOCOL_TYPE and 0 < len(command.protocols) <= PROTOCOLS_PER_MEMBER_MAX:
            subscription = read_subscription(command.protocols[0][1])
        if subscription is None or not group.supports_classic_protocols([name for name, _ in command.protocols]):
            raise GroupRequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the group supports none of the protocols")
        if len(subscription.topics) > SUBSCRIBED_TOPICS_MAX:
            raise GroupRequestRefused(
                ErrorCode.INVALID_REQUEST, f"a subscription can name at most {SUBSCRIBED_TOPICS_MAX} topics"
            )
        return subscription

    def _known(self, group: ConsumerGroup, command: Join, member_id: str) -> ConsumerGroupMember | None:
        """Return the sender: a member, the earlier incarnation of a static member, or None for a new member."""
        if command.instance_id is None:
            return group.members.get(member_id)
        known = group.members.get(group.static_members.get(command.instance_id, NO_MEMBER))
        if command.member_id != NO_MEMBER:
            if known is None:
                raise GroupRequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, "the group has no member with this instance id")
            if known.member_id != command.member_id:
                raise GroupRequestRefused(ErrorCode.FENCED_INSTANCE_ID, "a newer member uses this instance id")
        return known

    # Sync and heartbeats

    def sync(self, group: ConsumerGroup, command: Sync, now: Now) -> SyncResult:
        member = self._member(group, command.member)
        classic = member.subscription.classic
        assert classic is not None
        protocol, metadata = classic.protocols[0]
        if command.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or command.protocol not in (None, protocol):
            raise GroupRequestRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the member joined with another protocol")
        if group.epoch > member.current.epoch and member.current.state != MemberState.UNREVOKED:
            self._expect_join(group, member, now)
            raise GroupRequestRefused(_REBALANCE_IN_PROGRESS, "the group is rebalancing")
        self._deadlines.drop(GroupDeadline(DeadlineKind.SYNC, group.group_id, member.member_id))
        self._extend_session(group, member, now)
        subscription = read_subscription(metadata)
        version = 0 if subscription is None else subscription.version
        assignment = assignment_of(with_topic_names(member.current.assigned, self._consumer.topics), version)
        return SyncResult(_NONE, CONSUMER_PROTOCOL_TYPE, protocol, assignment)

    def heartbeat(self, group: ConsumerGroup, command: MemberClaim, now: Now) -> ErrorCode:
        """Extend the session. The response makes the member join again if a reconciliation step is due:

        if it is behind the group epoch, must revoke partitions, or can get partitions that it waited for.
        """
        member = self._member(group, command)
        self._extend_session(group, member, now)
        state = member.current.state
        if (
            member.current.epoch < group.epoch
            or state == MemberState.UNREVOKED
            or (state == MemberState.UNRELEASED and not group.waits_for_others(member))
        ):
            self._expect_join(group, member, now)
            return _REBALANCE_IN_PROGRESS
        return _NONE

    def _member(self, group: ConsumerGroup, command: MemberClaim) -> ConsumerGroupMember:
        member = self._classic_member(group, LeavingMember(command.member_id, command.instance_id))
        if member.current.epoch != command.generation:
            raise GroupRequestRefused(
                ErrorCode.ILLEGAL_GENERATION, f"the generation of the member is {member.current.epoch}"
            )
        return member

    def _classic_member(self, group: ConsumerGroup, claim: LeavingMember) -> ConsumerGroupMember:
        member_id = claim.member_id
        if claim.instance_id is not None:
            known = group.static_members.get(claim.instance_id)
            if known is not None and known != member_id:
                raise GroupRequestRefused(ErrorCode.FENCED_INSTANCE_ID, "a newer member uses this instance id")
            member_id = known or NO_MEMBER
        member = group.members.get(member_id)
        if member is None or member.subscription.classic is None:
            raise GroupRequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, "the group has no such classic member")
        return member

    def _extend_session(self, group: ConsumerGroup, member: ConsumerGroupMember, now: Now) -> None:
        classic = member.subscription.classic
        assert classic is not None
        session = GroupDeadline(DeadlineKind.SESSION, group.group_id, member.member_id)
        self._deadlines.set(session, now.monotonic_ms + classic.session_timeout_ms)

    def _expect_join(self, group: ConsumerGroup, member: ConsumerGroupMember, now: Now) -> None:
        rejoin = GroupDeadline(DeadlineKind.REJOIN, group.group_id, member.member_id)
        if self._deadlines.due_ms(rejoin) is None:
            self._deadlines.set(rejoin, now.monotonic_ms + max(member.subscription.rebalance_timeout_ms, 0))

    def start_sessions(self, group: ConsumerGroup, now: Now) -> None:
        """Start the sessions of the classic members of a group that was loaded or converted."""
        for member in group.members.values():
            if member.subscription.classic is not None:
                self._extend_session(group, member, now)

    # Leave

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[LeavingMember], out: GroupDecisionBuilder
    ) -> list[LeaveResult]:
        results = []
        members_before = len(group.members)
        for each in leaving:
            try:
                self._consumer.remove(group, self._leaving_member(group, each).member_id, out)
                results.append(LeaveResult(*each, _NONE))
            except GroupRequestRefused as refusal:
                results.append(LeaveResult(*each, refusal.error))
        if len(group.members) < members_before:
            out.write(EpochRecord(group.group_id, group.epoch + 1))
        return results

    def _leaving_member(self, group: ConsumerGroup, leaving: LeavingMember) -> ConsumerGroupMember:
        """Return a member of either protocol: administrators remove members this way, static ones by instance id."""
        if leaving.instance_id is None:
            member = group.members.get(leaving.member_id)
        else:
            member = group.members.get(group.static_members.get(leaving.instance_id, NO_MEMBER))
            if member is not None and leaving.member_id not in (NO_MEMBER, member.member_id):
                raise GroupRequestRefused(ErrorCode.FENCED_INSTANCE_ID, "a newer member uses this instance id")
        if member is None:
            raise GroupRequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, "the member is not in the group")
        return member


def with_topic_names(partitions: Partitions, topics: TopicCatalog) -> list[tuple[str, int]]:
    """Return the partitions with topic names; partitions of deleted topics are left out."""
    names = {topic_id: topics.name_of(topic_id) for topic_id in dict.fromkeys(topic_id for topic_id, _ in partitions)}
    return [(name, partition) for topic_id, partition in partitions if (name := names[topic_id]) is not None]


def _by_id(subscription: ConsumerSubscription, topics: TopicCatalog) -> Partitions:
    found = []
    for topic, partition in subscription.owned:
        known = topics.find(topic)
        if known is not None:
            found.append((known[0], partition))
    return tuple(sorted(found))
