"""What is asked about offsets: commits, in transactions and outside of them, reads, deletions, and retention."""

from collections.abc import Collection, Iterable, Sequence

from headrace.core.coordination.machine import Now, Outcome, Producer, Ticket
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.commands import Commit, FetchedOffset, Membership, is_nobody
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.deadlines import Wait, Waiting
from headrace.core.groups.migration import delete_records
from headrace.core.groups.offsets import expired, unused_for_long
from headrace.core.groups.records import CommittedOffset, GroupRecord, OffsetRecord
from headrace.core.groups.settings import (
    GROUPS_PER_SLICE,
    OFFSETS_PER_GROUP_MAX,
    OFFSETS_PER_SLICE,
    PENDING_OFFSETS_MAX,
    SLICE_PAUSE_MS,
    GroupSettings,
)
from headrace.core.groups.states import GroupState
from headrace.core.groups.tables import NO_OFFSETS, Effects, GroupDecision, GroupTables
from headrace.core.groups.targets import TopicCatalog
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TIMESTAMP

_NONE = ErrorCode.NONE
_new = tuple.__new__


class OffsetRequests(GroupTables):
    def __init__(self, settings: GroupSettings, topics: TopicCatalog) -> None:
        super().__init__(settings, topics)
        self._to_look_at: list[str] = []
        """Groups whose offsets the round of retention that is under way has not looked at yet."""

    # Commits

    def commit(self, command: Commit, ticket: Ticket, now: Now) -> GroupDecision:
        """Answered with one ErrorCode for each offset. Those of a transaction count when it is committed."""
        out = self._outcome() if command.producer is None else self._pending_outcome(command.producer)
        error = self._commit_error(command, now)
        errors = []
        for asked in command.offsets:
            if error is not _NONE:
                errors.append(error)
            elif len(asked.metadata.encode()) > self.settings.offset_metadata_bytes_max:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            elif self._is_full(command):
                errors.append(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
            else:
                expires = now.wall_ms + command.retention_ms if command.retention_ms >= 0 else NO_TIMESTAMP
                committed = CommittedOffset(asked.offset, asked.leader_epoch, asked.metadata, now.wall_ms, expires)
                out.write(OffsetRecord(command.member.group, asked.topic, asked.partition, committed))
                errors.append(_NONE)
        out.answer(ticket, errors)
        return out.decision(command.producer)

    def commit_again(
        self,
        command: Commit,
        places: Sequence[tuple[str, int, str]],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
        now: Now,
    ) -> bool:
        """HOT. Apply a commit like an earlier one with other offsets; False, and nothing changes, if it is refused.

        `places` are topic, partition and metadata of each offset. The caller appends the same records.
        """
        if self._commit_error(command, now) is not _NONE or self._is_full(command):
            return False
        group, wall_ms = command.member.group, now.wall_ms
        for place, (topic, partition, metadata) in enumerate(places):
            # HOT: as by their names, which takes three times as long.
            values = (offsets[place], leader_epochs[place], metadata, wall_ms, NO_TIMESTAMP)
            committed = _new(CommittedOffset, values)
            self.apply(_new(OffsetRecord, (group, topic, partition, committed)))
        return True

    def _pending_outcome(self, producer: Producer) -> Effects:
        return Outcome(lambda record: self.apply_pending(producer.producer_id, record))

    def _is_full(self, command: Commit) -> bool:
        if command.producer is not None and self.pending.count >= PENDING_OFFSETS_MAX:
            return True
        return self.offsets.get(command.member.group, NO_OFFSETS).count >= OFFSETS_PER_GROUP_MAX

    def _commit_error(self, command: Commit, now: Now) -> ErrorCode:
        member = command.member
        if member.group in self.consumers:
            return self._consumer.commit_error(self.consumers[member.group], command)
        group = self.groups.get(member.group)
        if group is None:
            if member.generation >= 0:
                return command.unknown_group_error
            # Not a member of anything: an administrator, or a consumer that assigns partitions to itself.
            too_many = len(self.groups) >= self.settings.groups_max
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if too_many else _NONE
        if member.generation < 0 and group.state is GroupState.EMPTY:
            return _NONE
        if is_nobody(member):
            return ErrorCode.UNKNOWN_MEMBER_ID if command.producer is None else _NONE
        if command.producer is not None:
            return self._classic.membership_error(group, member)
        error = self._classic.commit_error(group, member)
        if error is _NONE:
            self._classic.showed_life(group, member, now)
        return error

    # Reads

    def fetch_offsets(
        self,
        group_id: str,
        wanted: Iterable[tuple[str, int]] | None,
        ticket: Ticket,
        now: Now,
        member: Membership | None = None,
        *,
        require_stable: bool = False,
    ) -> GroupDecision:
        """Answered with a list of FetchedOffset: those asked for, or all there are; or with an ErrorCode.

        Whoever requires stable offsets is told of those that an open transaction may still change (KIP-447).
        """
        out = self._outcome()
        if member is not None and group_id in self.consumers:
            error = self._consumer.member_error(self.consumers[group_id], member)
            if error is not _NONE:
                out.answer(ticket, error)
                return out.decision()
        offsets = self.offsets.get(group_id, NO_OFFSETS)
        if wanted is None:
            found = [FetchedOffset(*each) for each in offsets]
        else:
            found = [FetchedOffset(topic, partition, offsets.get(topic, partition)) for topic, partition in wanted]
        if require_stable and self.pending.has_group(group_id):
            found = [self._stable(group_id, each) for each in found]
        out.answer(ticket, found)
        return out.decision()

    def _stable(self, group_id: str, offset: FetchedOffset) -> FetchedOffset:
        if not self.pending.is_staged(group_id, offset.topic, offset.partition):
            return offset
        return FetchedOffset(offset.topic, offset.partition, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)

    # Deletions

    def delete_offsets(
        self, group_id: str, doomed: Sequence[tuple[str, int]], ticket: Ticket, now: Now
    ) -> GroupDecision:
        """Answered with one ErrorCode for all, and one for each offset."""
        out = self._outcome()
        group = self.groups.get(group_id) or self.consumers.get(group_id)
        if group is None:
            out.answer(ticket, (ErrorCode.GROUP_ID_NOT_FOUND, []))
        elif isinstance(group, ClassicGroup) and not (group.state is GroupState.EMPTY or group.uses_consumer_protocol):
            out.answer(ticket, (ErrorCode.NON_EMPTY_GROUP, []))
        else:
            errors = []
            offsets = self.offsets.get(group_id, NO_OFFSETS)
            for topic, partition in doomed:
                subscribed = group.is_subscribed_to(topic)
                known = offsets.get(topic, partition) is not None or self.pending.is_staged(group_id, topic, partition)
                if not subscribed and known:
                    out.write(OffsetRecord(group_id, topic, partition, None))
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else _NONE)
            out.answer(ticket, (_NONE, errors))
        return out.decision()

    def forget_topics(self, topics: Collection[str], group_ids: Iterable[str], ticket: Ticket) -> GroupDecision:
        """The topics were deleted: what these groups committed for them goes too."""
        out = self._outcome()
        for group_id in group_ids:
            for topic, partition in self._known_partitions(group_id):
                if topic in topics:
                    out.write(OffsetRecord(group_id, topic, partition, None))
        out.answer(ticket, _NONE)
        return out.decision()

    def _known_partitions(self, group_id: str) -> list[tuple[str, int]]:
        """Those with a committed offset, or with one that a transaction has staged."""
        committed = [(topic, partition) for topic, partition, _ in self.offsets.get(group_id, NO_OFFSETS)]
        return list(dict.fromkeys((*committed, *self.pending.partitions(group_id))))

    # Retention

    def _look_at_retention(self, out: Effects, now: Now) -> None:
        """Some groups of this round; the next ones in the next turn, and the next round after the interval."""
        if not self._to_look_at:
            self._to_look_at = list(reversed(self.group_ids()))
        offsets_left = OFFSETS_PER_SLICE
        for _ in range(GROUPS_PER_SLICE):
            if not self._to_look_at or offsets_left <= 0:
                break
            group_id = self._to_look_at.pop()
            offsets_left -= self.offsets.get(group_id, NO_OFFSETS).count
            if group_id in self.groups:
                self._expire_offsets(self.groups[group_id], out, now)
            elif group_id in self.consumers:
                self._expire_consumer_offsets(self.consumers[group_id], out, now)
        wait_ms = SLICE_PAUSE_MS if self._to_look_at else self.settings.offset_check_interval_ms
        self._deadlines.set(Waiting(Wait.RETENTION), now.monotonic_ms + wait_ms)

    def _expire_offsets(self, group: ClassicGroup, out: Effects, now: Now) -> None:
        offsets = self.offsets.get(group.group_id, NO_OFFSETS)
        over = expired(offsets, group, now_ms=now.wall_ms, retention_ms=self.settings.offset_retention_ms)
        all_over = self._expire(group.group_id, over, out)
        if all_over and group.state is GroupState.EMPTY and not group.pending and group.recorded is not None:
            out.write(GroupRecord(group.group_id, None))

    def _expire_consumer_offsets(self, group: ConsumerGroup, out: Effects, now: Now) -> None:
        if not group.knows_its_topics:
            return
        if not group.members and group.empty_since_ms is None:
            group.empty_since_ms = now.wall_ms
        offsets = self.offsets.get(group.group_id, NO_OFFSETS)
        in_use = {topic for member in group.members.values() for topic in group.subscribed(member)}
        over = unused_for_long(
            offsets,
            in_use,
            empty_since_ms=NO_TIMESTAMP if group.empty_since_ms is None else group.empty_since_ms,
            now_ms=now.wall_ms,
            retention_ms=self.settings.offset_retention_ms,
        )
        if self._expire(group.group_id, over, out) and not group.members:
            for record in delete_records(group):
                out.write(record)

    def _expire(self, group_id: str, over: Sequence[tuple[str, int]], out: Effects) -> bool:
        """Whether nothing is left of the group's offsets. What a transaction has staged keeps the one before it."""
        doomed = [
            (topic, partition) for topic, partition in over if not self.pending.is_staged(group_id, topic, partition)
        ]
        all_over = len(doomed) == self.offsets.get(group_id, NO_OFFSETS).count and not self.pending.has_group(group_id)
        for topic, partition in doomed:
            out.write(OffsetRecord(group_id, topic, partition, None))
        return all_over
