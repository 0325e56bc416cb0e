"""Requests of a transaction to its coordinators, in the versions that match the cluster's transaction.version.

At level 2 (KIP-890) the leaders add partitions and groups to the transaction, and the response to its end has the next
producer epoch. Below level 2 the producer adds them, and newer request versions would tell the coordinator otherwise.
"""

from collections.abc import Iterable, Mapping

from headrace.client.core.admin.routing import by_topic
from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.client.core.groups.coordinator import COORDINATOR_CHANNEL
from headrace.client.types import GroupIdentity, OffsetAndMetadata, PreparedTransaction
from headrace.model.ids import TopicPartition
from headrace.wire.messages import add_offsets_to_txn, add_partitions_to_txn, end_txn, txn_offset_commit

_FEATURE = "transaction.version"
_IMPLICIT_FROM_LEVEL = 2
_IMPLICIT_FROM_VERSION = 5
"""The first such version of EndTxn and TxnOffsetCommit."""

_CLIENTS_ADD_PARTITIONS_MAX_VERSION = 3
_CLIENTS_ADD_OFFSETS_MAX_VERSION = 3
_GROUP_MEMBERS_FROM_VERSION = 3


def is_implicit(cluster: Cluster) -> bool:
    return cluster.feature(_FEATURE) >= _IMPLICIT_FROM_LEVEL


def end_call(prepared: PreparedTransaction, *, commit: bool, is_implicit: bool) -> Call:
    """Return EndTxn; with `is_implicit`, its response has the next producer epoch."""
    request = end_txn.EndTxnRequest(
        transactional_id=prepared.transactional_id,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        committed=commit,
    )
    if is_implicit:
        return Call(end_txn, request, min_version=_IMPLICIT_FROM_VERSION)
    return Call(end_txn, request, max_version=_IMPLICIT_FROM_VERSION - 1)


def add_partitions_call(prepared: PreparedTransaction, partitions: Iterable[TopicPartition], node: int) -> Call:
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=prepared.transactional_id,
        v3_and_below_producer_id=prepared.producer_id,
        v3_and_below_producer_epoch=prepared.producer_epoch,
        v3_and_below_topics=tuple(
            add_partitions_to_txn.AddPartitionsToTxnRequestTopic(name=topic, partitions=tuple(indexes))
            for topic, indexes in by_topic(sorted(partitions)).items()
        ),
    )
    return Call(
        add_partitions_to_txn,
        request,
        node,
        max_version=_CLIENTS_ADD_PARTITIONS_MAX_VERSION,
        channel=COORDINATOR_CHANNEL,
    )


def add_offsets_call(prepared: PreparedTransaction, group: GroupIdentity) -> Call:
    request = add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=prepared.transactional_id,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        group_id=group.group_id,
    )
    return Call(add_offsets_to_txn, request, max_version=_CLIENTS_ADD_OFFSETS_MAX_VERSION)


def offsets_call(
    prepared: PreparedTransaction,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: GroupIdentity,
    *,
    is_implicit: bool,
) -> Call:
    """Return TxnOffsetCommit, which goes to the group coordinator."""
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=prepared.transactional_id,
        group_id=group.group_id,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=tuple(
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[TopicPartition(topic, index)].offset,
                        committed_leader_epoch=offsets[TopicPartition(topic, index)].leader_epoch,
                        committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(offsets).items()
        ),
    )
    if is_implicit:
        return Call(txn_offset_commit, request, min_version=_IMPLICIT_FROM_VERSION)
    return Call(
        txn_offset_commit,
        request,
        min_version=_GROUP_MEMBERS_FROM_VERSION if group.member_id else 0,
        max_version=_IMPLICIT_FROM_VERSION - 1,
    )
