"""Build a Produce request for one broker from batches."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.client.core.produced_batches import ProducedBatch
from headrace.model.ids import NO_TOPIC_ID
from headrace.wire.messages import init_producer_id, produce
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import compression_of

if TYPE_CHECKING:
    from headrace.client.core.transactions import TransactionManager

CONCURRENT_PAUSE_MS = 20
"""Pause before a retry while the markers of the previous transaction are still being written."""

NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1

_TOPIC_IDS_FROM_VERSION = 13
_ZSTD_FROM_VERSION = 7
_RECORD_BATCHES_FROM_VERSION = 3
_IMPLICIT_FROM_VERSION = 12
"""From this version on the leader adds partitions to the transaction (KIP-890)."""


def produce_call(
    cluster: Cluster,
    node: int,
    batches: Iterable[ProducedBatch],
    *,
    acks: int,
    timeout_ms: int,
    transactions: "TransactionManager | None",
) -> Call:
    """Build the call; all batches are encoded already."""
    topics: dict[str, list[produce.ProduceRequestPartition]] = {}
    min_version = _RECORD_BATCHES_FROM_VERSION
    for batch in batches:
        assert batch.encoded is not None
        if compression_of(batch.encoded) == Compression.ZSTD:
            min_version = _ZSTD_FROM_VERSION
        topics.setdefault(batch.partition.topic, []).append(
            produce.ProduceRequestPartition(index=batch.partition.partition, records=batch.encoded)
        )
    request = produce.ProduceRequest(
        transactional_id=transactions.transactional_id if transactions is not None else None,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            produce.ProduceRequestTopic(name=topic, topic_id=cluster.topic_id(topic), partition_data=tuple(partitions))
            for topic, partitions in topics.items()
        ),
    )
    has_ids = all(cluster.topic_id(topic) != NO_TOPIC_ID for topic in topics)
    max_version = produce.MAX_VERSION if has_ids else _TOPIC_IDS_FROM_VERSION - 1
    if transactions is not None and transactions.is_implicit:
        min_version = _IMPLICIT_FROM_VERSION
    elif transactions is not None:
        max_version = _IMPLICIT_FROM_VERSION - 1
    return Call(
        produce,
        request,
        node,
        min_version=min_version,
        max_version=max_version,
        is_answered=acks != 0,
    )


def identity_call() -> Call:
    """Build a request for the producer id of an idempotent producer without transactions."""
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=NO_TRANSACTION_TIMEOUT_MS
    )
    return Call(init_producer_id, request)
