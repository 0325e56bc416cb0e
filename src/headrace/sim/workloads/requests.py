"""Requests of simulated clients, and their versions."""

from collections.abc import Sequence

from headrace.model.ids import TopicId
from headrace.wire.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)

PRODUCE_BY_NAME, PRODUCE_BY_ID = 9, 13
FETCH_BY_NAME, FETCH_BY_ID = 12, 13
CREATE_TOPICS = 7
DELETE_TOPICS = 6
DELETE_RECORDS = 2
CREATE_PARTITIONS = 3
INIT_PRODUCER_ID = 4
LIST_OFFSETS = 6
METADATA = 12
ALTER_CONFIGS = 1
DESCRIBE_CONFIGS = 4
DESCRIBE_TOPIC_PARTITIONS = 0

TIMEOUT_MS = 20_000
FETCH_BYTES_MAX = 1 << 20
TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
NO_ID = TopicId(bytes(16))

Configs = Sequence[tuple[str, str]]


def new_topic(name: str, partitions: int, configs: Configs = (), *, validate_only: bool = False) -> object:
    topic = create_topics.CreateTopicsRequestTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=tuple(create_topics.CreateTopicsRequestConfig(name=key, value=value) for key, value in configs),
    )
    return create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS, validate_only=validate_only)


def topic_deletion(name: str) -> object:
    return delete_topics.DeleteTopicsRequest(
        topics=(delete_topics.DeleteTopicsRequestTopic(name=name),), timeout_ms=TIMEOUT_MS
    )


def partition_growth(name: str, count: int) -> object:
    topic = create_partitions.CreatePartitionsRequestTopic(name=name, count=count, assignments=None)
    return create_partitions.CreatePartitionsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)


def config_change(topic: str, name: str, value: str | None) -> object:
    """Build a config change; None removes the topic's own value."""
    operation = DELETE if value is None else SET
    change = incremental_alter_configs.IncrementalAlterConfigsRequestConfig(
        name=name, config_operation=operation, value=value
    )
    resource = incremental_alter_configs.IncrementalAlterConfigsRequestResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(change,)
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,))


def config_of(topic: str, name: str) -> object:
    resource = describe_configs.DescribeConfigsRequestResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=(name,)
    )
    return describe_configs.DescribeConfigsRequest(resources=(resource,))


def partitions_of(topic: str) -> object:
    wanted = describe_topic_partitions.DescribeTopicPartitionsRequestTopic(name=topic)
    return describe_topic_partitions.DescribeTopicPartitionsRequest(topics=(wanted,))


def record_deletion(topic: str, partition: int, offset: int) -> object:
    part = delete_records.DeleteRecordsRequestPartition(partition_index=partition, offset=offset)
    return delete_records.DeleteRecordsRequest(
        topics=(delete_records.DeleteRecordsRequestTopic(name=topic, partitions=(part,)),), timeout_ms=TIMEOUT_MS
    )


def topic_names(*names: str) -> object:
    return metadata.MetadataRequest(
        topics=tuple(metadata.MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=False
    )


def new_producer() -> object:
    return init_producer_id.InitProducerIdRequest(transactional_id=None)


def produced(
    topic: str,
    partition: int,
    records: bytes,
    *,
    acks: int = -1,
    topic_id: TopicId = NO_ID,
    timeout_ms: int = TIMEOUT_MS,
) -> object:
    part = produce.ProduceRequestPartition(index=partition, records=records)
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(produce.ProduceRequestTopic(name=topic, topic_id=topic_id, partition_data=(part,)),),
    )


def wanted_topic(
    topic: str,
    offsets: Sequence[tuple[int, int]],
    *,
    topic_id: TopicId = NO_ID,
    bytes_max: int = FETCH_BYTES_MAX,
) -> fetch.FetchRequestTopic:
    """Build a fetch topic from (partition, offset) pairs."""
    return fetch.FetchRequestTopic(
        topic=topic,
        topic_id=topic_id,
        partitions=tuple(
            fetch.FetchRequestPartition(partition=partition, fetch_offset=offset, partition_max_bytes=bytes_max)
            for partition, offset in offsets
        ),
    )


def fetched(
    topics: Sequence[fetch.FetchRequestTopic],
    *,
    wait_ms: int,
    bytes_min: int = 1,
    session_id: int = 0,
    session_epoch: int = -1,
) -> object:
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=bytes_min,
        max_bytes=FETCH_BYTES_MAX,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=tuple(topics),
    )


def offset_at(topic: str, partition: int, timestamp: int) -> object:
    part = list_offsets.ListOffsetsRequestPartition(partition_index=partition, timestamp=timestamp)
    return list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=(list_offsets.ListOffsetsRequestTopic(name=topic, partitions=(part,)),)
    )
