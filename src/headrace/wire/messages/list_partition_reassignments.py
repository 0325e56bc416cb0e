"""ListPartitionReassignments (46), versions 0 to 0.

Generated from wire/schemas/list_partition_reassignments.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
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
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)

API_KEY = 46
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsRequestTopic:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsRequest:
    timeout_ms: int = 60000
    topics: tuple[ListPartitionReassignmentsRequestTopic, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsResponsePartition:
    partition_index: int = 0
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsResponseTopic:
    name: str = ""
    partitions: tuple[ListPartitionReassignmentsResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: tuple[ListPartitionReassignmentsResponseTopic, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[ListPartitionReassignmentsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partition_indexes, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListPartitionReassignmentsRequestTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_topic_v0(write: Write, message: ListPartitionReassignmentsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_numbers(write, message.partition_indexes, INT32)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[ListPartitionReassignmentsRequest, int]:
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_nullable_array(body, position, 3, _read_request_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: ListPartitionReassignmentsRequest) -> None:
    write(INT32.pack(message.timeout_ms))
    write_compact_nullable_array(write, message.topics, _write_request_topic_v0)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[ListPartitionReassignmentsResponsePartition, int]:
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    replicas, position = read_compact_numbers(body, position, INT32)
    adding_replicas, position = read_compact_numbers(body, position, INT32)
    removing_replicas, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListPartitionReassignmentsResponsePartition(
        partition_index=partition_index,
        replicas=replicas,
        adding_replicas=adding_replicas,
        removing_replicas=removing_replicas,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: ListPartitionReassignmentsResponsePartition) -> None:
    write(INT32.pack(message.partition_index))
    write_compact_numbers(write, message.replicas, INT32)
    write_compact_numbers(write, message.adding_replicas, INT32)
    write_compact_numbers(write, message.removing_replicas, INT32)
    write(NO_TAGS)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[ListPartitionReassignmentsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 8, _read_response_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListPartitionReassignmentsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: ListPartitionReassignmentsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ListPartitionReassignmentsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListPartitionReassignmentsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        topics=topics,
    )
    return message, position


def _write_response_v0(write: Write, message: ListPartitionReassignmentsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ListPartitionReassignmentsRequest:
    return decode(_REQUEST_READERS, "ListPartitionReassignmentsRequest", buffer, position, end, version)


def encode_request(message: ListPartitionReassignmentsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ListPartitionReassignmentsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ListPartitionReassignmentsResponse:
    return decode(_RESPONSE_READERS, "ListPartitionReassignmentsResponse", buffer, position, end, version)


def encode_response(message: ListPartitionReassignmentsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ListPartitionReassignmentsResponse", message, version)


def begin_response(message: ListPartitionReassignmentsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ListPartitionReassignmentsResponse", message, version)
