"""Changes of in-sync sets on the wire: messages of AlterPartition to and from commands."""

from collections.abc import Sequence

from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.peers.requests import PeerFailure
from headrace.core.controller.commands import IsrAlteration, IsrChange, IsrMember, IsrResult, IsrResults
from headrace.model.errors import ErrorCode, error_code
from headrace.model.ids import LeaderEpoch, NodeId, TopicId
from headrace.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestBrokerState,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    AlterPartitionResponseTopic,
)

_DECIDED = frozenset(
    (
        ErrorCode.NONE,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )
)
"""The codes that end a request for a change. After any other one the change is requested again."""


def alteration_request(alteration: IsrAlteration) -> AlterPartitionRequest:
    by_topic: dict[TopicId, list[IsrChange]] = {}
    for change in alteration.changes:
        by_topic.setdefault(change.topic_id, []).append(change)
    return AlterPartitionRequest(
        broker_id=alteration.node_id,
        broker_epoch=alteration.broker_epoch,
        topics=tuple(
            AlterPartitionRequestTopic(topic_id=topic_id, partitions=tuple(map(_requested, changes)))
            for topic_id, changes in by_topic.items()
        ),
    )


def _requested(change: IsrChange) -> AlterPartitionRequestPartition:
    return AlterPartitionRequestPartition(
        partition_index=change.partition,
        leader_epoch=change.leader_epoch,
        partition_epoch=change.partition_epoch,
        new_isr_with_epochs=tuple(
            AlterPartitionRequestBrokerState(broker_id=member.node_id, broker_epoch=member.broker_epoch)
            for member in change.isr
        ),
    )


def alteration(request: AlterPartitionRequest) -> IsrAlteration:
    return IsrAlteration(
        node_id=NodeId(request.broker_id),
        broker_epoch=request.broker_epoch,
        changes=[
            IsrChange(
                TopicId(topic.topic_id),
                partition.partition_index,
                partition.leader_epoch,
                partition.partition_epoch,
                tuple(
                    IsrMember(NodeId(member.broker_id), member.broker_epoch) for member in partition.new_isr_with_epochs
                ),
            )
            for topic in request.topics
            for partition in topic.partitions
        ],
    )


def alteration_response(results: Sequence[IsrResult]) -> AlterPartitionResponse:
    by_topic: dict[TopicId, list[AlterPartitionResponsePartition]] = {}
    for result in results:
        by_topic.setdefault(result.topic_id, []).append(
            AlterPartitionResponsePartition(
                partition_index=result.partition,
                error_code=result.error,
                leader_id=result.leader,
                leader_epoch=result.leader_epoch,
                isr=result.isr,
                partition_epoch=result.partition_epoch,
            )
        )
    return AlterPartitionResponse(
        topics=tuple(
            AlterPartitionResponseTopic(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in by_topic.items()
        )
    )


def alteration_results(response: object) -> IsrResults | ProposalFailed:
    if isinstance(response, PeerFailure):
        return ProposalFailed(response.code, response.message)
    assert isinstance(response, AlterPartitionResponse)
    error = error_code(response.error_code)
    if error not in _DECIDED:
        return ProposalFailed(error, f"the controller did not decide: {error.name}")
    return IsrResults(
        error,
        results=tuple(
            IsrResult(
                TopicId(topic.topic_id),
                partition.partition_index,
                error_code(partition.error_code),
                None,
                NodeId(partition.leader_id),
                LeaderEpoch(partition.leader_epoch),
                tuple(map(NodeId, partition.isr)),
                partition.partition_epoch,
            )
            for topic in response.topics
            for partition in topic.partitions
        ),
    )
