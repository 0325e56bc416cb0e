"""DescribeTopicPartitions (75), versions 0 to 0.

Generated from wire/schemas/describe_topic_partitions.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_numbers,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    read_nullable_struct,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_array,
    write_compact_nullable_numbers,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_struct,
)

API_KEY = 75
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_HIII = Struct(">hiii")
_IX = Struct(">ix")
_TF = Struct(">16s?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequestTopic:
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequestCursor:
    topic_name: str = ""
    partition_index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequest:
    topics: tuple[DescribeTopicPartitionsRequestTopic, ...] = ()
    response_partition_limit: int = 2000
    cursor: DescribeTopicPartitionsRequestCursor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponsePartition:
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponseTopic:
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponseNextCursor:
    topic_name: str = ""
    partition_index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: DescribeTopicPartitionsResponseNextCursor | None = None


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[DescribeTopicPartitionsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTopicPartitionsRequestTopic(name=name)
    return message, position


def _write_request_topic_v0(write: Write, message: DescribeTopicPartitionsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write(NO_TAGS)


def _read_request_cursor_v0(body: Buffer, position: int) -> tuple[DescribeTopicPartitionsRequestCursor, int]:
    topic_name, position = read_compact_string(body, position)
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTopicPartitionsRequestCursor(topic_name=topic_name, partition_index=partition_index)
    return message, position


def _write_request_cursor_v0(write: Write, message: DescribeTopicPartitionsRequestCursor) -> None:
    write_compact_string(write, message.topic_name)
    write(_IX.pack(message.partition_index))


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeTopicPartitionsRequest, int]:
    topics, position = read_compact_array(body, position, 2, _read_request_topic_v0)
    (response_partition_limit,) = INT32.unpack_from(body, position)
    position += 4
    cursor, position = read_nullable_struct(body, position, _read_request_cursor_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTopicPartitionsRequest(
        topics=topics,
        response_partition_limit=response_partition_limit,
        cursor=cursor,
    )
    return message, position


def _write_request_v0(write: Write, message: DescribeTopicPartitionsRequest) -> None:
    write_compact_array(write, message.topics, _write_request_topic_v0)
    write(INT32.pack(message.response_partition_limit))
    write_nullable_struct(write, message.cursor, _write_request_cursor_v0)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[DescribeTopicPartitionsResponsePartition, int]:
    error_code, partition_index, leader_id, leader_epoch = _HIII.unpack_from(body, position)
    position += 14
    replica_nodes, position = read_compact_numbers(body, position, INT32)
    isr_nodes, position = read_compact_numbers(body, position, INT32)
    eligible_leader_replicas, position = read_compact_nullable_numbers(body, position, INT32)
    last_known_elr, position = read_compact_nullable_numbers(body, position, INT32)
    offline_replicas, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTopicPartitionsResponsePartition(
        error_code=error_code,
        partition_index=partition_index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replica_nodes=replica_nodes,
        isr_nodes=isr_nodes,
        eligible_leader_replicas=eligible_leader_replicas,
        last_known_elr=last_known_elr,
        offline_replicas=offline_replicas,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: DescribeTopicPartitionsResponsePartition) -> None:
    write(_HIII.pack(message.error_code, message.partition_index, message.leader_id, message.leader_epoch))
    write_compact_numbers(write, message.replica_nodes, INT32)
    write_compact_numbers(write, message.isr_nodes, INT32)
    write_compact_nullable_numbers(write, message.eligible_leader_replicas, INT32)
    write_compact_nullable_numbers(write, message.last_known_elr, INT32)
    write_compact_numbers(write, message.offline_replicas, INT32)
    write(NO_TAGS)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    name, position = read_compact_nullable_string(body, position)
    topic_id, is_internal = _TF.unpack_from(body, position)
    position += 17
    partitions, position = read_compact_array(body, position, 20, _read_response_partition_v0)
    (topic_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTopicPartitionsResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        partitions=partitions,
        topic_authorized_operations=topic_authorized_operations,
    )
    return message, position


def _write_response_topic_v0(write: Write, message: DescribeTopicPartitionsResponseTopic) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.name)
    write(_TF.pack(uuid(message.topic_id), message.is_internal))
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write(_IX.pack(message.topic_authorized_operations))


def _read_response_next_cursor_v0(body: Buffer, position: int) -> tuple[DescribeTopicPartitionsResponseNextCursor, int]:
    topic_name, position = read_compact_string(body, position)
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTopicPartitionsResponseNextCursor(topic_name=topic_name, partition_index=partition_index)
    return message, position


def _write_response_next_cursor_v0(write: Write, message: DescribeTopicPartitionsResponseNextCursor) -> None:
    write_compact_string(write, message.topic_name)
    write(_IX.pack(message.partition_index))


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeTopicPartitionsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 26, _read_response_topic_v0)
    next_cursor, position = read_nullable_struct(body, position, _read_response_next_cursor_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTopicPartitionsResponse(throttle_time_ms=throttle_time_ms, topics=topics, next_cursor=next_cursor)
    return message, position


def _write_response_v0(write: Write, message: DescribeTopicPartitionsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write_nullable_struct(write, message.next_cursor, _write_response_next_cursor_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeTopicPartitionsRequest:
    return decode(_REQUEST_READERS, "DescribeTopicPartitionsRequest", buffer, position, end, version)


def encode_request(message: DescribeTopicPartitionsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeTopicPartitionsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeTopicPartitionsResponse:
    return decode(_RESPONSE_READERS, "DescribeTopicPartitionsResponse", buffer, position, end, version)


def encode_response(message: DescribeTopicPartitionsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeTopicPartitionsResponse", message, version)


def begin_response(message: DescribeTopicPartitionsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeTopicPartitionsResponse", message, version)
