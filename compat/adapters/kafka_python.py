"""kafka-python, from the long-lived 2.0.2 to the rewritten 3.x."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import KafkaError, KafkaTimeoutError

from compat.client import (
    EVERYTHING,
    FETCH_BYTES_MAX,
    LINGER_MS,
    LONG_POLL_MS,
    NO_OFFSET,
    NOTHING_FOUND,
    READ_TIMEOUT_S,
    REQUEST_BYTES_MAX,
    REQUEST_TIMEOUT_S,
    UNKNOWN_TOPIC_MS,
    Client,
    ClusterDescription,
    ConfigEntry,
    Failed,
    Feature,
    FoundOffset,
    Message,
    Reader,
    Received,
    Sending,
    Start,
    TopicDescription,
)
from headrace.model.errors import ErrorCode

POLL_MS = 200
PAGES_MAX = 100
DEFAULT_SOURCES = {5, "DEFAULT_CONFIG"}
FIRST_REWRITTEN = (3,)
"""From here on the client raises what went wrong and answers in plain values; before, in protocol structures."""
FIRST_WITH_IDEMPOTENCE = (2, 1)
OPTIONAL_CALLS = {
    Feature.DELETE_RECORDS: "delete_records",
    Feature.LOG_DIRS: "describe_log_dirs",
    Feature.PRODUCERS: "describe_producers",
    Feature.MAX_TIMESTAMP: "list_partition_offsets",
    Feature.CONFIG_RESOURCES: "list_config_resources",
    Feature.PAGED_TOPICS: "describe_topic_partitions",
}


RELEASE = tuple(int(part) for part in kafka.__version__.split(".")[:2])
REWRITTEN = RELEASE >= FIRST_REWRITTEN
HAS_IDEMPOTENCE = RELEASE >= FIRST_WITH_IDEMPOTENCE


def features() -> frozenset[Feature]:
    missing = {feature for feature, call in OPTIONAL_CALLS.items() if not hasattr(kafka.KafkaAdminClient, call)}
    missing.add(Feature.NULL_HEADERS)
    if REWRITTEN:
        missing.add(Feature.RESET_CONFIGS)  # sends the current values along
    else:
        missing |= {Feature.TOPIC_IDS, Feature.INCREMENTAL_CONFIGS}
    if not HAS_IDEMPOTENCE:
        missing |= {Feature.IDEMPOTENCE, Feature.ISOLATION, Feature.INVALID_RECORD}
    return EVERYTHING - missing


def connect(bootstrap_servers: str) -> Client:
    return KafkaPython(bootstrap_servers)


def _call(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Errors of the broker become Failed."""
    try:
        return call(*arguments, **named)
    except KafkaTimeoutError as error:
        if "metadata" not in str(error):
            raise
        raise Failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(error)) from error  # how a producer says it
    except KafkaError as error:
        code = getattr(error, "errno", None)
        if not isinstance(code, int):
            raise
        raise Failed(code, str(error)) from error


