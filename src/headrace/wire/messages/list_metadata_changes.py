"""ListMetadataChanges (32041), versions 0 to 0.

Generated from wire/schemas/list_metadata_changes.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT8, INT32, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)

API_KEY = 32041
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IFF = Struct(">i??")
_IFFX = Struct(">i??x")
_IH = Struct(">ih")
_III = Struct(">iii")
_QF = Struct(">q?")
_QI = Struct(">qi")
_QIX = Struct(">qix")
_TBI = Struct(">16sbi")
_TBIX = Struct(">16sbix")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetadataChangesRequest:
    after_version: int = -1
    wait_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetadataChangesResponseTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    change: int = 0
    partition_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetadataChangesResponsePartition:
    topic: str = ""
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetadataChangesResponseConfig:
    resource_type: int = 0
    resource_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetadataChangesResponseBroker:
    broker_id: int = 0
    is_fenced: bool = False
    is_stopping: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetadataChangesResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    version: int = -1
    is_complete: bool = False
    topics: tuple[ListMetadataChangesResponseTopic, ...] = ()
    partitions: tuple[ListMetadataChangesResponsePartition, ...] = ()
    configs: tuple[ListMetadataChangesResponseConfig, ...] = ()
    brokers: tuple[ListMetadataChangesResponseBroker, ...] | None = None


def _read_request_v0(body: Buffer, position: int) -> tuple[ListMetadataChangesRequest, int]:
    after_version, wait_ms = _QI.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListMetadataChangesRequest(after_version=after_version, wait_ms=wait_ms)
    return message, position


def _write_request_v0(write: Write, message: ListMetadataChangesRequest) -> None:
    write(_QIX.pack(message.after_version, message.wait_ms))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[ListMetadataChangesResponseTopic, int]:
    name, position = read_compact_string(body, position)
    topic_id, change, partition_count = _TBI.unpack_from(body, position)
    position += 21
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListMetadataChangesResponseTopic(
        name=name,
        topic_id=topic_id,
        change=change,
        partition_count=partition_count,
    )
    return message, position


def _write_response_topic_v0(write: Write, message: ListMetadataChangesResponseTopic) -> None:
    write_compact_string(write, message.name)
    write(_TBIX.pack(uuid(message.topic_id), message.change, message.partition_count))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[ListMetadataChangesResponsePartition, int]:
    topic, position = read_compact_string(body, position)
    partition_index, leader_id, leader_epoch = _III.unpack_from(body, position)
    position += 12
    replicas, position = read_compact_numbers(body, position, INT32)
    isr, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListMetadataChangesResponsePartition(
        topic=topic,
        partition_index=partition_index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replicas=replicas,
        isr=isr,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: ListMetadataChangesResponsePartition) -> None:
    write_compact_string(write, message.topic)
    write(_III.pack(message.partition_index, message.leader_id, message.leader_epoch))
    write_compact_numbers(write, message.replicas, INT32)
    write_compact_numbers(write, message.isr, INT32)
    write(NO_TAGS)


def _read_response_config_v0(body: Buffer, position: int) -> tuple[ListMetadataChangesResponseConfig, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListMetadataChangesResponseConfig(resource_type=resource_type, resource_name=resource_name)
    return message, position


def _write_response_config_v0(write: Write, message: ListMetadataChangesResponseConfig) -> None:
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write(NO_TAGS)


def _read_response_broker_v0(body: Buffer, position: int) -> tuple[ListMetadataChangesResponseBroker, int]:
    broker_id, is_fenced, is_stopping = _IFF.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListMetadataChangesResponseBroker(broker_id=broker_id, is_fenced=is_fenced, is_stopping=is_stopping)
    return message, position


def _write_response_broker_v0(write: Write, message: ListMetadataChangesResponseBroker) -> None:
    write(_IFFX.pack(message.broker_id, message.is_fenced, message.is_stopping))


def _read_response_v0(body: Buffer, position: int) -> tuple[ListMetadataChangesResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    version, is_complete = _QF.unpack_from(body, position)
    position += 9
    topics, position = read_compact_array(body, position, 23, _read_response_topic_v0)
    partitions, position = read_compact_array(body, position, 16, _read_response_partition_v0)
    configs, position = read_compact_array(body, position, 3, _read_response_config_v0)
    brokers, position = read_compact_nullable_array(body, position, 7, _read_response_broker_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListMetadataChangesResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        version=version,
        is_complete=is_complete,
        topics=topics,
        partitions=partitions,
        configs=configs,
        brokers=brokers,
    )
    return message, position


def _write_response_v0(write: Write, message: ListMetadataChangesResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(_QF.pack(message.version, message.is_complete))
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write_compact_array(write, message.configs, _write_response_config_v0)
    write_compact_nullable_array(write, message.brokers, _write_response_broker_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ListMetadataChangesRequest:
    return decode(_REQUEST_READERS, "ListMetadataChangesRequest", buffer, position, end, version)


def encode_request(message: ListMetadataChangesRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ListMetadataChangesRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ListMetadataChangesResponse:
    return decode(_RESPONSE_READERS, "ListMetadataChangesResponse", buffer, position, end, version)


def encode_response(message: ListMetadataChangesResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ListMetadataChangesResponse", message, version)


def begin_response(message: ListMetadataChangesResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ListMetadataChangesResponse", message, version)
