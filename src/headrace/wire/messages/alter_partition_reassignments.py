"""AlterPartitionReassignments (45), versions 0 to 1.

Generated from wire/schemas/alter_partition_reassignments.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_numbers,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_nullable_numbers,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 45
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 0

_IF = Struct(">i?")
_IFH = Struct(">i?h")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequestPartition:
    partition_index: int = 0
    replicas: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequestTopic:
    name: str = ""
    partitions: tuple[AlterPartitionReassignmentsRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: tuple[AlterPartitionReassignmentsRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponseTopic:
    name: str = ""
    partitions: tuple[AlterPartitionReassignmentsResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: tuple[AlterPartitionReassignmentsResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[AlterPartitionReassignmentsRequestPartition, int]:
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    replicas, position = read_compact_nullable_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsRequestPartition(partition_index=partition_index, replicas=replicas)
    return message, position


def _write_request_partition_v0(write: Write, message: AlterPartitionReassignmentsRequestPartition) -> None:
    write(INT32.pack(message.partition_index))
    write_compact_nullable_numbers(write, message.replicas, INT32)
    write(NO_TAGS)


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[AlterPartitionReassignmentsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 6, _read_request_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: AlterPartitionReassignmentsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_request_partition_v0)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[AlterPartitionReassignmentsRequest, int]:
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: AlterPartitionReassignmentsRequest) -> None:
    write(INT32.pack(message.timeout_ms))
    write_compact_array(write, message.topics, _write_request_topic_v0)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[AlterPartitionReassignmentsRequest, int]:
    timeout_ms, allow_replication_factor_change = _IF.unpack_from(body, position)
    position += 5
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_replication_factor_change,
        topics=topics,
    )
    return message, position


def _write_request_v1(write: Write, message: AlterPartitionReassignmentsRequest) -> None:
    write(_IF.pack(message.timeout_ms, message.allow_replication_factor_change))
    write_compact_array(write, message.topics, _write_request_topic_v0)
    write(NO_TAGS)


def _read_response_partition_v0(
    body: Buffer, position: int
) -> tuple[AlterPartitionReassignmentsResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: AlterPartitionReassignmentsResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[AlterPartitionReassignmentsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 8, _read_response_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: AlterPartitionReassignmentsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[AlterPartitionReassignmentsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    responses, position = read_compact_array(body, position, 3, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        responses=responses,
    )
    return message, position


def _write_response_v0(write: Write, message: AlterPartitionReassignmentsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.responses, _write_response_topic_v0)
    write(NO_TAGS)


def _read_response_v1(body: Buffer, position: int) -> tuple[AlterPartitionReassignmentsResponse, int]:
    throttle_time_ms, allow_replication_factor_change, error_code = _IFH.unpack_from(body, position)
    position += 7
    error_message, position = read_compact_nullable_string(body, position)
    responses, position = read_compact_array(body, position, 3, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionReassignmentsResponse(
        throttle_time_ms=throttle_time_ms,
        allow_replication_factor_change=allow_replication_factor_change,
        error_code=error_code,
        error_message=error_message,
        responses=responses,
    )
    return message, position


def _write_response_v1(write: Write, message: AlterPartitionReassignmentsResponse) -> None:
    write(_IFH.pack(message.throttle_time_ms, message.allow_replication_factor_change, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.responses, _write_response_topic_v0)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AlterPartitionReassignmentsRequest:
    return decode(_REQUEST_READERS, "AlterPartitionReassignmentsRequest", buffer, position, end, version)


def encode_request(message: AlterPartitionReassignmentsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AlterPartitionReassignmentsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AlterPartitionReassignmentsResponse:
    return decode(_RESPONSE_READERS, "AlterPartitionReassignmentsResponse", buffer, position, end, version)


def encode_response(message: AlterPartitionReassignmentsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AlterPartitionReassignmentsResponse", message, version)


def begin_response(message: AlterPartitionReassignmentsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AlterPartitionReassignmentsResponse", message, version)
