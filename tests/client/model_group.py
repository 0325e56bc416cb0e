"""Coordinators of one group as plain state, one for each protocol: what they promise, without time or storage.

No member is expelled for its silence, so a partition never has two owners, whatever happens to requests and answers.
"""

from collections.abc import Callable
from typing import Any

from headrace.client.core.groups.consumer_protocol import encode_assignment
from headrace.model.errors import ErrorCode
from headrace.wire.messages import consumer_group_heartbeat as beat_api
from headrace.wire.messages import (
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)

from .model_cluster import TOPIC_ID

Reply = Callable[[Any], None]
NODE = 1


class Coordinator:
    """Common part of both protocols: the coordinator's place, and the committed offsets."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.faults: list[int] = []
        """Errors with which the next requests about the group are refused."""
        self.committed: dict[int, int] = {}

    def serve(self, message: Any, reply: Reply) -> None:
        fault = self.faults.pop() if self.faults else ErrorCode.NONE
        match message:
            case find_coordinator.FindCoordinatorRequest():
                reply(find_coordinator.FindCoordinatorResponse(node_id=NODE, host="h", port=NODE))
            case offset_fetch.OffsetFetchRequest():
                reply(self._fetch_offsets(message, fault))
            case offset_commit.OffsetCommitRequest():
                reply(self._commit(message, fault))
            case _:
                self.membership(message, fault, reply)

    def membership(self, message: Any, fault: int, reply: Reply) -> None:
        raise NotImplementedError

    def remove(self, member_id: str) -> None:
        raise NotImplementedError

    def commit_error(self, member_id: str, generation: int) -> int:
        raise NotImplementedError

    def _fetch_offsets(self, message: offset_fetch.OffsetFetchRequest, fault: int) -> offset_fetch.OffsetFetchResponse:
        topics = tuple(
            offset_fetch.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    offset_fetch.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=self.committed.get(index, -1)
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in message.topics or ()
        )
        return offset_fetch.OffsetFetchResponse(topics=() if fault else topics, error_code=fault)

    def _commit(self, message: offset_commit.OffsetCommitRequest, fault: int) -> offset_commit.OffsetCommitResponse:
        error = fault or self.commit_error(message.member_id, message.generation_id_or_member_epoch)
        topics = []
        for topic in message.topics:
            for each in topic.partitions:
                if not error:
                    self.committed[each.partition_index] = each.committed_offset
            answers = tuple(
                offset_commit.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                for each in topic.partitions
            )
            topics.append(offset_commit.OffsetCommitResponseTopic(name=topic.name, partitions=answers))
        return offset_commit.OffsetCommitResponse(topics=tuple(topics))


class ClassicCoordinator(Coordinator):
    """Joins wait for all members, syncs for the leader (KIP-62, KIP-394)."""

    def __init__(self, partitions: int) -> None:
        super().__init__(partitions)
        self.generation = 0
        self.leader = ""
        self.subscriptions: dict[str, Any] = {}
        self.is_preparing = False
        self.joins: dict[str, Reply] = {}
        self.syncs: dict[str, Reply] = {}
        self.assignments: dict[str, bytes] | None = None
        self._issued = 0

    def membership(self, message: Any, fault: int, reply: Reply) -> None:
        match message:
            case join_group.JoinGroupRequest():
                self._join(message, fault, reply)
            case sync_group.SyncGroupRequest():
                self._sync(message, fault, reply)
            case heartbeat.HeartbeatRequest():
                error = fault or self.commit_error(message.member_id, message.generation_id)
                if not error and self.is_preparing:
                    error = ErrorCode.REBALANCE_IN_PROGRESS
                reply(heartbeat.HeartbeatResponse(error_code=error))
            case leave_group.LeaveGroupRequest():
                self.remove(message.members[0].member_id)
                reply(leave_group.LeaveGroupResponse())
            case _:
                raise AssertionError(f"no coordinator answers {message}")

    def commit_error(self, member_id: str, generation: int) -> int:
        if member_id not in self.subscriptions:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def remove(self, member_id: str) -> None:
        if self.subscriptions.pop(member_id, None) is not None:
            self.joins.pop(member_id, None)
            self.syncs.pop(member_id, None)
            self._prepare()

    def _prepare(self) -> None:
        if not self.is_preparing:
            self.is_preparing = True
            waiting, self.syncs = self.syncs, {}
            for reply in waiting.values():
                reply(sync_group.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        if self.subscriptions and self.joins.keys() == self.subscriptions.keys():
            self._complete()

    def _join(self, message: join_group.JoinGroupRequest, fault: int, reply: Reply) -> None:
        if fault:
            reply(join_group.JoinGroupResponse(error_code=fault))
            return
        if not message.member_id:
            self._issued += 1
            required = ErrorCode.MEMBER_ID_REQUIRED
            reply(join_group.JoinGroupResponse(error_code=required, member_id=f"member {self._issued}"))
            return
        self.subscriptions[message.member_id] = message.protocols[0]
        self.joins[message.member_id] = reply
        self._prepare()

    def _complete(self) -> None:
        self.generation += 1
        self.is_preparing, self.assignments = False, None
        self.leader = self.leader if self.leader in self.subscriptions else min(self.subscriptions)
        members = tuple(
            join_group.JoinGroupResponseMember(member_id=member_id, metadata=protocol.metadata)
            for member_id, protocol in self.subscriptions.items()
        )
        waiting, self.joins = self.joins, {}
        for member_id, reply in waiting.items():
            reply(
                join_group.JoinGroupResponse(
                    generation_id=self.generation,
                    protocol_name=self.subscriptions[member_id].name,
                    leader=self.leader,
                    member_id=member_id,
                    members=members if member_id == self.leader else (),
                )
            )

    def _sync(self, message: sync_group.SyncGroupRequest, fault: int, reply: Reply) -> None:
        error = fault or self.commit_error(message.member_id, message.generation_id)
        if not error and self.is_preparing:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            reply(sync_group.SyncGroupResponse(error_code=error))
            return
        self.syncs[message.member_id] = reply
        if message.member_id == self.leader and self.assignments is None:
            self.assignments = {each.member_id: bytes(each.assignment) for each in message.assignments}
        if self.assignments is not None:
            waiting, self.syncs = self.syncs, {}
            for member_id, answer in waiting.items():
                given = self.assignments.get(member_id, encode_assignment(()))
                answer(sync_group.SyncGroupResponse(assignment=given))


class _ConsumerGroupMember:
    def __init__(self) -> None:
        self.epoch = 0
        self.granted: frozenset[int] = frozenset()
        """Partitions that the member may own: no other gets them until the member reports that it has given them up."""
        self.target: frozenset[int] = frozenset()
        self.told: frozenset[int] | None = None
        """The assignment of the last answer that had one, whether that arrived or not."""


class ConsumerGroupCoordinator(Coordinator):
    """One heartbeat for everything (KIP-848): a partition is granted when no other member is granted it any more."""

    def __init__(self, partitions: int) -> None:
        super().__init__(partitions)
        self.epoch = 0
        self.members: dict[str, _ConsumerGroupMember] = {}

    def membership(self, message: Any, fault: int, reply: Reply) -> None:
        assert isinstance(message, beat_api.ConsumerGroupHeartbeatRequest)
        if fault:
            reply(beat_api.ConsumerGroupHeartbeatResponse(error_code=fault))
        elif message.member_epoch < 0:
            self.remove(message.member_id)
            reply(beat_api.ConsumerGroupHeartbeatResponse(member_id=message.member_id, member_epoch=-1))
        else:
            reply(self._beat(message))

    def commit_error(self, member_id: str, generation: int) -> int:
        known = self.members.get(member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == known.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def remove(self, member_id: str) -> None:
        if self.members.pop(member_id, None) is not None:
            self._retarget()

    def _retarget(self) -> None:
        self.epoch += 1
        names = sorted(self.members)
        for place, name in enumerate(names):
            self.members[name].target = frozenset(range(place, self.partitions, len(names)))

    def _beat(self, message: beat_api.ConsumerGroupHeartbeatRequest) -> beat_api.ConsumerGroupHeartbeatResponse:
        member = self.members.get(message.member_id)
        if member is None:
            if message.member_epoch != 0:
                return beat_api.ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            member = self.members[message.member_id] = _ConsumerGroupMember()
            self._retarget()
        owned = None
        if message.topic_partitions is not None:
            owned = frozenset(index for topic in message.topic_partitions for index in topic.partitions)
        if message.member_epoch == 0:
            member.granted = frozenset()  # Who joins owns nothing.
        elif owned is not None:
            assert owned <= member.granted, "it owns what it was not granted"
            member.granted &= owned | member.target
        others = frozenset().union(*(each.granted for each in self.members.values() if each is not member))
        member.granted |= member.target - others
        member.epoch = self.epoch
        return beat_api.ConsumerGroupHeartbeatResponse(
            member_id=message.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=50,
            assignment=self._assignment(message, member, member.target - others),
        )

    def _assignment(
        self, message: beat_api.ConsumerGroupHeartbeatRequest, member: _ConsumerGroupMember, wanted: frozenset[int]
    ) -> beat_api.ConsumerGroupHeartbeatResponseAssignment | None:
        """As Kafka: told to those who join or say everything, and else only when it has changed."""
        says_all = (
            message.topic_partitions is not None
            and message.subscribed_topic_names is not None
            and message.rebalance_timeout_ms >= 0
        )
        if message.member_epoch != 0 and not says_all and wanted == member.told:
            return None
        member.told = wanted
        topic = beat_api.ConsumerGroupHeartbeatResponseTopicPartitions(
            topic_id=TOPIC_ID, partitions=tuple(sorted(wanted))
        )
        return beat_api.ConsumerGroupHeartbeatResponseAssignment(topic_partitions=(topic,) if wanted else ())
