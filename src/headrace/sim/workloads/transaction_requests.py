"""Requests of transactional producers, in the versions before and since KIP-890."""

from headrace.sim.checkers.history import PartitionHistory, SendingProducer
from headrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    fetch,
    init_producer_id,
    produce,
    txn_offset_commit,
)

FIRST, SECOND = 1, 2
"""Transaction versions: with the second, Produce adds partitions implicitly, and every end brings a new epoch."""
INIT_PRODUCER_ID = 4
ADD_PARTITIONS = 3
ADD_OFFSETS = 3
PRODUCE = {FIRST: 9, SECOND: 12}
OFFSET_COMMIT = {FIRST: 3, SECOND: 5}
END = {FIRST: 3, SECOND: 5}
FETCH = 12
READ_COMMITTED = 1
TIMEOUT_MS = 4_000
"""Timeout of a transaction."""


def init(transactional_id: str) -> object:
    return init_producer_id.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS)


def add_partitions(transactional_id: str, producer: SendingProducer, partitions: list[PartitionHistory]) -> object:
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=tuple(
            add_partitions_to_txn.AddPartitionsToTxnRequestTopic(
                name=partition.topic.name, partitions=(partition.index,)
            )
            for partition in partitions
        ),
    )


def add_offsets(transactional_id: str, producer: SendingProducer, group: str) -> object:
    return add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group,
    )


def produced(transactional_id: str, partition: PartitionHistory, content: bytes, *, timeout_ms: int) -> object:
    part = produce.ProduceRequestPartition(index=partition.index, records=content)
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=(produce.ProduceRequestTopic(name=partition.topic.name, partition_data=(part,)),),
    )


def commit_offset(
    transactional_id: str, producer: SendingProducer, group: str, partition: PartitionHistory, offset: int
) -> object:
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=partition.index, committed_offset=offset)
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=(txn_offset_commit.TxnOffsetCommitRequestTopic(name=partition.topic.name, partitions=(part,)),),
    )


def end(transactional_id: str, producer: SendingProducer, *, commit: bool) -> object:
    return end_txn.EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )


def fetched_committed(partition: PartitionHistory, offset: int, *, bytes_max: int, wait_ms: int) -> object:
    part = fetch.FetchRequestPartition(partition=partition.index, fetch_offset=offset, partition_max_bytes=bytes_max)
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED,
        session_epoch=-1,
        topics=(fetch.FetchRequestTopic(topic=partition.topic.name, partitions=(part,)),),
    )
