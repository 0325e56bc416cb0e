"""CreatePartitions (37), versions 0 to 3.

Generated from wire/schemas/create_partitions.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
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

API_KEY = 37
MIN_VERSION = 0
MAX_VERSION = 3
FLEXIBLE_FROM = 2

_IF = Struct(">i?")
_IFX = Struct(">i?x")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequestAssignment:
    broker_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequestTopic:
    name: str = ""
    count: int = 0
    assignments: tuple[CreatePartitionsRequestAssignment, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequest:
    topics: tuple[CreatePartitionsRequestTopic, ...] = ()
    timeout_ms: int = 0
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsResponseResult:
    name: str = ""
    error_code: int = 0
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsResponse:
    throttle_time_ms: int = 0
    results: tuple[CreatePartitionsResponseResult, ...] = ()


def _read_request_assignment_v0(body: Buffer, position: int) -> tuple[CreatePartitionsRequestAssignment, int]:
    broker_ids, position = read_numbers(body, position, INT32)
    message = CreatePartitionsRequestAssignment(broker_ids=broker_ids)
    return message, position


def _write_request_assignment_v0(write: Write, message: CreatePartitionsRequestAssignment) -> None:
    write_numbers(write, message.broker_ids, INT32)


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[CreatePartitionsRequestTopic, int]:
    name, position = read_string(body, position)
    (count,) = INT32.unpack_from(body, position)
    position += 4
    assignments, position = read_nullable_array(body, position, 4, _read_request_assignment_v0)
    message = CreatePartitionsRequestTopic(name=name, count=count, assignments=assignments)
    return message, position


def _write_request_topic_v0(write: Write, message: CreatePartitionsRequestTopic) -> None:
    write_string(write, message.name)
    write(INT32.pack(message.count))
    write_nullable_array(write, message.assignments, _write_request_assignment_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[CreatePartitionsRequest, int]:
    topics, position = read_array(body, position, 10, _read_request_topic_v0)
    timeout_ms, validate_only = _IF.unpack_from(body, position)
    position += 5
    message = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
    return message, position


def _write_request_v0(write: Write, message: CreatePartitionsRequest) -> None:
    write_array(write, message.topics, _write_request_topic_v0)
    write(_IF.pack(message.timeout_ms, message.validate_only))


def _read_request_assignment_v2(body: Buffer, position: int) -> tuple[CreatePartitionsRequestAssignment, int]:
    broker_ids, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreatePartitionsRequestAssignment(broker_ids=broker_ids)
    return message, position


def _write_request_assignment_v2(write: Write, message: CreatePartitionsRequestAssignment) -> None:
    write_compact_numbers(write, message.broker_ids, INT32)
    write(NO_TAGS)


def _read_request_topic_v2(body: Buffer, position: int) -> tuple[CreatePartitionsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    (count,) = INT32.unpack_from(body, position)
    position += 4
    assignments, position = read_compact_nullable_array(body, position, 2, _read_request_assignment_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreatePartitionsRequestTopic(name=name, count=count, assignments=assignments)
    return message, position


def _write_request_topic_v2(write: Write, message: CreatePartitionsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write(INT32.pack(message.count))
    write_compact_nullable_array(write, message.assignments, _write_request_assignment_v2)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[CreatePartitionsRequest, int]:
    topics, position = read_compact_array(body, position, 7, _read_request_topic_v2)
    timeout_ms, validate_only = _IF.unpack_from(body, position)
    position += 5
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
    return message, position


def _write_request_v2(write: Write, message: CreatePartitionsRequest) -> None:
    write_compact_array(write, message.topics, _write_request_topic_v2)
    write(_IFX.pack(message.timeout_ms, message.validate_only))


def _read_response_result_v0(body: Buffer, position: int) -> tuple[CreatePartitionsResponseResult, int]:
    name, position = read_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    message = CreatePartitionsResponseResult(name=name, error_code=error_code, error_message=error_message)
    return message, position


def _write_response_result_v0(write: Write, message: CreatePartitionsResponseResult) -> None:
    write_string(write, message.name)
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)


def _read_response_v0(body: Buffer, position: int) -> tuple[CreatePartitionsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_array(body, position, 6, _read_response_result_v0)
    message = CreatePartitionsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v0(write: Write, message: CreatePartitionsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results, _write_response_result_v0)


def _read_response_result_v2(body: Buffer, position: int) -> tuple[CreatePartitionsResponseResult, int]:
    name, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreatePartitionsResponseResult(name=name, error_code=error_code, error_message=error_message)
    return message, position


def _write_response_result_v2(write: Write, message: CreatePartitionsResponseResult) -> None:
    write_compact_string(write, message.name)
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[CreatePartitionsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_compact_array(body, position, 5, _read_response_result_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreatePartitionsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v2(write: Write, message: CreatePartitionsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.results, _write_response_result_v2)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> CreatePartitionsRequest:
    return decode(_REQUEST_READERS, "CreatePartitionsRequest", buffer, position, end, version)


def encode_request(message: CreatePartitionsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "CreatePartitionsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> CreatePartitionsResponse:
    return decode(_RESPONSE_READERS, "CreatePartitionsResponse", buffer, position, end, version)


def encode_response(message: CreatePartitionsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "CreatePartitionsResponse", message, version)


def begin_response(message: CreatePartitionsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "CreatePartitionsResponse", message, version)
