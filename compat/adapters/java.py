"""The Java client, the reference of all others, inside this process by JPype; COMPAT_CLASSPATH names its jars."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jpype
from jpype import JArray, JByte, JClass

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

CLASSPATH_VARIABLE = "COMPAT_CLASSPATH"
KAFKA = "org.apache.kafka"
SERIALIZERS = f"{KAFKA}.common.serialization"
POLL_MS = 200

OPTIONAL_CALLS = {
    Feature.INCREMENTAL_CONFIGS: "incrementalAlterConfigs",
    Feature.ALTER_CONFIGS: "alterConfigs",
    Feature.RESET_CONFIGS: "alterConfigs",
    Feature.PRODUCERS: "describeProducers",
    Feature.CONFIG_RESOURCES: "listConfigResources",
}


def _start_jvm() -> None:
    if not jpype.isJVMStarted():
        jpype.startJVM(
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", classpath=os.environ[CLASSPATH_VARIABLE].split(":")
        )


def features() -> frozenset[Feature]:
    _start_jvm()
    admin = JClass(f"{KAFKA}.clients.admin.Admin")
    missing = {feature for feature, call in OPTIONAL_CALLS.items() if not hasattr(admin, call)}
    if not hasattr(JClass(f"{KAFKA}.clients.admin.TopicDescription"), "topicId"):
        missing.add(Feature.TOPIC_IDS)
    if not hasattr(JClass(f"{KAFKA}.clients.admin.OffsetSpec"), "maxTimestamp"):
        missing.add(Feature.MAX_TIMESTAMP)
    if not hasattr(JClass(f"{KAFKA}.clients.admin.DescribeTopicsOptions"), "partitionSizeLimitPerResponse"):
        missing.add(Feature.PAGED_TOPICS)
    return EVERYTHING - missing


def connect(bootstrap_servers: str) -> Client:
    return Java(bootstrap_servers)


def _bytes_out(content: bytes | None) -> Any:
    return None if content is None else JArray(JByte)(content)


def _bytes_in(content: Any) -> bytes | None:
    return None if content is None else memoryview(content).tobytes()


def _properties(values: Mapping[str, object]) -> Any:
    properties = JClass("java.util.HashMap")()
    for name, value in values.items():
        properties.put(name, str(value))
    return properties


def _call(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call the client; exceptions that stand for an error code become Failed."""
    try:
        return call(*arguments)
    except jpype.JException as thrown:
        cause = thrown
        while isinstance(cause, JClass("java.util.concurrent.ExecutionException")) and cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.getMessage())
        if isinstance(cause, JClass(f"{KAFKA}.common.errors.TimeoutException")):
            if "not present in metadata" in text:
                raise Failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text) from None  # how a producer says it
            raise TimeoutError(text) from None
        if isinstance(cause, JClass(f"{KAFKA}.clients.consumer.OffsetOutOfRangeException")):
            raise Failed(ErrorCode.OFFSET_OUT_OF_RANGE, text) from None
        errors = JClass(f"{KAFKA}.common.protocol.Errors")
        raise Failed(int(errors.forException(cause).code()), f"{cause.getClass().getName()}: {text}") from None


def _result(future: Any) -> Any:
    seconds = JClass("java.util.concurrent.TimeUnit").SECONDS
    return _call(future.get, int(REQUEST_TIMEOUT_S), seconds)


def _seconds(count: float) -> Any:
    return JClass("java.time.Duration").ofMillis(int(count * 1000))


def _list(*items: Any) -> Any:
    made = JClass("java.util.ArrayList")()
    for item in items:
        made.add(item)
    return made


