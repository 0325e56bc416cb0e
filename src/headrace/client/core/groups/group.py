"""A consumer in a group: the membership decides which partitions are read, and their offsets are committed.

The front reports polls of the application, informs the application of changes (`notice`, `begin`, `finish`), and runs
the operations here; everything else happens in `poll`, even while the application works.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from headrace.client.core.calls import Call, Operation, Pause, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import ConsumerCore
from headrace.client.core.groups import commits
from headrace.client.core.groups.classic import ClassicMembership
from headrace.client.core.groups.consumer_group_member import ConsumerProtocolMember
from headrace.client.core.groups.coordinator import MOVED_ERRORS, Coordinator, CoordinatorKind
from headrace.client.core.groups.group_logging import GroupEventLogger, Tell
from headrace.client.core.groups.membership import (
    GroupMembership,
    MemberIdentity,
    MembershipSettings,
    Notice,
    NoticeKind,
)
from headrace.client.errors import BrokerError, ClientError, UnsupportedByBroker
from headrace.client.types import OffsetAndMetadata
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition

EPOCH_PROTOCOL = "consumer"
_FENCED = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class GroupCore:
    """`member_id` is used by KIP-848 groups, whose members choose their own id; `tell` logs group changes."""

    def __init__(
        self,
        settings: MembershipSettings,
        cluster: Cluster,
        consumer: ConsumerCore,
        *,
        member_id: str,
        tell: Tell | None = None,
    ) -> None:
        self.settings = settings
        self._cluster = cluster
        self._consumer = consumer
        self._member_id = member_id
        self._matches: Callable[[str], bool] | None = None
        self._coordinator = Coordinator(
            CoordinatorKind.GROUP, settings.group_id, cluster, retry_pause_ms=settings.retry_pause_ms
        )
        self._membership: GroupMembership | None = None
        self._polled_ms: float | None = None
        self._is_retired = False
        self._looks_up = False
        self._lookup_ms = 0.0
        self._commit_ms = 0.0
        self._to_commit: dict[TopicPartition, OffsetAndMetadata] = {}
        self._commits = False
        """True if an auto-commit awaits its response."""
        self._committed: dict[TopicPartition, int] = {}
        self._news = GroupEventLogger(settings.group_id, tell)

    # Subscription

    def subscribe(self, topics: Iterable[str]) -> None:
        self._matches = None
        self._cluster.want(names := tuple(sorted(set(topics))))
        self._member().subscribe(names)

    def subscribe_matching(self, matches: Callable[[str], bool]) -> None:
        """Read all topics whose names match, including those created later; not the internal ones."""
        self._matches = matches
        self._cluster.want_all()

    def _member(self) -> GroupMembership:
        if self._membership is None:
            if self.settings.protocol == EPOCH_PROTOCOL:
                self._membership = ConsumerProtocolMember(
                    self.settings, self._cluster, self._coordinator, member_id=self._member_id
                )
            else:
                self._membership = ClassicMembership(self.settings, self._cluster, self._coordinator)
        return self._membership

    def identity(self) -> MemberIdentity:
        return self._membership.identity() if self._membership is not None else MemberIdentity()

    def lasting_error(self, now_ms: float, patience_ms: float) -> ClientError | None:
        """Return why the group has no coordinator, if it has had none for that long."""
        coordinator = self._coordinator
        is_lasting = coordinator.node is None and now_ms - coordinator.trouble_since_ms >= patience_ms
        return coordinator.trouble if is_lasting else None

    def polled(self, now_ms: float) -> None:
        """Note that the application polls: the records it got before are processed."""
        self._polled_ms = now_ms
        if self._is_retired:
            self._is_retired = False
            self._member().come_back(now_ms)
        interval_ms = self.settings.auto_commit_interval_ms
        if interval_ms is not None and now_ms >= self._commit_ms:
            self._commit_ms = now_ms + interval_ms
            self._to_commit = self.uncommitted()
        if self._membership is not None and self._membership.error is not None and self.notice() is None:
            raise self._membership.error

    def uncommitted(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions that are not committed yet."""
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for partition in self._consumer.assignment():
            position = self._consumer.position(partition)
            if position is not None and self._committed.get(partition) != position:
                found[partition] = OffsetAndMetadata(position, "", self._consumer.last_epoch(partition))
        return found

    # Background work

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        calls, wakeup_ms = self._consumer.poll(now_ms)
        self._follow_matches()
        membership = self._membership
        if membership is not None:
            limit_ms = self.settings.poll_interval_ms_max
            if self._polled_ms is not None and not self._is_retired and now_ms - self._polled_ms > limit_ms:
                self._is_retired = True
                self._news.retired(limit_ms)
                calls += membership.retire(now_ms)
            mine, due_ms = membership.poll(now_ms)
        else:
            mine, due_ms = self._coordinator.poll(now_ms)
        calls += mine
        wakeup_ms = min(wakeup_ms, due_ms)
        node = self._coordinator.node
        if node is None:
            return calls, wakeup_ms
        awaiting = self._consumer.awaiting_committed()
        if awaiting and not self._looks_up:
            if self._lookup_ms <= now_ms:
                self._looks_up = True
                call = commits.lookup_call(self.settings.group_id, awaiting, node)
                calls.append(PendingCall(call, partial(self._looked_up, node)))
            else:
                wakeup_ms = min(wakeup_ms, self._lookup_ms)
        if self._to_commit and not self._commits:
            offsets, self._to_commit, self._commits = self._to_commit, {}, True
            calls.append(PendingCall(self._commit_call(offsets, node), partial(self._auto_committed, node, offsets)))
        return calls, wakeup_ms

    def _follow_matches(self) -> None:
        if self._matches is None or not self._cluster.brokers:
            return
        known = self._cluster.topics.values()
        topics = tuple(sorted(topic.name for topic in known if not topic.internal and self._matches(topic.name)))
        self._member().subscribe(topics)

    def _looked_up(self, node: int, reply: Any, now_ms: float) -> None:
        self._looks_up = False
        if isinstance(reply, UnsupportedByBroker):
            self._consumer.tell(reply)
        if isinstance(reply, ClientError):
            self._coordinator.lost(node, now_ms)
        else:
            found, code = commits.looked_up(reply)
            if not code:
                for partition, offset in found.items():
                    self._consumer.begin_at_committed(partition, offset.offset, offset.leader_epoch)
                    if offset.offset >= 0:
                        self._committed[partition] = offset.offset
                return
            if code in MOVED_ERRORS:
                self._coordinator.lost(node, now_ms)
            elif code not in RETRIABLE:
                what = f'the committed offsets of group "{self.settings.group_id}" could not be read'
                self._consumer.tell(BrokerError(code, what))
        self._lookup_ms = now_ms + self.settings.retry_pause_ms

    def _auto_committed(self, node: int, offsets: Offsets, reply: Any, now_ms: float) -> None:
        self._commits = False
        if isinstance(reply, ClientError):
            self._news.not_committed(reply)
            self._coordinator.lost(node, now_ms)
            return
        refused = commits.refused_commits(reply)
        self._committed.update((p, each.offset) for p, each in offsets.items() if p not in refused)
        if not refused:
            self._news.committed()
        else:
            code = next(iter(refused.values()))
            self._news.not_committed(self._commit_error(code))
            if code in MOVED_ERRORS:
                self._coordinator.lost(node, now_ms)
            elif code in _FENCED and self._membership is not None:
                self._membership.fenced(code, now_ms)

    def _commit_call(self, offsets: Offsets, node: int) -> Call:
        is_epochs = self.settings.protocol == EPOCH_PROTOCOL and self._membership is not None
        return commits.commit_call(self.settings.group_id, self.identity(), offsets, node, epochs=is_epochs)

    def _commit_error(self, code: int) -> BrokerError:
        hint = "the group has rebalanced: the new owners of the partitions will read the records again"
        return BrokerError(
            code,
            f'the offsets of group "{self.settings.group_id}" could not be committed',
            hint if code in _FENCED else None,
        )

    # Operations

    def commit(self, offsets: Offsets) -> Operation[None]:
        """Commit all of these offsets or raise an error; offsets accepted before the error stay committed."""
        left = dict(offsets)
        trouble: ClientError | None = None
        for _ in range(commits.ATTEMPTS_MAX):
            if not left:
                return
            node = yield from self._coordinator.find()
            (reply,) = yield (self._commit_call(left, node),)
            if isinstance(reply, UnsupportedByBroker):
                raise reply
            if isinstance(reply, ClientError):
                trouble = reply
                self._coordinator.lost(node, 0.0)
            else:
                refused = commits.refused_commits(reply)
                self._committed.update((p, each.offset) for p, each in left.items() if p not in refused)
                left = {partition: left[partition] for partition in refused if partition in left}
                if not left:
                    return
                trouble = self._give_up_or_wait(refused, node)
            yield Pause(self.settings.retry_pause_ms)
        raise trouble or self._commit_error(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _give_up_or_wait(self, refused: Mapping[TopicPartition, int], node: int) -> BrokerError:
        for code in refused.values():
            if code in _FENCED and self._membership is not None:
                self._membership.fenced(code, self._polled_ms or 0.0)
            if code in MOVED_ERRORS:
                self._coordinator.lost(node, 0.0)
            elif code not in RETRIABLE and code != ErrorCode.STALE_MEMBER_EPOCH:
                raise self._commit_error(code)
        return self._commit_error(next(iter(refused.values())))

    def give_up_commit(self, offsets: Offsets) -> None:
        """Stop trying to commit these offsets: the next owner of the partitions reads the records again."""
        self._committed.update((partition, each.offset) for partition, each in offsets.items())

    def committed(self, partitions: Iterable[TopicPartition]) -> Operation[dict[TopicPartition, OffsetAndMetadata]]:
        return commits.committed(
            self._coordinator, self.settings.group_id, partitions, retry_pause_ms=self.settings.retry_pause_ms
        )

    def leave(self) -> Operation[None]:
        """Leave the group, so that the other members need not wait for the session timeout."""
        leave = self._membership.leave_call() if self._membership is not None else None
        self._membership, self._matches, self._to_commit = None, None, {}
        self._consumer.assign(())
        self._news.left()
        if leave is not None:
            yield (leave,)

    # Notices for the application

    def notice(self) -> Notice | None:
        """Return the next change to announce to the application."""
        return self._membership.changes.pending() if self._membership is not None else None

    def begin(self, notice: Notice) -> None:
        """Prepare the announcement: assigned partitions can already be sought and paused."""
        self._news.changed(notice, self.identity())
        if notice.kind == NoticeKind.ASSIGNED and notice.partitions:
            kept = self._consumer.assignment()
            self._consumer.assign((*kept, *notice.partitions), needs_committed=True)

    def finish(self, notice: Notice, now_ms: float) -> None:
        """Complete the announcement: revoked and lost partitions are no longer read."""
        assert self._membership is not None
        if notice.kind != NoticeKind.ASSIGNED:
            doomed = frozenset(notice.partitions)
            self._consumer.assign(each for each in self._consumer.assignment() if each not in doomed)
            for partition in doomed:
                self._committed.pop(partition, None)
                self._to_commit.pop(partition, None)
        self._membership.changes.acknowledge(notice)
        self._membership.acknowledged(now_ms)

    def owned(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(self._membership.changes.owned)) if self._membership is not None else ()
