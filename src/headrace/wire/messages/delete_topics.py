"""DeleteTopics (20), versions 0 to 6.

Generated from wire/schemas/delete_topics.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
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
    write_compact_nullable_string,
    write_compact_string,
    write_string,
)

API_KEY = 20
MIN_VERSION = 0
MAX_VERSION = 6
FLEXIBLE_FROM = 4

_HX = Struct(">hx")
_IX = Struct(">ix")
_TH = Struct(">16sh")
_TX = Struct(">16sx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequestTopic:
    name: str | None = None
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    topics: tuple[DeleteTopicsRequestTopic, ...] = ()
    topic_names: tuple[str, ...] = ()
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponseTopic:
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponse:
    throttle_time_ms: int = 0
    responses: tuple[DeleteTopicsResponseTopic, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[DeleteTopicsRequest, int]:
    topic_names, position = read_array(body, position, 2, read_string)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = DeleteTopicsRequest(topic_names=topic_names, timeout_ms=timeout_ms)
    return message, position


def _write_request_v0(write: Write, message: DeleteTopicsRequest) -> None:
    write_array(write, message.topic_names, write_string)
    write(INT32.pack(message.timeout_ms))


def _read_request_v4(body: Buffer, position: int) -> tuple[DeleteTopicsRequest, int]:
    topic_names, position = read_compact_array(body, position, 1, read_compact_string)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsRequest(topic_names=topic_names, timeout_ms=timeout_ms)
    return message, position


def _write_request_v4(write: Write, message: DeleteTopicsRequest) -> None:
    write_compact_array(write, message.topic_names, write_compact_string)
    write(_IX.pack(message.timeout_ms))


def _read_request_topic_v6(body: Buffer, position: int) -> tuple[DeleteTopicsRequestTopic, int]:
    name, position = read_compact_nullable_string(body, position)
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsRequestTopic(name=name, topic_id=topic_id)
    return message, position


def _write_request_topic_v6(write: Write, message: DeleteTopicsRequestTopic) -> None:
    write_compact_nullable_string(write, message.name)
    write(_TX.pack(uuid(message.topic_id)))


def _read_request_v6(body: Buffer, position: int) -> tuple[DeleteTopicsRequest, int]:
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v6)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    return message, position


def _write_request_v6(write: Write, message: DeleteTopicsRequest) -> None:
    write_compact_array(write, message.topics, _write_request_topic_v6)
    write(_IX.pack(message.timeout_ms))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[DeleteTopicsResponseTopic, int]:
    name, position = read_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = DeleteTopicsResponseTopic(name=name, error_code=error_code)
    return message, position


def _write_response_topic_v0(write: Write, message: DeleteTopicsResponseTopic) -> None:
    write_string(write, present(message.name))
    write(INT16.pack(message.error_code))


def _read_response_v0(body: Buffer, position: int) -> tuple[DeleteTopicsResponse, int]:
    responses, position = read_array(body, position, 4, _read_response_topic_v0)
    message = DeleteTopicsResponse(responses=responses)
    return message, position


def _write_response_v0(write: Write, message: DeleteTopicsResponse) -> None:
    write_array(write, message.responses, _write_response_topic_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[DeleteTopicsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_array(body, position, 4, _read_response_topic_v0)
    message = DeleteTopicsResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v1(write: Write, message: DeleteTopicsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.responses, _write_response_topic_v0)


def _read_response_topic_v4(body: Buffer, position: int) -> tuple[DeleteTopicsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsResponseTopic(name=name, error_code=error_code)
    return message, position


def _write_response_topic_v4(write: Write, message: DeleteTopicsResponseTopic) -> None:
    write_compact_string(write, present(message.name))
    write(_HX.pack(message.error_code))


def _read_response_v4(body: Buffer, position: int) -> tuple[DeleteTopicsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_compact_array(body, position, 4, _read_response_topic_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v4(write: Write, message: DeleteTopicsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.responses, _write_response_topic_v4)
    write(NO_TAGS)


def _read_response_topic_v5(body: Buffer, position: int) -> tuple[DeleteTopicsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsResponseTopic(name=name, error_code=error_code, error_message=error_message)
    return message, position


def _write_response_topic_v5(write: Write, message: DeleteTopicsResponseTopic) -> None:
    write_compact_string(write, present(message.name))
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_v5(body: Buffer, position: int) -> tuple[DeleteTopicsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_compact_array(body, position, 5, _read_response_topic_v5)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v5(write: Write, message: DeleteTopicsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.responses, _write_response_topic_v5)
    write(NO_TAGS)


def _read_response_topic_v6(body: Buffer, position: int) -> tuple[DeleteTopicsResponseTopic, int]:
    name, position = read_compact_nullable_string(body, position)
    topic_id, error_code = _TH.unpack_from(body, position)
    position += 18
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsResponseTopic(
        name=name,
        topic_id=topic_id,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_topic_v6(write: Write, message: DeleteTopicsResponseTopic) -> None:
    write_compact_nullable_string(write, message.name)
    write(_TH.pack(uuid(message.topic_id), message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_v6(body: Buffer, position: int) -> tuple[DeleteTopicsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_compact_array(body, position, 21, _read_response_topic_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteTopicsResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v6(write: Write, message: DeleteTopicsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.responses, _write_response_topic_v6)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v4,
    _read_request_v4,
    _read_request_v6,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v4,
    _write_request_v4,
    _write_request_v6,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DeleteTopicsRequest:
    return decode(_REQUEST_READERS, "DeleteTopicsRequest", buffer, position, end, version)


def encode_request(message: DeleteTopicsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DeleteTopicsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v1,
    _read_response_v4,
    _read_response_v5,
    _read_response_v6,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v1,
    _write_response_v4,
    _write_response_v5,
    _write_response_v6,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DeleteTopicsResponse:
    return decode(_RESPONSE_READERS, "DeleteTopicsResponse", buffer, position, end, version)


def encode_response(message: DeleteTopicsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DeleteTopicsResponse", message, version)


def begin_response(message: DeleteTopicsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DeleteTopicsResponse", message, version)
