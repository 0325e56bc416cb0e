"""ElectLeaders (43), versions 0 to 2.

Generated from wire/schemas/elect_leaders.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT8, INT32, Buffer
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

API_KEY = 43
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 2

_IH = Struct(">ih")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequestTopic:
    topic: str = ""
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest:
    election_type: int = 0
    topic_partitions: tuple[ElectLeadersRequestTopic, ...] | None = ()
    timeout_ms: int = 60000


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponsePartition:
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponseTopic:
    topic: str = ""
    partition_result: tuple[ElectLeadersResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: tuple[ElectLeadersResponseTopic, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[ElectLeadersRequestTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_numbers(body, position, INT32)
    message = ElectLeadersRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: ElectLeadersRequestTopic) -> None:
    write_string(write, message.topic)
    write_numbers(write, message.partitions, INT32)


def _read_request_v0(body: Buffer, position: int) -> tuple[ElectLeadersRequest, int]:
    topic_partitions, position = read_nullable_array(body, position, 6, _read_request_topic_v0)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = ElectLeadersRequest(topic_partitions=topic_partitions, timeout_ms=timeout_ms)
    return message, position


def _write_request_v0(write: Write, message: ElectLeadersRequest) -> None:
    write_nullable_array(write, message.topic_partitions, _write_request_topic_v0)
    write(INT32.pack(message.timeout_ms))


def _read_request_v1(body: Buffer, position: int) -> tuple[ElectLeadersRequest, int]:
    (election_type,) = INT8.unpack_from(body, position)
    position += 1
    topic_partitions, position = read_nullable_array(body, position, 6, _read_request_topic_v0)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = ElectLeadersRequest(election_type=election_type, topic_partitions=topic_partitions, timeout_ms=timeout_ms)
    return message, position


def _write_request_v1(write: Write, message: ElectLeadersRequest) -> None:
    write(INT8.pack(message.election_type))
    write_nullable_array(write, message.topic_partitions, _write_request_topic_v0)
    write(INT32.pack(message.timeout_ms))


def _read_request_topic_v2(body: Buffer, position: int) -> tuple[ElectLeadersRequestTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ElectLeadersRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v2(write: Write, message: ElectLeadersRequestTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[ElectLeadersRequest, int]:
    (election_type,) = INT8.unpack_from(body, position)
    position += 1
    topic_partitions, position = read_compact_nullable_array(body, position, 3, _read_request_topic_v2)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = ElectLeadersRequest(election_type=election_type, topic_partitions=topic_partitions, timeout_ms=timeout_ms)
    return message, position


def _write_request_v2(write: Write, message: ElectLeadersRequest) -> None:
    write(INT8.pack(message.election_type))
    write_compact_nullable_array(write, message.topic_partitions, _write_request_topic_v2)
    write(_IX.pack(message.timeout_ms))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[ElectLeadersResponsePartition, int]:
    partition_id, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_nullable_string(body, position)
    message = ElectLeadersResponsePartition(
        partition_id=partition_id,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: ElectLeadersResponsePartition) -> None:
    write(_IH.pack(message.partition_id, message.error_code))
    write_nullable_string(write, message.error_message)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[ElectLeadersResponseTopic, int]:
    topic, position = read_string(body, position)
    partition_result, position = read_array(body, position, 8, _read_response_partition_v0)
    message = ElectLeadersResponseTopic(topic=topic, partition_result=partition_result)
    return message, position


def _write_response_topic_v0(write: Write, message: ElectLeadersResponseTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partition_result, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[ElectLeadersResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    replica_election_results, position = read_array(body, position, 6, _read_response_topic_v0)
    message = ElectLeadersResponse(throttle_time_ms=throttle_time_ms, replica_election_results=replica_election_results)
    return message, position


def _write_response_v0(write: Write, message: ElectLeadersResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.replica_election_results, _write_response_topic_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[ElectLeadersResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    replica_election_results, position = read_array(body, position, 6, _read_response_topic_v0)
    message = ElectLeadersResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        replica_election_results=replica_election_results,
    )
    return message, position


def _write_response_v1(write: Write, message: ElectLeadersResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_array(write, message.replica_election_results, _write_response_topic_v0)


def _read_response_partition_v2(body: Buffer, position: int) -> tuple[ElectLeadersResponsePartition, int]:
    partition_id, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ElectLeadersResponsePartition(
        partition_id=partition_id,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_partition_v2(write: Write, message: ElectLeadersResponsePartition) -> None:
    write(_IH.pack(message.partition_id, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_topic_v2(body: Buffer, position: int) -> tuple[ElectLeadersResponseTopic, int]:
    topic, position = read_compact_string(body, position)
    partition_result, position = read_compact_array(body, position, 8, _read_response_partition_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ElectLeadersResponseTopic(topic=topic, partition_result=partition_result)
    return message, position


def _write_response_topic_v2(write: Write, message: ElectLeadersResponseTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_array(write, message.partition_result, _write_response_partition_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[ElectLeadersResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    replica_election_results, position = read_compact_array(body, position, 3, _read_response_topic_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ElectLeadersResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        replica_election_results=replica_election_results,
    )
    return message, position


def _write_response_v2(write: Write, message: ElectLeadersResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.replica_election_results, _write_response_topic_v2)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ElectLeadersRequest:
    return decode(_REQUEST_READERS, "ElectLeadersRequest", buffer, position, end, version)


def encode_request(message: ElectLeadersRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ElectLeadersRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ElectLeadersResponse:
    return decode(_RESPONSE_READERS, "ElectLeadersResponse", buffer, position, end, version)


def encode_response(message: ElectLeadersResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ElectLeadersResponse", message, version)


def begin_response(message: ElectLeadersResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ElectLeadersResponse", message, version)