class Java(Client):
    name = "java"

    def __init__(self, bootstrap_servers: str) -> None:
        _start_jvm()
        self.version = str(JClass(f"{KAFKA}.common.utils.AppInfoParser").getVersion())
        self.features = features()
        self._common = {"bootstrap.servers": bootstrap_servers}
        self._admin = JClass(f"{KAFKA}.clients.admin.Admin").create(_properties(self._common))
        self._producers: dict[Sending, Any] = {}
        self._place = JClass(f"{KAFKA}.common.TopicPartition")

    def close(self) -> None:
        for producer in self._producers.values():
            producer.close(_seconds(REQUEST_TIMEOUT_S))
        self._admin.close(_seconds(REQUEST_TIMEOUT_S))

    # Topics

    def topics(self) -> set[str]:
        return {str(name) for name in _result(self._admin.listTopics().names())}

    def describe_topic(self, topic: str) -> TopicDescription:
        (future,) = _values(self._admin.describeTopics(_list(topic)))
        described = _result(future)
        topic_id = str(described.topicId()) if Feature.TOPIC_IDS in self.features else None
        return TopicDescription(partitions=int(described.partitions().size()), topic_id=topic_id)

    def partitions_by_pages(self, topic: str, page: int) -> list[int]:
        options = JClass(f"{KAFKA}.clients.admin.DescribeTopicsOptions")().partitionSizeLimitPerResponse(page)
        names = JClass(f"{KAFKA}.common.TopicCollection").ofTopicNames(_list(topic))
        (future,) = self._admin.describeTopics(names, options).topicNameValues().values()
        return [int(partition.partition()) for partition in _result(future).partitions()]

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        new = JClass(f"{KAFKA}.clients.admin.NewTopic")(topic, jpype.JInt(partitions), jpype.JShort(replicas))
        new = new.configs(_properties(configs or {}))
        options = JClass(f"{KAFKA}.clients.admin.CreateTopicsOptions")().validateOnly(validate_only)
        _result(self._admin.createTopics(_list(new), options).all())

    def delete_topic(self, topic: str) -> None:
        _result(self._admin.deleteTopics(_list(topic)).all())

    def grow_topic(self, topic: str, partitions: int) -> None:
        wanted = JClass("java.util.HashMap")()
        wanted.put(topic, JClass(f"{KAFKA}.clients.admin.NewPartitions").increaseTo(partitions))
        _result(self._admin.createPartitions(wanted).all())

    # Records

    def send(self, topic: str, messages: Sequence[Message], sending: Sending = Sending()) -> list[int]:  # noqa: B008
        producer = self._producer(sending)
        record = JClass(f"{KAFKA}.clients.producer.ProducerRecord")
        header = JClass(f"{KAFKA}.common.header.internals.RecordHeader")
        number = JClass("java.lang.Long").valueOf
        futures = [
            _call(
                producer.send,
                record(
                    topic,
                    JClass("java.lang.Integer").valueOf(message.partition),
                    None if message.timestamp_ms is None else number(message.timestamp_ms),
                    _bytes_out(message.key),
                    _bytes_out(message.value),
                    _list(*(header(name, _bytes_out(value)) for name, value in message.headers)),
                ),
            )
            for message in messages
        ]
        return [max(int(_result(future).offset()), NO_OFFSET) for future in futures]

    def _producer(self, sending: Sending) -> Any:
        if sending not in self._producers:
            settings = {
                **self._common,
                "acks": sending.acks,
                "compression.type": sending.compression,
                "enable.idempotence": str(sending.idempotent).lower(),
                "linger.ms": LINGER_MS,
                "batch.size": 1 << 20,
                "max.request.size": REQUEST_BYTES_MAX,
                "max.block.ms": UNKNOWN_TOPIC_MS,
                "key.serializer": f"{SERIALIZERS}.ByteArraySerializer",
                "value.serializer": f"{SERIALIZERS}.ByteArraySerializer",
            }
            self._producers[sending] = JClass(f"{KAFKA}.clients.producer.KafkaProducer")(_properties(settings))
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
        settings = {
            **self._common,
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
            "check.crcs": "true",
            "fetch.max.wait.ms": LONG_POLL_MS,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "max.partition.fetch.bytes": partition_bytes_max,
            "key.deserializer": f"{SERIALIZERS}.ByteArrayDeserializer",
            "value.deserializer": f"{SERIALIZERS}.ByteArrayDeserializer",
        }
        consumer = JClass(f"{KAFKA}.clients.consumer.KafkaConsumer")(_properties(settings))
        places = [self._place(topic, partition) for partition in partitions]
        consumer.assign(_list(*places))
        for place in places:
            if start is Start.EARLIEST:
                consumer.seekToBeginning(_list(place))
            elif start is Start.LATEST:
                consumer.seekToEnd(_list(place))
                consumer.position(place)
            else:
                consumer.seek(place, jpype.JLong(start))
        return _Reader(consumer)

    # Offsets

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        spec = JClass(f"{KAFKA}.clients.admin.OffsetSpec")
        first = self._listed(topic, partition, spec.earliest()).offset
        return first, self._listed(topic, partition, spec.latest()).offset

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> FoundOffset:
        spec = JClass(f"{KAFKA}.clients.admin.OffsetSpec").forTimestamp(timestamp_ms)
        return self._listed(topic, partition, spec)

    def offset_of_max_timestamp(self, topic: str, partition: int = 0) -> FoundOffset:
        return self._listed(topic, partition, JClass(f"{KAFKA}.clients.admin.OffsetSpec").maxTimestamp())

    def _listed(self, topic: str, partition: int, spec: Any) -> FoundOffset:
        wanted = JClass("java.util.HashMap")()
        place = self._place(topic, partition)
        wanted.put(place, spec)
        found = _result(self._admin.listOffsets(wanted).partitionResult(place))
        return FoundOffset(offset=int(found.offset()), timestamp_ms=int(found.timestamp()))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        wanted = JClass("java.util.HashMap")()
        place = self._place(topic, partition)
        wanted.put(place, JClass(f"{KAFKA}.clients.admin.RecordsToDelete").beforeOffset(before))
        return int(_result(self._admin.deleteRecords(wanted).lowWatermarks().get(place)).lowWatermark())

    # Configs

    def _resource(self, kind: str, name: str) -> Any:
        resource = JClass(f"{KAFKA}.common.config.ConfigResource")
        return resource(getattr(JClass(f"{KAFKA}.common.config.ConfigResource$Type"), kind), name)

    def topic_configs(self, topic: str) -> dict[str, ConfigEntry]:
        return self._configs(self._resource("TOPIC", topic))

    def broker_configs(self) -> dict[str, ConfigEntry]:
        return self._configs(self._resource("BROKER", str(self._node_id())))

    def _configs(self, resource: Any) -> dict[str, ConfigEntry]:
        described = _result(self._admin.describeConfigs(_list(resource)).all()).get(resource)
        return {
            str(entry.name()): ConfigEntry(
                value=None if entry.value() is None else str(entry.value()), is_default=bool(entry.isDefault())
            )
            for entry in described.entries()
        }

    def set_topic_configs(self, topic: str, changes: Mapping[str, tuple[str, str | None]]) -> None:
        self._alter(self._resource("TOPIC", topic), changes)

    def set_broker_configs(self, changes: Mapping[str, tuple[str, str | None]]) -> None:
        self._alter(self._resource("BROKER", str(self._node_id())), changes)

    def _alter(self, resource: Any, changes: Mapping[str, tuple[str, str | None]]) -> None:
        operation = JClass(f"{KAFKA}.clients.admin.AlterConfigOp")
        kind = JClass(f"{KAFKA}.clients.admin.AlterConfigOp$OpType")
        entry = JClass(f"{KAFKA}.clients.admin.ConfigEntry")
        operations = _list(
            *(operation(entry(name, value), getattr(kind, word.upper())) for name, (word, value) in changes.items())
        )
        wanted = JClass("java.util.HashMap")()
        wanted.put(resource, operations)
        _result(self._admin.incrementalAlterConfigs(wanted).all())

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        entry = JClass(f"{KAFKA}.clients.admin.ConfigEntry")
        config = JClass(f"{KAFKA}.clients.admin.Config")(_list(*(entry(*pair) for pair in configs.items())))
        wanted = JClass("java.util.HashMap")()
        wanted.put(self._resource("TOPIC", topic), config)
        _result(self._admin.alterConfigs(wanted).all())

    def topics_with_configs(self) -> set[str]:
        kinds = JClass("java.util.HashSet")()
        kinds.add(JClass(f"{KAFKA}.common.config.ConfigResource$Type").TOPIC)
        options = JClass(f"{KAFKA}.clients.admin.ListConfigResourcesOptions")()
        return {str(resource.name()) for resource in _result(self._admin.listConfigResources(kinds, options).all())}

    # The cluster

    def _node_id(self) -> int:
        ((node_id, _, _),) = self.describe_cluster().brokers
        return node_id

    def describe_cluster(self) -> ClusterDescription:
        described = self._admin.describeCluster()
        return ClusterDescription(
            cluster_id=str(_result(described.clusterId())),
            controller_id=int(_result(described.controller()).id()),
            brokers=tuple((int(node.id()), str(node.host()), int(node.port())) for node in _result(described.nodes())),
        )

    def log_sizes(self, topic: str) -> dict[int, int]:
        ids = _list(JClass("java.lang.Integer").valueOf(self._node_id()))
        sizes: dict[int, int] = {}
        for directories in _result(self._admin.describeLogDirs(ids).allDescriptions()).values():
            for directory in directories.values():
                for entry in directory.replicaInfos().entrySet():
                    if str(entry.getKey().topic()) == topic:
                        sizes[int(entry.getKey().partition())] = int(entry.getValue().size())
        return sizes

    def last_sequences(self, topic: str, partition: int = 0) -> list[int]:
        place = self._place(topic, partition)
        state = _result(self._admin.describeProducers(_list(place)).all()).get(place)
        return [int(producer.lastSequence()) for producer in state.activeProducers()]


def _values(result: Any) -> Any:
    """Older releases have one map of futures, newer ones one by name and one by id."""
    return (result.topicNameValues() if hasattr(result, "topicNameValues") else result.values()).values()


class _Reader(Reader):
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._unread: list[Received] = []

    def read(self, count: int, timeout_s: float = READ_TIMEOUT_S) -> list[Received]:
        deadline = time.monotonic() + timeout_s
        duration = JClass("java.time.Duration").ofMillis(min(POLL_MS, int(timeout_s * 1000)))
        while len(self._unread) < count and time.monotonic() < deadline:
            for record in _call(self._consumer.poll, duration):
                self._unread.append(
                    Received(
                        partition=int(record.partition()),
                        offset=int(record.offset()),
                        timestamp_ms=int(record.timestamp()),
                        key=_bytes_in(record.key()),
                        value=_bytes_in(record.value()),
                        headers=tuple((str(header.key()), _bytes_in(header.value())) for header in record.headers()),
                    )
                )
        received, self._unread = self._unread[:count], self._unread[count:]
        return received

    def close(self) -> None:
        """Close at once: otherwise the end of its fetch session would wait for the fetch that the broker still
        holds.
        """
        self._consumer.close(_seconds(0))
