"""The state of a member of a KIP-848 group: the coordinator assigns partitions, and heartbeats carry everything.

The member sends the partitions that it owns, and the coordinator returns its target assignment. The member revokes the
difference first, then assigns it, and reports the result. A heartbeat leaves out fields that have not changed since the
last response. After a lost response it contains all fields, because the coordinator sends an assignment only once, and
again only to a member that sends all fields.
"""

from functools import partial
from typing import Any

from headrace.client.core.calls import Call, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.groups.coordinator import COORDINATOR_CHANNEL, MOVED_ERRORS, Coordinator
from headrace.client.core.groups.membership import MemberIdentity, MembershipSettings, OwnershipChanges
from headrace.client.errors import BrokerError, ClientError, UnsupportedByBroker
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicPartition
from headrace.wire.messages import consumer_group_heartbeat as heartbeat_api

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATIC_EPOCH = -2
"""Sent by a static member that will return under the same instance id."""

_MEMBER_ID_FROM_CLIENT_VERSION = 1
_NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})


class ConsumerProtocolMember:
    def __init__(
        self, settings: MembershipSettings, cluster: Cluster, coordinator: Coordinator, *, member_id: str
    ) -> None:
        self.error: ClientError | None = None
        self.changes = OwnershipChanges()
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._member_id = member_id
        self._epoch = JOINING_EPOCH
        self._is_in = False
        self._topics: tuple[str, ...] = ()
        self._told_topics: tuple[str, ...] | None = None
        self._told_owned: frozenset[TopicPartition] | None = None
        self._target: tuple[tuple[bytes, int], ...] | None = None
        """The target assignment, by topic ids, until the member begins to apply it."""
        self._is_told = False
        """True if the application has received an assignment, possibly empty, since the member joined."""
        self._is_unheard = False
        """True if the response to a heartbeat was lost, which may have contained an assignment."""
        self._heartbeat_ms = 0.0
        self._beats = False
        self._generation = 0
        """Grows with every new join, so that late responses are recognised."""

    def identity(self) -> MemberIdentity:
        return MemberIdentity(self._epoch, self._member_id, self._settings.instance_id)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self._topics = topics
        self._cluster.want(topics)
        self._is_in = True
        self._heartbeat_ms = 0.0

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        if not self._is_in or self.error is not None:
            return [], float("inf")
        self._reconcile()
        calls, wakeup_ms = self._coordinator.poll(now_ms)
        if self._coordinator.has_failed():
            self.error = self._coordinator.trouble
        node = self._coordinator.node
        # A joining member owns nothing: the application must first release the partitions that were lost.
        may_beat = self._epoch != JOINING_EPOCH or self.changes.pending() is None
        if node is not None and not self._beats and may_beat:
            if self._heartbeat_ms <= now_ms:
                calls.append(self._heartbeat(node, now_ms))
            else:
                wakeup_ms = min(wakeup_ms, self._heartbeat_ms)
        return calls, wakeup_ms

    def acknowledged(self, now_ms: float) -> None:
        if self.changes.pending() is None:
            self._heartbeat_ms = now_ms  # The coordinator waits for the new owned partitions.

    def retire(self, now_ms: float) -> list[PendingCall]:
        farewell = self.leave_call()
        self._begin_again()
        self.changes.lose_all()
        self._is_in = False
        return [PendingCall(farewell, _ignore)] if farewell is not None else []

    def come_back(self, now_ms: float) -> None:
        if not self._is_in and self._topics:
            self._is_in, self._heartbeat_ms = True, now_ms

    def leave_call(self) -> Call | None:
        node = self._coordinator.node
        if node is None or self._epoch <= 0:
            return None
        request = heartbeat_api.ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self._member_id,
            instance_id=self._settings.instance_id,
            member_epoch=LEAVING_EPOCH if self._settings.instance_id is None else LEAVING_STATIC_EPOCH,
        )
        return self._call(request, node)

    def fenced(self, code: int, now_ms: float) -> None:
        if code in _NOT_A_MEMBER:
            self._expelled(now_ms)
        else:
            self._heartbeat_ms = now_ms  # STALE_MEMBER_EPOCH: the next response has the newer one.

    def _call(self, request: heartbeat_api.ConsumerGroupHeartbeatRequest, node: int) -> Call:
        return Call(
            heartbeat_api, request, node, min_version=_MEMBER_ID_FROM_CLIENT_VERSION, channel=COORDINATOR_CHANNEL
        )

    def _heartbeat(self, node: int, now_ms: float) -> PendingCall:
        settings = self._settings
        is_joining = self._epoch == JOINING_EPOCH
        owned = self.changes.owned
        says_all = is_joining or self._is_unheard
        tells_topics = says_all or self._told_topics != self._topics
        tells_owned = says_all or (self._told_owned != owned and self.changes.pending() is None)
        request = heartbeat_api.ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=settings.instance_id,
            rack_id=settings.rack if is_joining else None,
            rebalance_timeout_ms=settings.poll_interval_ms_max if says_all else -1,
            subscribed_topic_names=self._topics if tells_topics else None,
            server_assignor=settings.server_assignor if is_joining else None,
            topic_partitions=self._by_id(owned) if tells_owned else None,
        )
        self._beats = True
        told = (self._topics if tells_topics else self._told_topics, owned if tells_owned else self._told_owned)
        return PendingCall(self._call(request, node), partial(self._beaten, node, self._generation, told))

    def _by_id(
        self, partitions: frozenset[TopicPartition]
    ) -> tuple[heartbeat_api.ConsumerGroupHeartbeatRequestTopicPartitions, ...]:
        topics: dict[bytes, list[int]] = {}
        for topic, index in sorted(partitions):
            topic_id = self._cluster.topic_id(topic)
            if topic_id != NO_TOPIC_ID:
                topics.setdefault(topic_id, []).append(index)
        return tuple(
            heartbeat_api.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=tuple(indexes))
            for topic_id, indexes in topics.items()
        )

    def _beaten(
        self,
        node: int,
        generation: int,
        told: tuple[tuple[str, ...] | None, frozenset[TopicPartition] | None],
        reply: Any,
        now_ms: float,
    ) -> None:
        if generation != self._generation:
            return
        self._beats = False
        if isinstance(reply, UnsupportedByBroker):
            self.error = reply
        elif isinstance(reply, ClientError) or reply.error_code in MOVED_ERRORS:
            self._coordinator.lost(node, now_ms)
            self._is_unheard = True
            self._heartbeat_ms = now_ms + self._settings.retry_pause_ms
        elif reply.error_code in _NOT_A_MEMBER:
            self._expelled(now_ms)
        elif reply.error_code in RETRIABLE:
            self._heartbeat_ms = now_ms + self._settings.retry_pause_ms
        elif reply.error_code:
            what = f'this consumer cannot be a member of group "{self._settings.group_id}"'
            self.error = BrokerError(reply.error_code, what, reply.error_message)
            self.changes.lose_all()
        else:
            self._told_topics, self._told_owned = told
            self._is_unheard = False
            self._epoch = reply.member_epoch
            self._member_id = reply.member_id or self._member_id
            self._heartbeat_ms = now_ms + reply.heartbeat_interval_ms
            if reply.assignment is not None:
                # Acknowledge it in any case: it may revoke partitions that were assigned before and never applied.
                self._told_owned = None
                self._target = tuple(
                    (each.topic_id, index) for each in reply.assignment.topic_partitions for index in each.partitions
                )

    def _reconcile(self) -> None:
        """Apply the target assignment once the last change is complete and the names of its topics are known."""
        if self._target is None or self.changes.pending() is not None:
            return
        names = {topic_id: self._cluster.topic_name(topic_id) for topic_id, _ in self._target}
        if None in names.values():
            self._cluster.mark_wrong()
            return
        target = frozenset(TopicPartition(names[topic_id] or "", index) for topic_id, index in self._target)
        self._target = None
        if target == self.changes.owned and self._is_told:
            return  # A repetition of the last assignment.
        self._is_told = True
        self.changes.revoke(self.changes.owned - target)
        self.changes.assign(target - self.changes.owned)

    def _expelled(self, now_ms: float) -> None:
        """Join again: at once, or after a pause if the join itself was refused."""
        pause_ms = self._settings.retry_pause_ms if self._epoch == JOINING_EPOCH else 0
        self._begin_again()
        self.changes.lose_all()
        self._heartbeat_ms = now_ms + pause_ms

    def _begin_again(self) -> None:
        self._generation += 1
        self._epoch = JOINING_EPOCH
        self._told_topics = self._told_owned = self._target = None
        self._beats = self._is_told = self._is_unheard = False


def _ignore(_reply: Any, _now_ms: float) -> None:
    """Ignore the response to a farewell."""
