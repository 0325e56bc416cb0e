"""Metadata (3), versions 0 to 13.

Generated from wire/schemas/metadata.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT16, INT32, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    read_nullable_array,
    read_nullable_string,
    read_numbers,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    present,
    uuid,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_array,
    write_nullable_string,
    write_numbers,
    write_string,
)

API_KEY = 3
MIN_VERSION = 0
MAX_VERSION = 13
FLEXIBLE_FROM = 9

_FF = Struct(">??")
_FFF = Struct(">???")
_FFFX = Struct(">???x")
_FFX = Struct(">??x")
_HII = Struct(">hii")
_HIII = Struct(">hiii")
_HX = Struct(">hx")
_IX = Struct(">ix")
_TF = Struct(">16s?")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequestTopic:
    topic_id: bytes = ZERO_UUID
    name: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    topics: tuple[MetadataRequestTopic, ...] | None = ()
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponseBroker:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponsePartition:
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponseTopic:
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse:
    throttle_time_ms: int = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[MetadataRequestTopic, int]:
    name, position = read_string(body, position)
    message = MetadataRequestTopic(name=name)
    return message, position


def _write_request_topic_v0(write: Write, message: MetadataRequestTopic) -> None:
    write_string(write, present(message.name))


def _read_request_v0(body: Buffer, position: int) -> tuple[MetadataRequest, int]:
    topics, position = read_array(body, position, 2, _read_request_topic_v0)
    message = MetadataRequest(topics=topics)
    return message, position


def _write_request_v0(write: Write, message: MetadataRequest) -> None:
    write_array(write, present(message.topics), _write_request_topic_v0)


def _read_request_v1(body: Buffer, position: int) -> tuple[MetadataRequest, int]:
    topics, position = read_nullable_array(body, position, 2, _read_request_topic_v0)
    message = MetadataRequest(topics=topics)
    return message, position


def _write_request_v1(write: Write, message: MetadataRequest) -> None:
    write_nullable_array(write, message.topics, _write_request_topic_v0)


def _read_request_v4(body: Buffer, position: int) -> tuple[MetadataRequest, int]:
    topics, position = read_nullable_array(body, position, 2, _read_request_topic_v0)
    (allow_auto_topic_creation,) = BOOL.unpack_from(body, position)
    position += 1
    message = MetadataRequest(topics=topics, allow_auto_topic_creation=allow_auto_topic_creation)
    return message, position


def _write_request_v4(write: Write, message: MetadataRequest) -> None:
    write_nullable_array(write, message.topics, _write_request_topic_v0)
    write(BOOL.pack(message.allow_auto_topic_creation))


def _read_request_v8(body: Buffer, position: int) -> tuple[MetadataRequest, int]:
    topics, position = read_nullable_array(body, position, 2, _read_request_topic_v0)
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = _FFF.unpack_from(body, position)
    position += 3
    message = MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=allow_auto_topic_creation,
        include_cluster_authorized_operations=include_cluster_authorized_operations,
        include_topic_authorized_operations=include_topic_authorized_operations,
    )
    return message, position


def _write_request_v8(write: Write, message: MetadataRequest) -> None:
    write_nullable_array(write, message.topics, _write_request_topic_v0)
    write(
        _FFF.pack(
            message.allow_auto_topic_creation,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )
    )


def _read_request_topic_v9(body: Buffer, position: int) -> tuple[MetadataRequestTopic, int]:
    name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataRequestTopic(name=name)
    return message, position


def _write_request_topic_v9(write: Write, message: MetadataRequestTopic) -> None:
    write_compact_string(write, present(message.name))
    write(NO_TAGS)


def _read_request_v9(body: Buffer, position: int) -> tuple[MetadataRequest, int]:
    topics, position = read_compact_nullable_array(body, position, 2, _read_request_topic_v9)
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = _FFF.unpack_from(body, position)
    position += 3
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=allow_auto_topic_creation,
        include_cluster_authorized_operations=include_cluster_authorized_operations,
        include_topic_authorized_operations=include_topic_authorized_operations,
    )
    return message, position


def _write_request_v9(write: Write, message: MetadataRequest) -> None:
    write_compact_nullable_array(write, message.topics, _write_request_topic_v9)
    write(
        _FFFX.pack(
            message.allow_auto_topic_creation,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )
    )


def _read_request_topic_v10(body: Buffer, position: int) -> tuple[MetadataRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    name, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataRequestTopic(topic_id=topic_id, name=name)
    return message, position


def _write_request_topic_v10(write: Write, message: MetadataRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_nullable_string(write, message.name)
    write(NO_TAGS)


def _read_request_v10(body: Buffer, position: int) -> tuple[MetadataRequest, int]:
    topics, position = read_compact_nullable_array(body, position, 18, _read_request_topic_v10)
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = _FFF.unpack_from(body, position)
    position += 3
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=allow_auto_topic_creation,
        include_cluster_authorized_operations=include_cluster_authorized_operations,
        include_topic_authorized_operations=include_topic_authorized_operations,
    )
    return message, position


def _write_request_v10(write: Write, message: MetadataRequest) -> None:
    write_compact_nullable_array(write, message.topics, _write_request_topic_v10)
    write(
        _FFFX.pack(
            message.allow_auto_topic_creation,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )
    )


def _read_request_v11(body: Buffer, position: int) -> tuple[MetadataRequest, int]:
    topics, position = read_compact_nullable_array(body, position, 18, _read_request_topic_v10)
    allow_auto_topic_creation, include_topic_authorized_operations = _FF.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=allow_auto_topic_creation,
        include_topic_authorized_operations=include_topic_authorized_operations,
    )
    return message, position


def _write_request_v11(write: Write, message: MetadataRequest) -> None:
    write_compact_nullable_array(write, message.topics, _write_request_topic_v10)
    write(_FFX.pack(message.allow_auto_topic_creation, message.include_topic_authorized_operations))


def _read_response_broker_v0(body: Buffer, position: int) -> tuple[MetadataResponseBroker, int]:
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    message = MetadataResponseBroker(node_id=node_id, host=host, port=port)
    return message, position


def _write_response_broker_v0(write: Write, message: MetadataResponseBroker) -> None:
    write(INT32.pack(message.node_id))
    write_string(write, message.host)
    write(INT32.pack(message.port))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[MetadataResponsePartition, int]:
    error_code, partition_index, leader_id = _HII.unpack_from(body, position)
    position += 10
    replica_nodes, position = read_numbers(body, position, INT32)
    isr_nodes, position = read_numbers(body, position, INT32)
    message = MetadataResponsePartition(
        error_code=error_code,
        partition_index=partition_index,
        leader_id=leader_id,
        replica_nodes=replica_nodes,
        isr_nodes=isr_nodes,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: MetadataResponsePartition) -> None:
    write(_HII.pack(message.error_code, message.partition_index, message.leader_id))
    write_numbers(write, message.replica_nodes, INT32)
    write_numbers(write, message.isr_nodes, INT32)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 18, _read_response_partition_v0)
    message = MetadataResponseTopic(error_code=error_code, name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, present(message.name))
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    brokers, position = read_array(body, position, 10, _read_response_broker_v0)
    topics, position = read_array(body, position, 8, _read_response_topic_v0)
    message = MetadataResponse(brokers=brokers, topics=topics)
    return message, position


def _write_response_v0(write: Write, message: MetadataResponse) -> None:
    write_array(write, message.brokers, _write_response_broker_v0)
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_broker_v1(body: Buffer, position: int) -> tuple[MetadataResponseBroker, int]:
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    rack, position = read_nullable_string(body, position)
    message = MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
    return message, position


def _write_response_broker_v1(write: Write, message: MetadataResponseBroker) -> None:
    write(INT32.pack(message.node_id))
    write_string(write, message.host)
    write(INT32.pack(message.port))
    write_nullable_string(write, message.rack)


def _read_response_topic_v1(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_string(body, position)
    (is_internal,) = BOOL.unpack_from(body, position)
    position += 1
    partitions, position = read_array(body, position, 18, _read_response_partition_v0)
    message = MetadataResponseTopic(error_code=error_code, name=name, is_internal=is_internal, partitions=partitions)
    return message, position


def _write_response_topic_v1(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, present(message.name))
    write(BOOL.pack(message.is_internal))
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    brokers, position = read_array(body, position, 12, _read_response_broker_v1)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 9, _read_response_topic_v1)
    message = MetadataResponse(brokers=brokers, controller_id=controller_id, topics=topics)
    return message, position


def _write_response_v1(write: Write, message: MetadataResponse) -> None:
    write_array(write, message.brokers, _write_response_broker_v1)
    write(INT32.pack(message.controller_id))
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_v2(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    brokers, position = read_array(body, position, 12, _read_response_broker_v1)
    cluster_id, position = read_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 9, _read_response_topic_v1)
    message = MetadataResponse(brokers=brokers, cluster_id=cluster_id, controller_id=controller_id, topics=topics)
    return message, position


def _write_response_v2(write: Write, message: MetadataResponse) -> None:
    write_array(write, message.brokers, _write_response_broker_v1)
    write_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_v3(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_array(body, position, 12, _read_response_broker_v1)
    cluster_id, position = read_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 9, _read_response_topic_v1)
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
    )
    return message, position


def _write_response_v3(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.brokers, _write_response_broker_v1)
    write_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_partition_v5(body: Buffer, position: int) -> tuple[MetadataResponsePartition, int]:
    error_code, partition_index, leader_id = _HII.unpack_from(body, position)
    position += 10
    replica_nodes, position = read_numbers(body, position, INT32)
    isr_nodes, position = read_numbers(body, position, INT32)
    offline_replicas, position = read_numbers(body, position, INT32)
    message = MetadataResponsePartition(
        error_code=error_code,
        partition_index=partition_index,
        leader_id=leader_id,
        replica_nodes=replica_nodes,
        isr_nodes=isr_nodes,
        offline_replicas=offline_replicas,
    )
    return message, position


def _write_response_partition_v5(write: Write, message: MetadataResponsePartition) -> None:
    write(_HII.pack(message.error_code, message.partition_index, message.leader_id))
    write_numbers(write, message.replica_nodes, INT32)
    write_numbers(write, message.isr_nodes, INT32)
    write_numbers(write, message.offline_replicas, INT32)


def _read_response_topic_v5(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_string(body, position)
    (is_internal,) = BOOL.unpack_from(body, position)
    position += 1
    partitions, position = read_array(body, position, 22, _read_response_partition_v5)
    message = MetadataResponseTopic(error_code=error_code, name=name, is_internal=is_internal, partitions=partitions)
    return message, position


def _write_response_topic_v5(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, present(message.name))
    write(BOOL.pack(message.is_internal))
    write_array(write, message.partitions, _write_response_partition_v5)


def _read_response_v5(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_array(body, position, 12, _read_response_broker_v1)
    cluster_id, position = read_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 9, _read_response_topic_v5)
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
    )
    return message, position


def _write_response_v5(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.brokers, _write_response_broker_v1)
    write_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_array(write, message.topics, _write_response_topic_v5)


def _read_response_partition_v7(body: Buffer, position: int) -> tuple[MetadataResponsePartition, int]:
    error_code, partition_index, leader_id, leader_epoch = _HIII.unpack_from(body, position)
    position += 14
    replica_nodes, position = read_numbers(body, position, INT32)
    isr_nodes, position = read_numbers(body, position, INT32)
    offline_replicas, position = read_numbers(body, position, INT32)
    message = MetadataResponsePartition(
        error_code=error_code,
        partition_index=partition_index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replica_nodes=replica_nodes,
        isr_nodes=isr_nodes,
        offline_replicas=offline_replicas,
    )
    return message, position


def _write_response_partition_v7(write: Write, message: MetadataResponsePartition) -> None:
    write(_HIII.pack(message.error_code, message.partition_index, message.leader_id, message.leader_epoch))
    write_numbers(write, message.replica_nodes, INT32)
    write_numbers(write, message.isr_nodes, INT32)
    write_numbers(write, message.offline_replicas, INT32)


def _read_response_topic_v7(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_string(body, position)
    (is_internal,) = BOOL.unpack_from(body, position)
    position += 1
    partitions, position = read_array(body, position, 26, _read_response_partition_v7)
    message = MetadataResponseTopic(error_code=error_code, name=name, is_internal=is_internal, partitions=partitions)
    return message, position


def _write_response_topic_v7(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, present(message.name))
    write(BOOL.pack(message.is_internal))
    write_array(write, message.partitions, _write_response_partition_v7)


def _read_response_v7(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_array(body, position, 12, _read_response_broker_v1)
    cluster_id, position = read_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 9, _read_response_topic_v7)
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
    )
    return message, position


def _write_response_v7(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.brokers, _write_response_broker_v1)
    write_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_array(write, message.topics, _write_response_topic_v7)


def _read_response_topic_v8(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_string(body, position)
    (is_internal,) = BOOL.unpack_from(body, position)
    position += 1
    partitions, position = read_array(body, position, 26, _read_response_partition_v7)
    (topic_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    message = MetadataResponseTopic(
        error_code=error_code,
        name=name,
        is_internal=is_internal,
        partitions=partitions,
        topic_authorized_operations=topic_authorized_operations,
    )
    return message, position


def _write_response_topic_v8(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, present(message.name))
    write(BOOL.pack(message.is_internal))
    write_array(write, message.partitions, _write_response_partition_v7)
    write(INT32.pack(message.topic_authorized_operations))


def _read_response_v8(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_array(body, position, 12, _read_response_broker_v1)
    cluster_id, position = read_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 13, _read_response_topic_v8)
    (cluster_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_authorized_operations,
    )
    return message, position


def _write_response_v8(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.brokers, _write_response_broker_v1)
    write_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_array(write, message.topics, _write_response_topic_v8)
    write(INT32.pack(message.cluster_authorized_operations))


def _read_response_broker_v9(body: Buffer, position: int) -> tuple[MetadataResponseBroker, int]:
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_compact_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    rack, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
    return message, position


def _write_response_broker_v9(write: Write, message: MetadataResponseBroker) -> None:
    write(INT32.pack(message.node_id))
    write_compact_string(write, message.host)
    write(INT32.pack(message.port))
    write_compact_nullable_string(write, message.rack)
    write(NO_TAGS)


def _read_response_partition_v9(body: Buffer, position: int) -> tuple[MetadataResponsePartition, int]:
    error_code, partition_index, leader_id, leader_epoch = _HIII.unpack_from(body, position)
    position += 14
    replica_nodes, position = read_compact_numbers(body, position, INT32)
    isr_nodes, position = read_compact_numbers(body, position, INT32)
    offline_replicas, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponsePartition(
        error_code=error_code,
        partition_index=partition_index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replica_nodes=replica_nodes,
        isr_nodes=isr_nodes,
        offline_replicas=offline_replicas,
    )
    return message, position


def _write_response_partition_v9(write: Write, message: MetadataResponsePartition) -> None:
    write(_HIII.pack(message.error_code, message.partition_index, message.leader_id, message.leader_epoch))
    write_compact_numbers(write, message.replica_nodes, INT32)
    write_compact_numbers(write, message.isr_nodes, INT32)
    write_compact_numbers(write, message.offline_replicas, INT32)
    write(NO_TAGS)


def _read_response_topic_v9(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_compact_string(body, position)
    (is_internal,) = BOOL.unpack_from(body, position)
    position += 1
    partitions, position = read_compact_array(body, position, 18, _read_response_partition_v9)
    (topic_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponseTopic(
        error_code=error_code,
        name=name,
        is_internal=is_internal,
        partitions=partitions,
        topic_authorized_operations=topic_authorized_operations,
    )
    return message, position


def _write_response_topic_v9(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, present(message.name))
    write(BOOL.pack(message.is_internal))
    write_compact_array(write, message.partitions, _write_response_partition_v9)
    write(_IX.pack(message.topic_authorized_operations))


def _read_response_v9(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 11, _read_response_broker_v9)
    cluster_id, position = read_compact_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 10, _read_response_topic_v9)
    (cluster_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_authorized_operations,
    )
    return message, position


def _write_response_v9(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.brokers, _write_response_broker_v9)
    write_compact_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.topics, _write_response_topic_v9)
    write(_IX.pack(message.cluster_authorized_operations))


def _read_response_topic_v10(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_compact_string(body, position)
    topic_id, is_internal = _TF.unpack_from(body, position)
    position += 17
    partitions, position = read_compact_array(body, position, 18, _read_response_partition_v9)
    (topic_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        partitions=partitions,
        topic_authorized_operations=topic_authorized_operations,
    )
    return message, position


def _write_response_topic_v10(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, present(message.name))
    write(_TF.pack(uuid(message.topic_id), message.is_internal))
    write_compact_array(write, message.partitions, _write_response_partition_v9)
    write(_IX.pack(message.topic_authorized_operations))


def _read_response_v10(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 11, _read_response_broker_v9)
    cluster_id, position = read_compact_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 26, _read_response_topic_v10)
    (cluster_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_authorized_operations,
    )
    return message, position


def _write_response_v10(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.brokers, _write_response_broker_v9)
    write_compact_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.topics, _write_response_topic_v10)
    write(_IX.pack(message.cluster_authorized_operations))


def _read_response_v11(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 11, _read_response_broker_v9)
    cluster_id, position = read_compact_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 26, _read_response_topic_v10)
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
    )
    return message, position


def _write_response_v11(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.brokers, _write_response_broker_v9)
    write_compact_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.topics, _write_response_topic_v10)
    write(NO_TAGS)


def _read_response_topic_v12(body: Buffer, position: int) -> tuple[MetadataResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_compact_nullable_string(body, position)
    topic_id, is_internal = _TF.unpack_from(body, position)
    position += 17
    partitions, position = read_compact_array(body, position, 18, _read_response_partition_v9)
    (topic_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        partitions=partitions,
        topic_authorized_operations=topic_authorized_operations,
    )
    return message, position


def _write_response_topic_v12(write: Write, message: MetadataResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.name)
    write(_TF.pack(uuid(message.topic_id), message.is_internal))
    write_compact_array(write, message.partitions, _write_response_partition_v9)
    write(_IX.pack(message.topic_authorized_operations))


def _read_response_v12(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 11, _read_response_broker_v9)
    cluster_id, position = read_compact_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 26, _read_response_topic_v12)
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
    )
    return message, position


def _write_response_v12(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.brokers, _write_response_broker_v9)
    write_compact_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.topics, _write_response_topic_v12)
    write(NO_TAGS)


def _read_response_v13(body: Buffer, position: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 11, _read_response_broker_v9)
    cluster_id, position = read_compact_nullable_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 26, _read_response_topic_v12)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
        error_code=error_code,
    )
    return message, position


def _write_response_v13(write: Write, message: MetadataResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.brokers, _write_response_broker_v9)
    write_compact_nullable_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.topics, _write_response_topic_v12)
    write(_HX.pack(message.error_code))


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v1,
    _read_request_v1,
    _read_request_v4,
    _read_request_v4,
    _read_request_v4,
    _read_request_v4,
    _read_request_v8,
    _read_request_v9,
    _read_request_v10,
    _read_request_v11,
    _read_request_v11,
    _read_request_v11,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v1,
    _write_request_v1,
    _write_request_v4,
    _write_request_v4,
    _write_request_v4,
    _write_request_v4,
    _write_request_v8,
    _write_request_v9,
    _write_request_v10,
    _write_request_v11,
    _write_request_v11,
    _write_request_v11,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> MetadataRequest:
    return decode(_REQUEST_READERS, "MetadataRequest", buffer, position, end, version)


def encode_request(message: MetadataRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "MetadataRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
    _read_response_v3,
    _read_response_v3,
    _read_response_v5,
    _read_response_v5,
    _read_response_v7,
    _read_response_v8,
    _read_response_v9,
    _read_response_v10,
    _read_response_v11,
    _read_response_v12,
    _read_response_v13,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
    _write_response_v3,
    _write_response_v3,
    _write_response_v5,
    _write_response_v5,
    _write_response_v7,
    _write_response_v8,
    _write_response_v9,
    _write_response_v10,
    _write_response_v11,
    _write_response_v12,
    _write_response_v13,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> MetadataResponse:
    return decode(_RESPONSE_READERS, "MetadataResponse", buffer, position, end, version)


def encode_response(message: MetadataResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "MetadataResponse", message, version)


def begin_response(message: MetadataResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "MetadataResponse", message, version)
