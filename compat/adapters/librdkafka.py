"""confluent-kafka, the Python face of librdkafka."""

import importlib.metadata
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import confluent_kafka
from confluent_kafka import admin as rd_admin

from compat.client import (
    EVERYTHING,
    FETCH_BYTES_MAX,
    LINGER_MS,
    LONG_POLL_MS,
    NO_OFFSET,
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

OWN_ERRORS = {
    # librdkafka's own codes are negative; these stand for an answer of the broker.
    confluent_kafka.KafkaError._AUTO_OFFSET_RESET: ErrorCode.OFFSET_OUT_OF_RANGE,
    confluent_kafka.KafkaError._UNKNOWN_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    confluent_kafka.KafkaError._UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
OPTIONAL_CALLS = {
    Feature.TOPIC_IDS: "describe_topics",
    Feature.INCREMENTAL_CONFIGS: "incremental_alter_configs",
    Feature.DELETE_RECORDS: "delete_records",
    Feature.MAX_TIMESTAMP: "list_offsets",
    Feature.CLUSTER: "describe_cluster",
}
NEVER_THERE = {Feature.LOG_DIRS, Feature.PRODUCERS, Feature.CONFIG_RESOURCES, Feature.PAGED_TOPICS}
POLL_S = 0.2
SILENT = {"log_level": 0}


def features() -> frozenset[Feature]:
    missing = {feature for feature, call in OPTIONAL_CALLS.items() if not hasattr(rd_admin.AdminClient, call)}
    return EVERYTHING - missing - NEVER_THERE


def connect(bootstrap_servers: str) -> Client:
    return ConfluentKafka(bootstrap_servers)


def _failed(error: Any) -> Exception:
    code = error.code()
    if code < 0 and code not in OWN_ERRORS:
        return RuntimeError(str(error))
    return Failed(OWN_ERRORS.get(code, code), error.str())


def _result(future: "Future[Any]") -> Any:
    try:
        return future.result(REQUEST_TIMEOUT_S)
    except confluent_kafka.KafkaException as failure:
        raise _failed(failure.args[0]) from failure


class ConfluentKafka(Client):
    name = "confluent-kafka"

    def __init__(self, bootstrap_servers: str) -> None:
        self.version = importlib.metadata.version("confluent-kafka")
        self.features = features()
        self._common = {"bootstrap.servers": bootstrap_servers, **SILENT}
        self._admin = rd_admin.AdminClient(self._common)
        self._producers: dict[Sending, Any] = {}
        self._asker = confluent_kafka.Consumer(
            {
                **self._common,
                "group.id": "unused",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 50,
            }
        )

    def close(self) -> None:
        for producer in self._producers.values():
            producer.flush(REQUEST_TIMEOUT_S)
        self._asker.close()

    # Topics

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics)

    def describe_topic(self, topic: str) -> TopicDescription:
        if Feature.TOPIC_IDS not in self.features:
            found = self._admin.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic]
            if found.error is not None:
                raise _failed(found.error)
            return TopicDescription(partitions=len(found.partitions), topic_id=None)
        wanted = confluent_kafka.TopicCollection([topic])
        described = _result(self._admin.describe_topics(wanted, request_timeout=REQUEST_TIMEOUT_S)[topic])
        return TopicDescription(partitions=len(described.partitions), topic_id=str(described.topic_id))

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        new = rd_admin.NewTopic(
            topic, num_partitions=partitions, replication_factor=replicas, config=dict(configs or {})
        )
        _result(self._admin.create_topics([new], validate_only=validate_only)[topic])

    def delete_topic(self, topic: str) -> None:
        _result(self._admin.delete_topics([topic])[topic])

    def grow_topic(self, topic: str, partitions: int) -> None:
        _result(self._admin.create_partitions([rd_admin.NewPartitions(topic, partitions)])[topic])

    # Records

    def send(self, topic: str, messages: Sequence[Message], sending: Sending = Sending()) -> list[int]:  # noqa: B008
        producer = self._producer(sending)
        offsets = [NO_OFFSET] * len(messages)
        failures: list[Exception] = []

        def reported(place: int) -> Any:
            def on_delivery(error: Any, message: Any) -> None:
                if error is not None:
                    failures.append(_failed(error))
                elif message.offset() is not None and message.offset() >= 0:
                    offsets[place] = message.offset()

            return on_delivery

        for place, message in enumerate(messages):
            stamp = {} if message.timestamp_ms is None else {"timestamp": message.timestamp_ms}
            producer.produce(
                topic,
                message.value,
                message.key,
                message.partition,
                reported(place),
                headers=list(message.headers),
                **stamp,
            )
            producer.poll(0)
        unsent = producer.flush(REQUEST_TIMEOUT_S)
        if failures:
            raise failures[0]
        assert unsent == 0, f"{unsent} messages without an answer"
        return offsets

    def _producer(self, sending: Sending) -> Any:
        if sending not in self._producers:
            self._producers[sending] = confluent_kafka.Producer(
                {
                    **self._common,
                    "acks": sending.acks,
                    "compression.type": sending.compression,
                    "enable.idempotence": sending.idempotent,
                    "linger.ms": LINGER_MS,
                    "message.max.bytes": REQUEST_BYTES_MAX,
                    "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
                    "topic.metadata.refresh.fast.interval.ms": 20,
                    "topic.metadata.propagation.max.ms": UNKNOWN_TOPIC_MS,
                }
            )
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
        consumer = confluent_kafka.Consumer(
            {
                **self._common,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
                "fetch.wait.max.ms": LONG_POLL_MS,
                "fetch.error.backoff.ms": 20,
                "isolation.level": "read_committed" if committed_only else "read_uncommitted",
                "max.partition.fetch.bytes": partition_bytes_max,
                "fetch.max.bytes": max(FETCH_BYTES_MAX, partition_bytes_max),
            }
        )
        places = [confluent_kafka.TopicPartition(topic, partition) for partition in partitions]
        for place in places:
            if start is Start.LATEST:
                place.offset = consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)[1]
            else:
                place.offset = confluent_kafka.OFFSET_BEGINNING if start is Start.EARLIEST else int(start)
        consumer.assign(places)
        return _Reader(consumer)

    # Offsets

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = confluent_kafka.TopicPartition(topic, partition)
        try:
            low, high = self._asker.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)
        except confluent_kafka.KafkaException as failure:
            raise _failed(failure.args[0]) from failure
        return low, high

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> FoundOffset:
        place = confluent_kafka.TopicPartition(topic, partition, timestamp_ms)
        if Feature.MAX_TIMESTAMP in self.features:
            return self._listed(place, rd_admin.OffsetSpec.for_timestamp(timestamp_ms))
        (found,) = self._asker.offsets_for_times([place], timeout=REQUEST_TIMEOUT_S)
        if found.error is not None:
            raise _failed(found.error)
        return FoundOffset(offset=max(found.offset, NO_OFFSET), timestamp_ms=-1)

    def offset_of_max_timestamp(self, topic: str, partition: int = 0) -> FoundOffset:
        return self._listed(confluent_kafka.TopicPartition(topic, partition), rd_admin.OffsetSpec.max_timestamp())

    def _listed(self, place: Any, spec: Any) -> FoundOffset:
        (future,) = self._admin.list_offsets({place: spec}, request_timeout=REQUEST_TIMEOUT_S).values()
        found = _result(future)
        return FoundOffset(offset=max(found.offset, NO_OFFSET), timestamp_ms=found.timestamp)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = confluent_kafka.TopicPartition(topic, partition, before)
        (future,) = self._admin.delete_records([place]).values()
        low: int = _result(future).low_watermark
        return low

    # Configs

    def topic_configs(self, topic: str) -> dict[str, ConfigEntry]:
        return self._configs(rd_admin.ResourceType.TOPIC, topic)

    def broker_configs(self) -> dict[str, ConfigEntry]:
        (broker,) = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).brokers
        return self._configs(rd_admin.ResourceType.BROKER, str(broker))

    def _configs(self, kind: Any, name: str) -> dict[str, ConfigEntry]:
        (future,) = self._admin.describe_configs([rd_admin.ConfigResource(kind, name)]).values()
        return {
            entry.name: ConfigEntry(value=entry.value, is_default=entry.is_default)
            for entry in _result(future).values()
        }

    def set_topic_configs(self, topic: str, changes: Mapping[str, tuple[str, str | None]]) -> None:
        self._alter(rd_admin.ResourceType.TOPIC, topic, changes)

    def set_broker_configs(self, changes: Mapping[str, tuple[str, str | None]]) -> None:
        (broker,) = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).brokers
        self._alter(rd_admin.ResourceType.BROKER, str(broker), changes)

    def _alter(self, kind: Any, name: str, changes: Mapping[str, tuple[str, str | None]]) -> None:
        entries = [
            rd_admin.ConfigEntry(key, value, incremental_operation=rd_admin.AlterConfigOpType[operation.upper()])
            for key, (operation, value) in changes.items()
        ]
        resource = rd_admin.ConfigResource(kind, name, incremental_configs=entries)
        (future,) = self._admin.incremental_alter_configs([resource]).values()
        _result(future)

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = rd_admin.ConfigResource(rd_admin.ResourceType.TOPIC, topic, set_config=dict(configs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the client calls its own function old
            (future,) = self._admin.alter_configs([resource]).values()
        _result(future)

    # The cluster

    def describe_cluster(self) -> ClusterDescription:
        described = _result(self._admin.describe_cluster(request_timeout=REQUEST_TIMEOUT_S))
        return ClusterDescription(
            cluster_id=described.cluster_id,
            controller_id=described.controller.id,
            brokers=tuple((node.id, node.host, node.port) for node in described.nodes),
        )


class _Reader(Reader):
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def read(self, count: int, timeout_s: float = READ_TIMEOUT_S) -> list[Received]:
        received: list[Received] = []
        deadline = time.monotonic() + timeout_s
        while len(received) < count and time.monotonic() < deadline:
            for message in self._consumer.consume(count - len(received), min(POLL_S, timeout_s)):
                if message.error() is not None:
                    raise _failed(message.error())
                received.append(
                    Received(
                        partition=message.partition(),
                        offset=message.offset(),
                        timestamp_ms=message.timestamp()[1],
                        key=message.key(),
                        value=message.value(),
                        headers=tuple(message.headers() or ()),
                    )
                )
        return received

    def close(self) -> None:
        self._consumer.close()
