"""Requests of group members, and their versions."""

from collections.abc import Sequence

from headrace.model.ids import TopicId
from headrace.wire.messages import (
    consumer_group_heartbeat,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)

FIND_COORDINATOR = 4
JOIN_GROUP = 9
SYNC_GROUP = 5
HEARTBEAT = 4
LEAVE_GROUP = 5
OFFSET_COMMIT = 9
OFFSET_FETCH = 9
CONSUMER_GROUP_HEARTBEAT = 1

GROUP_KEY, TRANSACTION_KEY = 0, 1
PROTOCOL_TYPE, PROTOCOL = "sim", "split"
SESSION_TIMEOUT_MS = 4_000
REBALANCE_TIMEOUT_MS = 5_000
LEAVING_EPOCH = -1

Place = tuple[str, int]
"""Topic and partition."""


def coordinator_of(key: str, key_type: int) -> object:
    return find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))


# --- the classic protocol --------------------------------------------------------------------------------------------


def joining(group: str, member_id: str, instance_id: str | None) -> object:
    return join_group.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=(join_group.JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"all"),),
    )


def syncing(
    group: str, generation: int, member_id: str, instance_id: str | None, assignments: Sequence[tuple[str, bytes]]
) -> object:
    return sync_group.SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=PROTOCOL,
        assignments=tuple(
            sync_group.SyncGroupRequestAssignment(member_id=member, assignment=content)
            for member, content in assignments
        ),
    )


def alive(group: str, generation: int, member_id: str, instance_id: str | None) -> object:
    return heartbeat.HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )


def leaving(group: str, member_id: str, instance_id: str | None) -> object:
    member = leave_group.LeaveGroupRequestMember(member_id=member_id, group_instance_id=instance_id)
    return leave_group.LeaveGroupRequest(group_id=group, members=(member,))


# --- the consumer protocol -------------------------------------------------------------------------------------------


def consumer_alive(
    group: str,
    member_id: str,
    epoch: int,
    owned: Sequence[tuple[TopicId, Sequence[int]]],
    topics: Sequence[str] | None,
) -> object:
    """Build a heartbeat; `topics` are sent when joining; afterwards only what the member owns."""
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if topics is not None else -1,
        subscribed_topic_names=tuple(topics) if topics is not None else None,
        topic_partitions=tuple(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=topic_id, partitions=tuple(partitions)
            )
            for topic_id, partitions in owned
        ),
    )


# --- offsets ---------------------------------------------------------------------------------------------------------


def commit(
    group: str, epoch: int, member_id: str, instance_id: str | None, offsets: Sequence[tuple[Place, int]]
) -> object:
    return offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=(
                    offset_commit.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset),
                ),
            )
            for (topic, partition), offset in offsets
        ),
    )


def committed(
    group: str, places: Sequence[Place], *, member_id: str | None = None, epoch: int = -1, stable: bool = False
) -> object:
    topics = tuple(
        offset_fetch.OffsetFetchRequestGroupTopic(name=topic, partition_indexes=(partition,))
        for topic, partition in places
    )
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=topics)
    return offset_fetch.OffsetFetchRequest(groups=(asked,), require_stable=stable)
