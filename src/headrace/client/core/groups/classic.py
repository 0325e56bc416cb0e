"""A member of a classic group: join, sync, heartbeat and rejoin; as the leader it assigns for all.

With eager assignors the member revokes all partitions before it rejoins; with cooperative ones only those that the new
assignment removes (KIP-429).
"""

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from headrace.client.core.calls import Call, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.groups.assignors import ASSIGNORS, COOPERATIVE
from headrace.client.core.groups.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from headrace.client.core.groups.coordinator import COORDINATOR_CHANNEL, MOVED_ERRORS, Coordinator
from headrace.client.core.groups.membership import NO_GENERATION, MemberIdentity, MembershipSettings, OwnershipChanges
from headrace.client.errors import BadResponse, BrokerError, ClientError, UnsupportedByBroker
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import heartbeat, join_group, leave_group, sync_group

PROTOCOL_TYPE = "consumer"
JOIN_GRACE_MS = 5_000
"""The coordinator responds to a join when all members joined or the rebalance timeout is over; this time is added."""

_INSTANCE_FROM_JOIN_VERSION = 5
_NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ClassicState(Enum):
    OUT = "out"
    REVOKING = "revoking"
    DUE = "due to join"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    STABLE = "stable"


class ClassicMembership:
    def __init__(self, settings: MembershipSettings, cluster: Cluster, coordinator: Coordinator) -> None:
        self.error: ClientError | None = None
        self.changes = OwnershipChanges()
        self.state = ClassicState.OUT
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._is_cooperative = all(name in COOPERATIVE for name in settings.assignors)
        self._topics: tuple[str, ...] = ()
        self._member_id = ""
        self._generation = NO_GENERATION
        self._protocol = ""
        self._due_ms = 0.0
        self._heartbeat_ms = 0.0
        self._beats = False
        """True if a heartbeat awaits its response."""
        self._attempt = 0
        """Grows with each join, so that late responses to an earlier one are recognised."""
        self._joins_again = False
        self._members: dict[str, ConsumerProtocolSubscription] = {}
        """Subscriptions of the group, while this member assigns for it."""
        self._assigned_counts: dict[str, int] = {}
        """Partition counts of the leader's last assignment: the leader rebalances when topics grow or appear."""

    def identity(self) -> MemberIdentity:
        return MemberIdentity(self._generation, self._member_id, self._settings.instance_id)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        if topics == self._topics and self.state != ClassicState.OUT:
            return
        self._topics = topics
        if self.state == ClassicState.OUT:
            self.state = ClassicState.DUE
        else:
            self._join_again()

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        if self.state == ClassicState.OUT or self.error is not None:
            return [], float("inf")
        calls, wakeup_ms = self._coordinator.poll(now_ms)
        if self._coordinator.has_failed():
            self.error = self._coordinator.trouble
        node = self._coordinator.node
        if node is None:
            return calls, wakeup_ms
        if self.state == ClassicState.STABLE and self._assigned_counts and self._assigned_counts != self._counts():
            self._join_again()
        if self.state == ClassicState.DUE and self.changes.pending() is None:
            if self._due_ms <= now_ms:
                calls.append(self._join(node))
            else:
                wakeup_ms = min(wakeup_ms, self._due_ms)
        if self.state == ClassicState.ASSIGNING and self._knows_topics():
            calls.append(self._sync(node, self._assign()))
        if self.state in (ClassicState.STABLE, ClassicState.REVOKING) and self._generation >= 0 and not self._beats:
            if self._heartbeat_ms <= now_ms:
                calls.append(self._heartbeat(node, now_ms))
            else:
                wakeup_ms = min(wakeup_ms, self._heartbeat_ms)
        return calls, wakeup_ms

    def acknowledged(self, now_ms: float) -> None:
        if self.changes.pending() is None and (self.state == ClassicState.REVOKING or self._joins_again):
            self._joins_again = False
            if self.state == ClassicState.STABLE and not self._is_cooperative:
                self._join_again()
            elif self.state in (ClassicState.STABLE, ClassicState.REVOKING):
                self.state, self._due_ms = ClassicState.DUE, now_ms

    def retire(self, now_ms: float) -> list[PendingCall]:
        leave = self.leave_call()
        self._forget_membership()
        self.changes.lose_all()
        self.state = ClassicState.OUT
        return [PendingCall(leave, _ignore)] if leave is not None else []

    def come_back(self, now_ms: float) -> None:
        if self.state == ClassicState.OUT and self._topics:
            self.state, self._due_ms = ClassicState.DUE, now_ms

    def leave_call(self) -> Call | None:
        """Return the leave request. A static member sends none: it may return within the session timeout (KIP-345)."""
        node = self._coordinator.node
        if node is None or not self._member_id or self._settings.instance_id is not None:
            return None
        member = leave_group.LeaveGroupRequestMember(member_id=self._member_id)
        request = leave_group.LeaveGroupRequest(
            group_id=self._settings.group_id, member_id=self._member_id, members=(member,)
        )
        return Call(leave_group, request, node, channel=COORDINATOR_CHANNEL)

    def fenced(self, code: int, now_ms: float) -> None:
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state == ClassicState.STABLE:
                self._join_again()
        elif self.state == ClassicState.STABLE:
            self._removed_from_group(code, now_ms)

    def _join_again(self) -> None:
        """Rejoin when the application has revoked its partitions."""
        if self.state not in (ClassicState.STABLE, ClassicState.DUE):
            self._joins_again = True
            return
        if self.changes.pending() is not None:
            self._joins_again = True  # The last assignment is announced first.
            return
        doomed = self.changes.owned
        if self._is_cooperative:
            doomed = frozenset(each for each in doomed if each.topic not in self._topics)
        self.changes.revoke(doomed)
        self._assigned_counts = {}
        self.state = ClassicState.REVOKING if doomed else ClassicState.DUE

    def _join(self, node: int) -> PendingCall:
        settings = self._settings
        owned = tuple(sorted(self.changes.owned))
        subscription = encode_subscription(
            ConsumerProtocolSubscription(self._topics, owned, self._generation, settings.rack)
        )
        request = join_group.JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.poll_interval_ms_max,
            member_id=self._member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=tuple(
                join_group.JoinGroupRequestProtocol(name=name, metadata=subscription) for name in settings.assignors
            ),
        )
        self.state = ClassicState.JOINING
        self._joins_again = False
        min_version = _INSTANCE_FROM_JOIN_VERSION if settings.instance_id is not None else 0
        return self._pending_call(node, Call(join_group, request, min_version=min_version), self._joined, waits=True)

    def _pending_call(
        self, node: int, call: Call, completed: Callable[[Any, float], None], *, waits: bool = False
    ) -> PendingCall:
        self._attempt += 1
        wait_ms = self._settings.poll_interval_ms_max + JOIN_GRACE_MS if waits else 0
        call = call._replace(target=node, channel=COORDINATOR_CHANNEL, wait_ms_max=wait_ms)
        return PendingCall(call, partial(self._completed, self._attempt, node, completed))

    def _completed(
        self, attempt: int, node: int, completed: Callable[[Any, float], None], reply: Any, now_ms: float
    ) -> None:
        """Handle a response of the current step: apply it, or retry."""
        if attempt != self._attempt or self.state == ClassicState.OUT:
            return
        if isinstance(reply, UnsupportedByBroker):
            self.error = reply
        elif isinstance(reply, ClientError) or reply.error_code in MOVED_ERRORS:
            self._coordinator.lost(node, now_ms)
            self._retry(now_ms)
        else:
            completed(reply, now_ms)

    def _retry(self, now_ms: float) -> None:
        self.state, self._due_ms = ClassicState.DUE, now_ms + self._settings.retry_pause_ms

    def _joined(self, reply: join_group.JoinGroupResponse, now_ms: float) -> None:
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = reply.member_id
            self.state, self._due_ms = ClassicState.DUE, now_ms
        elif reply.error_code:
            self._refused(reply.error_code, now_ms)
        else:
            self._member_id, self._generation = reply.member_id, reply.generation_id
            self._protocol = reply.protocol_name or ""
            self._assigned_counts = {}
            is_leader = reply.leader == reply.member_id and not reply.skip_assignment
            if is_leader and self._protocol not in self._settings.assignors:
                self.error = BadResponse(
                    f"the coordinator chose {self._protocol!r}, which this consumer did "
                    "not offer; use a common partition_assignment_strategy in all members"
                )
            elif is_leader:
                self._members = {each.member_id: decode_subscription(each.metadata) for each in reply.members}
                self._cluster.want({topic for each in self._members.values() for topic in each.topics})
                self.state = ClassicState.ASSIGNING
            else:
                self._members = {}
                self.state = ClassicState.ASSIGNING

    def _knows_topics(self) -> bool:
        """Return whether the leader knows the partition counts; topics that do not exist have none."""
        topics = {topic for each in self._members.values() for topic in each.topics}
        return all(topic in self._cluster.topics or topic in self._cluster.topic_errors for topic in topics)

    def _counts(self) -> dict[str, int]:
        return {topic: self._cluster.partition_count(topic) or 0 for topic in self._assigned_counts}

    def _assign(self) -> dict[str, tuple[TopicPartition, ...]]:
        if not self._members:
            return {}
        topics = {topic for each in self._members.values() for topic in each.topics}
        self._assigned_counts = {topic: self._cluster.partition_count(topic) or 0 for topic in topics}
        existing = {topic: count for topic, count in self._assigned_counts.items() if count}
        assigned = ASSIGNORS[self._protocol](self._members, existing)
        self._members = {}
        return assigned

    def _sync(self, node: int, assigned: dict[str, tuple[TopicPartition, ...]]) -> PendingCall:
        request = sync_group.SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=tuple(
                sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
                for member_id, partitions in assigned.items()
            ),
        )
        self.state = ClassicState.SYNCING
        return self._pending_call(node, Call(sync_group, request), self._synced, waits=True)

    def _synced(self, reply: sync_group.SyncGroupResponse, now_ms: float) -> None:
        if reply.error_code:
            self._refused(reply.error_code, now_ms)
            return
        assigned = frozenset(decode_assignment(reply.assignment))
        owned = self.changes.owned
        self.state = ClassicState.STABLE
        self._heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
        if self._is_cooperative and owned - assigned:
            self.changes.revoke(owned - assigned)
            self._joins_again = True  # Members that get them learn so in the next round.
        self.changes.assign(assigned - owned)

    def _heartbeat(self, node: int, now_ms: float) -> PendingCall:
        request = heartbeat.HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.instance_id,
        )
        self._beats = True
        self._heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
        call = Call(heartbeat, request, node, channel=COORDINATOR_CHANNEL)
        return PendingCall(call, partial(self._heartbeat_answered, node, self._generation))

    def _heartbeat_answered(self, node: int, generation: int, reply: Any, now_ms: float) -> None:
        self._beats = False
        if generation != self._generation:
            return
        if isinstance(reply, ClientError) or reply.error_code in MOVED_ERRORS:
            self._coordinator.lost(node, now_ms)
            self._heartbeat_ms = now_ms
        elif reply.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state == ClassicState.STABLE:
                self._join_again()
        elif reply.error_code and self.state in (ClassicState.STABLE, ClassicState.REVOKING):
            self._refused(reply.error_code, now_ms)

    def _refused(self, code: int, now_ms: float) -> None:
        if code in _NOT_A_MEMBER:
            self._removed_from_group(code, now_ms)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS or code in RETRIABLE:
            if self.state in (ClassicState.JOINING, ClassicState.SYNCING):
                self._retry(now_ms)
        else:
            self.error = BrokerError(code, f'this consumer cannot be a member of group "{self._settings.group_id}"')
            self.changes.lose_all()

    def _removed_from_group(self, code: int, now_ms: float) -> None:
        """Handle removal from the group: its partitions belong to other members by now."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._forget_membership()
        self._generation = NO_GENERATION
        self.changes.lose_all()
        self._retry(now_ms)

    def _forget_membership(self) -> None:
        self._attempt += 1
        self._member_id, self._generation = "", NO_GENERATION
        self._joins_again = self._beats = False
        self._assigned_counts = {}


def _ignore(_reply: Any, _now_ms: float) -> None:
    """Ignore the response to a leave request."""