class KafkaPython(Client):
    name = "kafka-python"

    def __init__(self, bootstrap_servers: str) -> None:
        self.version = kafka.__version__
        self.features = features()
        self._common = {"bootstrap_servers": bootstrap_servers}
        self._admin = kafka.KafkaAdminClient(**self._common, request_timeout_ms=int(REQUEST_TIMEOUT_S * 1000))
        self._producers: dict[Sending, Any] = {}
        self._asker = kafka.KafkaConsumer(**self._common, enable_auto_commit=False)

    def close(self) -> None:
        for producer in self._producers.values():
            producer.close(timeout=REQUEST_TIMEOUT_S)
        self._asker.close()
        self._admin.close()

    # Topics

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def describe_topic(self, topic: str) -> TopicDescription:
        (found,) = _call(self._admin.describe_topics, [topic])
        if found["error_code"]:
            raise Failed(found["error_code"], topic)
        topic_id = str(found["topic_id"]) if "topic_id" in found else None
        return TopicDescription(partitions=len(found["partitions"]), topic_id=topic_id)

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        new = NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))
        _call(self._admin.create_topics, [new], validate_only=validate_only)

    def delete_topic(self, topic: str) -> None:
        _call(self._admin.delete_topics, [topic])

    def partitions_by_pages(self, topic: str, page: int) -> list[int]:
        found: list[int] = []
        cursor = None
        for _ in range(PAGES_MAX):
            answer = _call(self._admin.describe_topic_partitions, [topic], page, cursor)
            found += [partition["partition_index"] for entry in answer["topics"] for partition in entry["partitions"]]
            cursor = answer["next_cursor"]
            if cursor is None:
                return found
        raise AssertionError(f"no end after {PAGES_MAX} pages")

    def grow_topic(self, topic: str, partitions: int) -> None:
        _call(self._admin.create_partitions, {topic: NewPartitions(partitions)})

    # Records

    def send(self, topic: str, messages: Sequence[Message], sending: Sending = Sending()) -> list[int]:  # noqa: B008
        producer = self._producer(sending)
        self._await_topic(producer, topic)
        futures = [
            _call(
                producer.send,
                topic,
                message.value,
                message.key,
                headers=list(message.headers),
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
            )
            for message in messages
        ]
        reported = [_call(future.get, REQUEST_TIMEOUT_S).offset for future in futures]
        return reported if sending.acks else [NO_OFFSET] * len(messages)

    def _await_topic(self, producer: Any, topic: str) -> None:
        """A machine may stand still for as long as a producer asks for a topic; only one that is not there fails."""
        while True:
            try:
                _call(producer.partitions_for, topic)
                return
            except Failed:
                if topic not in self.topics():
                    raise

    def _producer(self, sending: Sending) -> Any:
        if sending not in self._producers:
            options = dict[str, Any](
                acks="all" if sending.acks == -1 else sending.acks,
                compression_type=None if sending.compression == "none" else sending.compression,
                linger_ms=LINGER_MS,
                batch_size=1 << 20,
                max_request_size=REQUEST_BYTES_MAX,
                max_block_ms=UNKNOWN_TOPIC_MS,
            )
            if HAS_IDEMPOTENCE:
                options["enable_idempotence"] = sending.idempotent
            self._producers[sending] = kafka.KafkaProducer(**self._common, **options)
        return self._producers[sending]

    def reader(
        self,
        topic: str,
        start: Start | int,
        *,
        partitions: Sequence[int] = (0,),
        committed_only: bool = False,
        partition_bytes_max: int = FETCH_BYTES_MAX,
    ) -> Reader:
        options = {}
        if Feature.ISOLATION in self.features:
            options["isolation_level"] = "read_committed" if committed_only else "read_uncommitted"
        consumer = kafka.KafkaConsumer(
            **self._common,
            enable_auto_commit=False,
            auto_offset_reset="none",
            check_crcs=True,
            fetch_max_wait_ms=LONG_POLL_MS,
            max_partition_fetch_bytes=partition_bytes_max,
            **options,
        )
        places = [kafka.TopicPartition(topic, partition) for partition in partitions]
        consumer.assign(places)
        for place in places:
            if start is Start.EARLIEST:
                consumer.seek_to_beginning(place)
            elif start is Start.LATEST:
                consumer.seek_to_end(place)
                consumer.position(place)
            else:
                consumer.seek(place, start)
        return _Reader(consumer)

    # Offsets

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = kafka.TopicPartition(topic, partition)
        first = _call(self._asker.beginning_offsets, [place])[place]
        return first, _call(self._asker.end_offsets, [place])[place]

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> FoundOffset:
        place = kafka.TopicPartition(topic, partition)
        found = _call(self._asker.offsets_for_times, {place: timestamp_ms})[place]
        return NOTHING_FOUND if found is None else FoundOffset(offset=found.offset, timestamp_ms=found.timestamp)

    def offset_of_max_timestamp(self, topic: str, partition: int = 0) -> FoundOffset:
        from kafka.admin import OffsetSpec

        place = kafka.TopicPartition(topic, partition)
        found = _call(self._admin.list_partition_offsets, {place: OffsetSpec.MAX_TIMESTAMP})[place]
        return FoundOffset(offset=found.offset, timestamp_ms=found.timestamp)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = kafka.TopicPartition(topic, partition)
        low: int = _call(self._admin.delete_records, {place: before})[place]["low_watermark"]
        return low

    # Configs

    def topic_configs(self, topic: str) -> dict[str, ConfigEntry]:
        return self._configs(ConfigResourceType.TOPIC, topic)

    def broker_configs(self) -> dict[str, ConfigEntry]:
        ((node_id, _, _),) = self.describe_cluster().brokers
        return self._configs(ConfigResourceType.BROKER, str(node_id))

    def _configs(self, kind: Any, name: str) -> dict[str, ConfigEntry]:
        resource = ConfigResource(kind, name)
        if REWRITTEN:
            described = _call(self._admin.describe_configs, [resource], config_filter="all")
            entries = described[kind.name.lower()][name]
            return {
                key: ConfigEntry(value=entry["value"], is_default=entry["config_source"] in DEFAULT_SOURCES)
                for key, entry in entries.items()
            }
        (response,) = _call(self._admin.describe_configs, [resource])
        ((code, message, _, _, old_entries),) = response.resources
        if code:
            raise Failed(code, message)
        return {
            key: ConfigEntry(value=value, is_default=source in DEFAULT_SOURCES)
            for key, value, _read_only, source, *_ in old_entries
        }

    def set_topic_configs(self, topic: str, changes: Mapping[str, tuple[str, str | None]]) -> None:
        self._alter(ConfigResource(ConfigResourceType.TOPIC, topic, configs=_operations(changes)), incremental=True)

    def set_broker_configs(self, changes: Mapping[str, tuple[str, str | None]]) -> None:
        ((node_id, _, _),) = self.describe_cluster().brokers
        resource = ConfigResource(ConfigResourceType.BROKER, str(node_id), configs=_operations(changes))
        self._alter(resource, incremental=True)

    def topics_with_configs(self) -> set[str]:
        return set(_call(self._admin.list_config_resources, ["TOPIC"])["topic"])

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        if REWRITTEN:
            self._alter(resource, incremental=False)
            return
        response = _call(self._admin.alter_configs, [resource])
        ((code, message, *_),) = response.resources
        if code:
            raise Failed(code, message)

    def _alter(self, resource: Any, *, incremental: bool) -> None:
        outcome = _call(self._admin.alter_configs, [resource], raise_on_unknown=False, incremental=incremental)
        text = outcome[resource.resource_type.name.lower()][resource.name]
        if text != "OK":
            code = re.match(r"\[Error (-?\d+)\]", text)
            assert code is not None, text
            raise Failed(int(code[1]), text)

    # The cluster

    def describe_cluster(self) -> ClusterDescription:
        described = _call(self._admin.describe_cluster)
        return ClusterDescription(
            cluster_id=described.get("cluster_id"),
            controller_id=described.get("controller_id"),
            brokers=tuple(
                (broker["broker_id"] if "broker_id" in broker else broker["node_id"], broker["host"], broker["port"])
                for broker in described["brokers"]
            ),
        )

    def log_sizes(self, topic: str) -> dict[int, int]:
        if REWRITTEN:
            ((answer),) = self._admin.describe_log_dirs([topic])
            return {
                partition["partition_index"]: partition["partition_size"]
                for log_dir in answer["log_dirs"]
                for found in log_dir["topics"]
                for partition in found["partitions"]
                if found["name"] == topic
            }
        return {
            index: size
            for _, _, topics in self._admin.describe_log_dirs().log_dirs
            for name, partitions in topics
            for index, size, *_ in partitions
            if name == topic
        }

    def last_sequences(self, topic: str, partition: int = 0) -> list[int]:
        place = kafka.TopicPartition(topic, partition)
        state = _call(self._admin.describe_producers, [place])[place]
        return [producer.last_sequence for producer in state.active_producers]


def _operations(changes: Mapping[str, tuple[str, str | None]]) -> dict[str, tuple[str, str | None]]:
    return {name: (operation.upper(), value) for name, (operation, value) in changes.items()}


class _Reader(Reader):
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def read(self, count: int, timeout_s: float = READ_TIMEOUT_S) -> list[Received]:
        received: list[Received] = []
        deadline = time.monotonic() + timeout_s
        while len(received) < count and time.monotonic() < deadline:
            polled = _call(self._consumer.poll, min(POLL_MS, timeout_s * 1000), max_records=count - len(received))
            for records in polled.values():
                received.extend(
                    Received(
                        partition=record.partition,
                        offset=record.offset,
                        timestamp_ms=record.timestamp,
                        key=record.key,
                        value=record.value,
                        headers=tuple(record.headers),
                    )
                    for record in records
                )
        return received

    def close(self) -> None:
        with suppress(KafkaError):
            self._consumer.close()
