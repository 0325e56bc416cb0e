"""aiokafka, driven from a loop of its own: a call runs the loop until it is answered."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import aiokafka
from aiokafka import admin as aio_admin
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

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
DEFAULT_CONFIG_SOURCE = 5
NEVER_THERE = {
    Feature.TOPIC_IDS,
    Feature.INCREMENTAL_CONFIGS,
    Feature.LOG_DIRS,
    Feature.PRODUCERS,
    Feature.MAX_TIMESTAMP,
    Feature.INVALID_RECORD,
    Feature.CONFIG_RESOURCES,
    Feature.PAGED_TOPICS,
}


def features() -> frozenset[Feature]:
    missing = set(NEVER_THERE)
    if not hasattr(aio_admin.AIOKafkaAdminClient, "delete_records"):
        missing.add(Feature.DELETE_RECORDS)
    return EVERYTHING - missing


def connect(bootstrap_servers: str) -> Client:
    return Aiokafka(bootstrap_servers)


class Aiokafka(Client):
    name = "aiokafka"

    def __init__(self, bootstrap_servers: str) -> None:
        self.version = aiokafka.__version__
        self.features = features()
        self._bootstrap_servers = bootstrap_servers
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # errors are asserted, not read
        self._loop = asyncio.new_event_loop()
        self._producers: dict[Sending, Any] = {}
        self._admin = self._run(self._started(aio_admin.AIOKafkaAdminClient))
        self._asker = self._run(self._started(aiokafka.AIOKafkaConsumer, enable_auto_commit=False))

    async def _started(self, kind: Any, **options: Any) -> Any:
        made = kind(bootstrap_servers=self._bootstrap_servers, **options)
        await made.start()
        return made

    def _run(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Errors of the broker become Failed."""
        try:
            return self._loop.run_until_complete(asyncio.wait_for(call, REQUEST_TIMEOUT_S))
        except KafkaError as error:
            code = getattr(error, "errno", None)
            if not isinstance(code, int):
                raise
            raise Failed(code, str(error)) from error

    def close(self) -> None:
        for producer in self._producers.values():
            self._run(producer.stop())
        self._run(self._asker.stop())
        self._run(self._admin.close())
        self._loop.close()

    # Topics

    def topics(self) -> set[str]:
        return set(self._run(self._admin.list_topics()))

    def describe_topic(self, topic: str) -> TopicDescription:
        (found,) = self._run(self._admin.describe_topics([topic]))
        if found["error_code"]:
            raise Failed(found["error_code"], topic)
        return TopicDescription(partitions=len(found["partitions"]), topic_id=None)

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        new = aio_admin.NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))
        _check(self._run(self._admin.create_topics([new], validate_only=validate_only)).topic_errors)

    def delete_topic(self, topic: str) -> None:
        _check(self._run(self._admin.delete_topics([topic])).topic_error_codes)

    def grow_topic(self, topic: str, partitions: int) -> None:
        self._run(self._admin.create_partitions({topic: aio_admin.NewPartitions(partitions)}))

    # Records

    def send(self, topic: str, messages: Sequence[Message], sending: Sending = Sending()) -> list[int]:  # noqa: B008
        reported = self._run(self._send(topic, messages, sending))
        return [NO_OFFSET if report is None else report.offset for report in reported]

    async def _send(self, topic: str, messages: Sequence[Message], sending: Sending) -> list[Any]:
        if sending not in self._producers:
            self._producers[sending] = await self._started(
                aiokafka.AIOKafkaProducer,
                acks="all" if sending.acks == -1 else sending.acks,
                compression_type=None if sending.compression == "none" else sending.compression,
                enable_idempotence=sending.idempotent,
                linger_ms=LINGER_MS,
                max_batch_size=1 << 20,
                max_request_size=REQUEST_BYTES_MAX,
                request_timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
            )
        producer = self._producers[sending]
        await self._await_topic(producer, topic)
        futures = [
            await producer.send(
                topic,
                message.value,
                message.key,
                message.partition,
                message.timestamp_ms,
                headers=list(message.headers),
            )
            for message in messages
        ]
        return list(await asyncio.gather(*futures))

    async def _await_topic(self, producer: Any, topic: str) -> None:
        """A machine may stand still for as long as a producer asks for a topic; only one that is not there fails."""
        while True:
            try:
                await asyncio.wait_for(producer.partitions_for(topic), UNKNOWN_TOPIC_MS / 1000)
                return
            except TimeoutError as error:  # it would keep asking for 40 s
                if topic not in await self._admin.list_topics():
                    raise Failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic) from error

    def reader(
        self,
        topic: str,
        start: Start | int,
        *,
        partitions: Sequence[int] = (0,),
        committed_only: bool = False,
        partition_bytes_max: int = FETCH_BYTES_MAX,
    ) -> Reader:
        isolation = "read_committed" if committed_only else "read_uncommitted"
        places = [aiokafka.TopicPartition(topic, partition) for partition in partitions]
        return _Reader(self._run(self._consumer(places, start, isolation, partition_bytes_max)), self._run)

    async def _consumer(self, places: list[Any], start: Start | int, isolation: str, partition_bytes_max: int) -> Any:
        consumer = await self._started(
            aiokafka.AIOKafkaConsumer,
            enable_auto_commit=False,
            auto_offset_reset="none",
            check_crcs=True,
            fetch_max_wait_ms=LONG_POLL_MS,
            max_partition_fetch_bytes=partition_bytes_max,
            isolation_level=isolation,
        )
        consumer.assign(places)
        if start is Start.EARLIEST:
            await consumer.seek_to_beginning(*places)
        elif start is Start.LATEST:
            await consumer.seek_to_end(*places)
        else:
            for place in places:
                consumer.seek(place, start)
        return consumer

    # Offsets

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = aiokafka.TopicPartition(topic, partition)
        first = self._run(self._asker.beginning_offsets([place]))[place]
        return first, self._run(self._asker.end_offsets([place]))[place]

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> FoundOffset:
        place = aiokafka.TopicPartition(topic, partition)
        found = self._run(self._asker.offsets_for_times({place: timestamp_ms}))[place]
        return NOTHING_FOUND if found is None else FoundOffset(offset=found.offset, timestamp_ms=found.timestamp)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = aiokafka.TopicPartition(topic, partition)
        records = aio_admin.RecordsToDelete(before_offset=before)
        low: int = self._run(self._admin.delete_records({place: records}))[place]
        return low

    # Configs

    def topic_configs(self, topic: str) -> dict[str, ConfigEntry]:
        return self._configs(ConfigResourceType.TOPIC, topic)

    def broker_configs(self) -> dict[str, ConfigEntry]:
        ((node_id, _, _),) = self.describe_cluster().brokers
        return self._configs(ConfigResourceType.BROKER, str(node_id))

    def _configs(self, kind: Any, name: str) -> dict[str, ConfigEntry]:
        (response,) = self._run(self._admin.describe_configs([ConfigResource(kind, name)]))
        ((code, message, _, _, entries),) = response.resources
        if code:
            raise Failed(code, message)
        return {
            key: ConfigEntry(value=value, is_default=source == DEFAULT_CONFIG_SOURCE)
            for key, value, _read_only, source, *_ in entries
        }

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        (response,) = self._run(self._admin.alter_configs([resource]))
        ((code, message, *_),) = response.resources
        if code:
            raise Failed(code, message)

    # The cluster

    def describe_cluster(self) -> ClusterDescription:
        described = self._run(self._admin.describe_cluster())
        return ClusterDescription(
            cluster_id=described.get("cluster_id"),
            controller_id=described.get("controller_id"),
            brokers=tuple((broker["node_id"], broker["host"], broker["port"]) for broker in described["brokers"]),
        )


def _check(outcomes: Sequence[Sequence[Any]]) -> None:
    for topic, code, *message in outcomes:
        if code:
            raise Failed(code, f"{topic} {message}")


class _Reader(Reader):
    def __init__(self, consumer: Any, run: Any) -> None:
        self._consumer = consumer
        self._run = run

    def read(self, count: int, timeout_s: float = READ_TIMEOUT_S) -> list[Received]:
        received: list[Received] = []
        deadline = time.monotonic() + timeout_s
        while len(received) < count and time.monotonic() < deadline:
            polled = self._run(
                self._consumer.getmany(timeout_ms=min(POLL_MS, timeout_s * 1000), max_records=count - len(received))
            )
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
        self._run(self._consumer.stop())
