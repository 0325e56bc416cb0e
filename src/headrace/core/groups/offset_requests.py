"""Decides requests about offsets: commits, inside and outside of transactions, reads and deletions."""

from collections.abc import Collection, Iterable, Sequence

from headrace.core.coordination.machine import Now, Ticket
from headrace.core.groups.classic import ClassicProtocol
from headrace.core.groups.classic_group import ClassicGroup
from headrace.core.groups.commands import (
    Commit,
    DeleteOffsets,
    DeleteOffsetsResult,
    FetchedOffset,
    FetchOffsets,
    is_anonymous,
)
from headrace.core.groups.consumer import ConsumerProtocol
from headrace.core.groups.records import CommittedOffset, OffsetRecord
from headrace.core.groups.settings import OFFSETS_PER_GROUP_MAX, PENDING_OFFSETS_MAX, GroupCoordinatorSettings
from headrace.core.groups.states import GroupState
from headrace.core.groups.tables import NO_OFFSETS, GroupDecision, GroupTables
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TIMESTAMP

_NONE = ErrorCode.NONE
_new = tuple.__new__


class OffsetRequests:
    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        tables: GroupTables,
        classic: ClassicProtocol,
        consumer: ConsumerProtocol,
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._classic = classic
        self._consumer = consumer

    # Commits

    def commit(self, command: Commit, ticket: Ticket, now: Now) -> GroupDecision:
        """Commit offsets. The response is a list with one ErrorCode for each offset.

        Offsets of a transaction take effect when the transaction commits.
        """
        tables, producer = self._tables, command.producer
        out = tables.begin_decision() if producer is None else tables.begin_pending_decision(producer)
        error = self._commit_error(command, now)
        errors = []
        for each in command.offsets:
            if error is not _NONE:
                errors.append(error)
            elif len(each.metadata.encode()) > self._settings.offset_metadata_bytes_max:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            elif self._is_full(command):
                errors.append(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
            else:
                expires = now.wall_ms + command.retention_ms if command.retention_ms >= 0 else NO_TIMESTAMP
                committed = CommittedOffset(each.offset, each.leader_epoch, each.metadata, now.wall_ms, expires)
                out.write(OffsetRecord(command.member.group, each.topic, each.partition, committed))
                errors.append(_NONE)
        out.respond(ticket, errors)
        return out.decision(producer)

    def commit_again(
        self,
        command: Commit,
        targets: Sequence[tuple[str, int, str]],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
        now: Now,
    ) -> bool:
        """HOT. Apply a commit that differs from an earlier one only in its offsets and leader epochs.

        `targets` holds the topic, the partition and the metadata of each offset. Returns False, and changes nothing,
        if the commit is refused. The caller appends the same records.
        """
        if self._commit_error(command, now) is not _NONE or self._is_full(command):
            return False
        group, wall_ms, apply = command.member.group, now.wall_ms, self._tables.apply
        for index, (topic, partition, metadata) in enumerate(targets):
            # HOT: calling the classes by name takes three times as long.
            values = (offsets[index], leader_epochs[index], metadata, wall_ms, NO_TIMESTAMP)
            committed = _new(CommittedOffset, values)
            apply(_new(OffsetRecord, (group, topic, partition, committed)))
        return True

    def _is_full(self, command: Commit) -> bool:
        tables = self._tables
        if command.producer is not None and tables.pending_offsets.count >= PENDING_OFFSETS_MAX:
            return True
        return tables.offsets.get(command.member.group, NO_OFFSETS).count >= OFFSETS_PER_GROUP_MAX

    def _commit_error(self, command: Commit, now: Now) -> ErrorCode:
        tables, member = self._tables, command.member
        if member.group in tables.consumer_groups:
            return self._consumer.commit_error(tables.consumer_groups[member.group], command)
        group = tables.classic_groups.get(member.group)
        if group is None:
            if member.generation >= 0:
                return command.unknown_group_error
            # The sender is no member: an administrator, or a consumer that assigns partitions to itself.
            too_many = len(tables.classic_groups) >= self._settings.groups_max
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if too_many else _NONE
        if member.generation < 0 and group.state is GroupState.EMPTY:
            return _NONE
        if is_anonymous(member):
            return ErrorCode.UNKNOWN_MEMBER_ID if command.producer is None else _NONE
        if command.producer is not None:
            return self._classic.membership_error(group, member)
        error = self._classic.commit_error(group, member)
        if error is _NONE:
            self._classic.responses.extend_session(group, group.members[member.member_id], now)
        return error

    # Reads

    def fetch(self, command: FetchOffsets, ticket: Ticket) -> GroupDecision:
        """Read committed offsets. The response is a list of FetchedOffset, or an ErrorCode.

        With `require_stable`, offsets that an open transaction may still change are reported as errors (KIP-447).
        """
        tables, group_id = self._tables, command.group
        out = tables.begin_decision()
        if command.member is not None and group_id in tables.consumer_groups:
            error = self._consumer.member_error(tables.consumer_groups[group_id], command.member)
            if error is not _NONE:
                out.respond(ticket, error)
                return out.decision()
        offsets = tables.offsets.get(group_id, NO_OFFSETS)
        if command.partitions is None:
            found = [FetchedOffset(*each) for each in offsets]
        else:
            found = [FetchedOffset(*each, offsets.get(*each)) for each in command.partitions]
        if command.require_stable and tables.pending_offsets.has_group(group_id):
            found = [self._stable(group_id, each) for each in found]
        out.respond(ticket, found)
        return out.decision()

    def _stable(self, group_id: str, offset: FetchedOffset) -> FetchedOffset:
        if not self._tables.pending_offsets.is_staged(group_id, offset.topic, offset.partition):
            return offset
        return FetchedOffset(offset.topic, offset.partition, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)

    # Deletions

    def delete(self, command: DeleteOffsets, ticket: Ticket) -> GroupDecision:
        """Delete offsets of topics that the group does not read. The response is a DeleteOffsetsResult."""
        tables, group_id = self._tables, command.group
        out = tables.begin_decision()
        group = tables.classic_groups.get(group_id) or tables.consumer_groups.get(group_id)
        if group is None:
            out.respond(ticket, DeleteOffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND))
            return out.decision()
        if isinstance(group, ClassicGroup) and not (group.state is GroupState.EMPTY or group.uses_consumer_protocol):
            out.respond(ticket, DeleteOffsetsResult(ErrorCode.NON_EMPTY_GROUP))
            return out.decision()
        errors = []
        offsets, pending = tables.offsets.get(group_id, NO_OFFSETS), tables.pending_offsets
        for topic, partition in command.partitions:
            subscribed = group.is_subscribed_to(topic)
            known = offsets.get(topic, partition) is not None or pending.is_staged(group_id, topic, partition)
            if not subscribed and known:
                out.write(OffsetRecord(group_id, topic, partition, None))
            errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else _NONE)
        out.respond(ticket, DeleteOffsetsResult(_NONE, tuple(errors)))
        return out.decision()

    def forget_topics(self, topics: Collection[str], group_ids: Iterable[str], ticket: Ticket) -> GroupDecision:
        """Delete the offsets that these groups committed for topics that were deleted."""
        out = self._tables.begin_decision()
        for group_id in group_ids:
            for topic, partition in self._tables.partitions_with_offsets(group_id):
                if topic in topics:
                    out.write(OffsetRecord(group_id, topic, partition, None))
        out.respond(ticket, _NONE)
        return out.decision()
