"""Batches as a Produce request for one broker."""

from collections.abc import Iterable

from headrace.client.core.calls import Call
from headrace.client.core.cluster import Cluster
from headrace.client.core.produced_batches import ProducedBatch
from headrace.model.ids import NO_TOPIC_ID
from headrace.wire.messages import init_producer_id, produce
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import compression_of

NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1

_TOPIC_IDS_FROM_VERSION = 13
_ZSTD_FROM_VERSION = 7
_RECORD_BATCHES_FROM_VERSION = 3
_ADDED_PARTITIONS_MAX_VERSION = 11
"""From the next version on the broker adds partitions to the transaction by itself (KIP-890)."""


def produce_call(
    cluster: Cluster,
    node: int,
    batches: Iterable[ProducedBatch],
    *,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None,
) -> Call:
    """All batches are encoded."""
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
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            produce.ProduceRequestTopic(name=topic, topic_id=cluster.topic_id(topic), partition_data=tuple(partitions))
            for topic, partitions in topics.items()
        ),
    )
    has_ids = all(cluster.topic_id(topic) != NO_TOPIC_ID for topic in topics)
    max_version = produce.MAX_VERSION if has_ids else _TOPIC_IDS_FROM_VERSION - 1
    return Call(
        produce,
        request,
        node,
        min_version=min_version,
        max_version=max_version if transactional_id is None else _ADDED_PARTITIONS_MAX_VERSION,
        is_answered=acks != 0,
    )


def identity_call() -> Call:
    """Ask for the producer id of an idempotent producer without transactions."""
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=NO_TRANSACTION_TIMEOUT_MS
    )
    return Call(init_producer_id, request)
