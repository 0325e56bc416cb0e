"""CreateTopics (19), versions 0 to 7.

Generated from wire/schemas/create_topics.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_array,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    read_nullable_string,
    read_number,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_string,
    write_numbers,
    write_string,
    write_tags,
)

API_KEY = 19
MIN_VERSION = 0
MAX_VERSION = 7
FLEXIBLE_FROM = 5

_FBF = Struct(">?b?")
_FBFX = Struct(">?b?x")
_IF = Struct(">i?")
_IFX = Struct(">i?x")
_IH = Struct(">ih")
_TH = Struct(">16sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequestAssignment:
    partition_index: int = 0
    broker_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequestConfig:
    name: str = ""
    value: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequestTopic:
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: tuple[CreateTopicsRequestAssignment, ...] = ()
    configs: tuple[CreateTopicsRequestConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequest:
    topics: tuple[CreateTopicsRequestTopic, ...] = ()
    timeout_ms: int = 60000
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsResponseConfig:
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsResponseTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreateTopicsResponseConfig, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsResponse:
    throttle_time_ms: int = 0
    topics: tuple[CreateTopicsResponseTopic, ...] = ()


def _read_request_assignment_v0(body: Buffer, position: int) -> tuple[CreateTopicsRequestAssignment, int]:
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    broker_ids, position = read_numbers(body, position, INT32)
    message = CreateTopicsRequestAssignment(partition_index=partition_index, broker_ids=broker_ids)
    return message, position


def _write_request_assignment_v0(write: Write, message: CreateTopicsRequestAssignment) -> None:
    write(INT32.pack(message.partition_index))
    write_numbers(write, message.broker_ids, INT32)


def _read_request_config_v0(body: Buffer, position: int) -> tuple[CreateTopicsRequestConfig, int]:
    name, position = read_string(body, position)
    value, position = read_nullable_string(body, position)
    message = CreateTopicsRequestConfig(name=name, value=value)
    return message, position


def _write_request_config_v0(write: Write, message: CreateTopicsRequestConfig) -> None:
    write_string(write, message.name)
    write_nullable_string(write, message.value)


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[CreateTopicsRequestTopic, int]:
    name, position = read_string(body, position)
    num_partitions, replication_factor = _IH.unpack_from(body, position)
    position += 6
    assignments, position = read_array(body, position, 8, _read_request_assignment_v0)
    configs, position = read_array(body, position, 4, _read_request_config_v0)
    message = CreateTopicsRequestTopic(
        name=name,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        assignments=assignments,
        configs=configs,
    )
    return message, position


def _write_request_topic_v0(write: Write, message: CreateTopicsRequestTopic) -> None:
    write_string(write, message.name)
    write(_IH.pack(message.num_partitions, message.replication_factor))
    write_array(write, message.assignments, _write_request_assignment_v0)
    write_array(write, message.configs, _write_request_config_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[CreateTopicsRequest, int]:
    topics, position = read_array(body, position, 16, _read_request_topic_v0)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    return message, position


def _write_request_v0(write: Write, message: CreateTopicsRequest) -> None:
    write_array(write, message.topics, _write_request_topic_v0)
    write(INT32.pack(message.timeout_ms))


def _read_request_v1(body: Buffer, position: int) -> tuple[CreateTopicsRequest, int]:
    topics, position = read_array(body, position, 16, _read_request_topic_v0)
    timeout_ms, validate_only = _IF.unpack_from(body, position)
    position += 5
    message = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
    return message, position


def _write_request_v1(write: Write, message: CreateTopicsRequest) -> None:
    write_array(write, message.topics, _write_request_topic_v0)
    write(_IF.pack(message.timeout_ms, message.validate_only))


def _read_request_assignment_v5(body: Buffer, position: int) -> tuple[CreateTopicsRequestAssignment, int]:
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    broker_ids, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateTopicsRequestAssignment(partition_index=partition_index, broker_ids=broker_ids)
    return message, position


def _write_request_assignment_v5(write: Write, message: CreateTopicsRequestAssignment) -> None:
    write(INT32.pack(message.partition_index))
    write_compact_numbers(write, message.broker_ids, INT32)
    write(NO_TAGS)


def _read_request_config_v5(body: Buffer, position: int) -> tuple[CreateTopicsRequestConfig, int]:
    name, position = read_compact_string(body, position)
    value, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateTopicsRequestConfig(name=name, value=value)
    return message, position


def _write_request_config_v5(write: Write, message: CreateTopicsRequestConfig) -> None:
    write_compact_string(write, message.name)
    write_compact_nullable_string(write, message.value)
    write(NO_TAGS)


def _read_request_topic_v5(body: Buffer, position: int) -> tuple[CreateTopicsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    num_partitions, replication_factor = _IH.unpack_from(body, position)
    position += 6
    assignments, position = read_compact_array(body, position, 6, _read_request_assignment_v5)
    configs, position = read_compact_array(body, position, 3, _read_request_config_v5)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateTopicsRequestTopic(
        name=name,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        assignments=assignments,
        configs=configs,
    )
    return message, position


def _write_request_topic_v5(write: Write, message: CreateTopicsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write(_IH.pack(message.num_partitions, message.replication_factor))
    write_compact_array(write, message.assignments, _write_request_assignment_v5)
    write_compact_array(write, message.configs, _write_request_config_v5)
    write(NO_TAGS)


def _read_request_v5(body: Buffer, position: int) -> tuple[CreateTopicsRequest, int]:
    topics, position = read_compact_array(body, position, 10, _read_request_topic_v5)
    timeout_ms, validate_only = _IF.unpack_from(body, position)
    position += 5
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
    return message, position


def _write_request_v5(write: Write, message: CreateTopicsRequest) -> None:
    write_compact_array(write, message.topics, _write_request_topic_v5)
    write(_IFX.pack(message.timeout_ms, message.validate_only))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[CreateTopicsResponseTopic, int]:
    name, position = read_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = CreateTopicsResponseTopic(name=name, error_code=error_code)
    return message, position


def _write_response_topic_v0(write: Write, message: CreateTopicsResponseTopic) -> None:
    write_string(write, message.name)
    write(INT16.pack(message.error_code))


def _read_response_v0(body: Buffer, position: int) -> tuple[CreateTopicsResponse, int]:
    topics, position = read_array(body, position, 4, _read_response_topic_v0)
    message = CreateTopicsResponse(topics=topics)
    return message, position


def _write_response_v0(write: Write, message: CreateTopicsResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_topic_v1(body: Buffer, position: int) -> tuple[CreateTopicsResponseTopic, int]:
    name, position = read_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    message = CreateTopicsResponseTopic(name=name, error_code=error_code, error_message=error_message)
    return message, position


def _write_response_topic_v1(write: Write, message: CreateTopicsResponseTopic) -> None:
    write_string(write, message.name)
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)


def _read_response_v1(body: Buffer, position: int) -> tuple[CreateTopicsResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v1)
    message = CreateTopicsResponse(topics=topics)
    return message, position


def _write_response_v1(write: Write, message: CreateTopicsResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_v2(body: Buffer, position: int) -> tuple[CreateTopicsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v1)
    message = CreateTopicsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v2(write: Write, message: CreateTopicsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_config_v5(body: Buffer, position: int) -> tuple[CreateTopicsResponseConfig, int]:
    name, position = read_compact_string(body, position)
    value, position = read_compact_nullable_string(body, position)
    read_only, config_source, is_sensitive = _FBF.unpack_from(body, position)
    position += 3
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateTopicsResponseConfig(
        name=name,
        value=value,
        read_only=read_only,
        config_source=config_source,
        is_sensitive=is_sensitive,
    )
    return message, position


def _write_response_config_v5(write: Write, message: CreateTopicsResponseConfig) -> None:
    write_compact_string(write, message.name)
    write_compact_nullable_string(write, message.value)
    write(_FBFX.pack(message.read_only, message.config_source, message.is_sensitive))


def _read_response_topic_v5(body: Buffer, position: int) -> tuple[CreateTopicsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    num_partitions, replication_factor = _IH.unpack_from(body, position)
    position += 6
    configs, position = read_compact_nullable_array(body, position, 6, _read_response_config_v5)
    topic_config_error_code: int = 0
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            topic_config_error_code, position = read_number(body, position, INT16)
        else:
            position = stop
        end_tag(position, stop)
    message = CreateTopicsResponseTopic(
        name=name,
        error_code=error_code,
        error_message=error_message,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        configs=configs,
        topic_config_error_code=topic_config_error_code,
    )
    return message, position


def _write_response_topic_v5(write: Write, message: CreateTopicsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(_IH.pack(message.num_partitions, message.replication_factor))
    write_compact_nullable_array(write, message.configs, _write_response_config_v5)
    tagged: list[tuple[int, bytes]] = []
    if message.topic_config_error_code:
        parts: list[Buffer] = []
        parts.append(INT16.pack(message.topic_config_error_code))
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_v5(body: Buffer, position: int) -> tuple[CreateTopicsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 12, _read_response_topic_v5)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateTopicsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v5(write: Write, message: CreateTopicsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v5)
    write(NO_TAGS)


def _read_response_topic_v7(body: Buffer, position: int) -> tuple[CreateTopicsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    topic_id, error_code = _TH.unpack_from(body, position)
    position += 18
    error_message, position = read_compact_nullable_string(body, position)
    num_partitions, replication_factor = _IH.unpack_from(body, position)
    position += 6
    configs, position = read_compact_nullable_array(body, position, 6, _read_response_config_v5)
    topic_config_error_code: int = 0
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            topic_config_error_code, position = read_number(body, position, INT16)
        else:
            position = stop
        end_tag(position, stop)
    message = CreateTopicsResponseTopic(
        name=name,
        topic_id=topic_id,
        error_code=error_code,
        error_message=error_message,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        configs=configs,
        topic_config_error_code=topic_config_error_code,
    )
    return message, position


def _write_response_topic_v7(write: Write, message: CreateTopicsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write(_TH.pack(uuid(message.topic_id), message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(_IH.pack(message.num_partitions, message.replication_factor))
    write_compact_nullable_array(write, message.configs, _write_response_config_v5)
    tagged: list[tuple[int, bytes]] = []
    if message.topic_config_error_code:
        parts: list[Buffer] = []
        parts.append(INT16.pack(message.topic_config_error_code))
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_v7(body: Buffer, position: int) -> tuple[CreateTopicsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 28, _read_response_topic_v7)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateTopicsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v7(write: Write, message: CreateTopicsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v7)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v1,
    _read_request_v1,
    _read_request_v1,
    _read_request_v5,
    _read_request_v5,
    _read_request_v5,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v1,
    _write_request_v1,
    _write_request_v1,
    _write_request_v5,
    _write_request_v5,
    _write_request_v5,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> CreateTopicsRequest:
    return decode(_REQUEST_READERS, "CreateTopicsRequest", buffer, position, end, version)


def encode_request(message: CreateTopicsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "CreateTopicsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
    _read_response_v2,
    _read_response_v2,
    _read_response_v5,
    _read_response_v5,
    _read_response_v7,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
    _write_response_v2,
    _write_response_v2,
    _write_response_v5,
    _write_response_v5,
    _write_response_v7,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> CreateTopicsResponse:
    return decode(_RESPONSE_READERS, "CreateTopicsResponse", buffer, position, end, version)


def encode_response(message: CreateTopicsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "CreateTopicsResponse", message, version)


def begin_response(message: CreateTopicsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "CreateTopicsResponse", message, version)
