"""Committed offsets of a group: build the commit and lookup calls, and parse their responses."""

from collections.abc import Iterable, Mapping

from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import Call, Operation, Pause
from headrace.client.core.groups.coordinator import COORDINATOR_CHANNEL, MOVED_ERRORS, Coordinator
from headrace.client.core.groups.membership import MemberIdentity
from headrace.client.errors import BrokerError, ClientError, UnsupportedByBroker
from headrace.client.types import OffsetAndMetadata
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import offset_commit, offset_fetch

ATTEMPTS_MAX = 100
"""A deadline ends the attempts before that."""

_NAMES_MAX_VERSION = 9
_ONE_GROUP_MAX_VERSION = 7
_MEMBER_EPOCHS_FROM_VERSION = 9


def commit_call(
    group_id: str,
    identity: MemberIdentity,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    node: int,
    *,
    epochs: bool,
) -> Call:
    """`epochs`: the identity is one of a KIP-848 group."""
    request = offset_commit.OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(_committed(index, offsets[TopicPartition(topic, index)]) for index in indexes),
            )
            for topic, indexes in by_topic(offsets).items()
        ),
    )
    return Call(
        offset_commit,
        request,
        node,
        min_version=_MEMBER_EPOCHS_FROM_VERSION if epochs else 1,
        max_version=_NAMES_MAX_VERSION,
        channel=COORDINATOR_CHANNEL,
    )


def _committed(index: int, offset: OffsetAndMetadata) -> offset_commit.OffsetCommitRequestPartition:
    return offset_commit.OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def refused_commits(response: offset_commit.OffsetCommitResponse) -> dict[TopicPartition, int]:
    """Return the partitions whose offsets were refused, with their error codes."""
    return {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
        if each.error_code
    }


def lookup_call(group_id: str, partitions: Iterable[TopicPartition], node: int) -> Call:
    """Look up stable offsets: not those of a transaction that may still be aborted (KIP-447)."""
    request = offset_fetch.OffsetFetchRequest(
        group_id=group_id,
        topics=tuple(
            offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in by_topic(partitions).items()
        ),
        require_stable=True,
    )
    return Call(
        offset_fetch, request, node, min_version=1, max_version=_ONE_GROUP_MAX_VERSION, channel=COORDINATOR_CHANNEL
    )


def looked_up(response: offset_fetch.OffsetFetchResponse) -> tuple[dict[TopicPartition, OffsetAndMetadata], int]:
    """Return the committed offsets, -1 where there is none; and the first error, if any."""
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    error = response.error_code
    for topic in response.topics:
        for each in topic.partitions:
            error = error or each.error_code
            found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                each.committed_offset, each.metadata or "", each.committed_leader_epoch
            )
    return found, error


def committed(
    coordinator: Coordinator, group_id: str, partitions: Iterable[TopicPartition], *, retry_pause_ms: float
) -> Operation[dict[TopicPartition, OffsetAndMetadata]]:
    """Return, as an operation, the committed offsets of these partitions, without those that have none."""
    wanted = tuple(partitions)
    trouble: ClientError | None = None
    for _ in range(ATTEMPTS_MAX):
        node = yield from coordinator.find()
        (reply,) = yield (lookup_call(group_id, wanted, node),)
        if isinstance(reply, UnsupportedByBroker):
            raise reply
        if isinstance(reply, ClientError):
            trouble = reply
            coordinator.lost(node, 0.0)
        else:
            found, error = looked_up(reply)
            if not error:
                return {partition: offset for partition, offset in found.items() if offset.offset >= 0}
            trouble = BrokerError(error, f'the offsets of group "{group_id}" could not be read')
            if error in MOVED_ERRORS:
                coordinator.lost(node, 0.0)
            elif error not in RETRIABLE:
                raise trouble
        yield Pause(retry_pause_ms)
    raise trouble or BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f'group "{group_id}"')
