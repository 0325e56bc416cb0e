"""AlterConfigs (33), versions 0 to 2.

Generated from wire/schemas/alter_configs.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT8, INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 33
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 2

_FX = Struct(">?x")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequestConfig:
    name: str = ""
    value: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequestResource:
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[AlterConfigsRequestConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequest:
    resources: tuple[AlterConfigsRequestResource, ...] = ()
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResponseResource:
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResponse:
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResponseResource, ...] = ()


def _read_request_config_v0(body: Buffer, position: int) -> tuple[AlterConfigsRequestConfig, int]:
    name, position = read_string(body, position)
    value, position = read_nullable_string(body, position)
    message = AlterConfigsRequestConfig(name=name, value=value)
    return message, position


def _write_request_config_v0(write: Write, message: AlterConfigsRequestConfig) -> None:
    write_string(write, message.name)
    write_nullable_string(write, message.value)


def _read_request_resource_v0(body: Buffer, position: int) -> tuple[AlterConfigsRequestResource, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    configs, position = read_array(body, position, 4, _read_request_config_v0)
    message = AlterConfigsRequestResource(resource_type=resource_type, resource_name=resource_name, configs=configs)
    return message, position


def _write_request_resource_v0(write: Write, message: AlterConfigsRequestResource) -> None:
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_array(write, message.configs, _write_request_config_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[AlterConfigsRequest, int]:
    resources, position = read_array(body, position, 7, _read_request_resource_v0)
    (validate_only,) = BOOL.unpack_from(body, position)
    position += 1
    message = AlterConfigsRequest(resources=resources, validate_only=validate_only)
    return message, position


def _write_request_v0(write: Write, message: AlterConfigsRequest) -> None:
    write_array(write, message.resources, _write_request_resource_v0)
    write(BOOL.pack(message.validate_only))


def _read_request_config_v2(body: Buffer, position: int) -> tuple[AlterConfigsRequestConfig, int]:
    name, position = read_compact_string(body, position)
    value, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterConfigsRequestConfig(name=name, value=value)
    return message, position


def _write_request_config_v2(write: Write, message: AlterConfigsRequestConfig) -> None:
    write_compact_string(write, message.name)
    write_compact_nullable_string(write, message.value)
    write(NO_TAGS)


def _read_request_resource_v2(body: Buffer, position: int) -> tuple[AlterConfigsRequestResource, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    configs, position = read_compact_array(body, position, 3, _read_request_config_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterConfigsRequestResource(resource_type=resource_type, resource_name=resource_name, configs=configs)
    return message, position


def _write_request_resource_v2(write: Write, message: AlterConfigsRequestResource) -> None:
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write_compact_array(write, message.configs, _write_request_config_v2)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[AlterConfigsRequest, int]:
    resources, position = read_compact_array(body, position, 4, _read_request_resource_v2)
    (validate_only,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterConfigsRequest(resources=resources, validate_only=validate_only)
    return message, position


def _write_request_v2(write: Write, message: AlterConfigsRequest) -> None:
    write_compact_array(write, message.resources, _write_request_resource_v2)
    write(_FX.pack(message.validate_only))


def _read_response_resource_v0(body: Buffer, position: int) -> tuple[AlterConfigsResponseResource, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    message = AlterConfigsResponseResource(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
    )
    return message, position


def _write_response_resource_v0(write: Write, message: AlterConfigsResponseResource) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)


def _read_response_v0(body: Buffer, position: int) -> tuple[AlterConfigsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_array(body, position, 7, _read_response_resource_v0)
    message = AlterConfigsResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v0(write: Write, message: AlterConfigsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.responses, _write_response_resource_v0)


def _read_response_resource_v2(body: Buffer, position: int) -> tuple[AlterConfigsResponseResource, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterConfigsResponseResource(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
    )
    return message, position


def _write_response_resource_v2(write: Write, message: AlterConfigsResponseResource) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[AlterConfigsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_compact_array(body, position, 6, _read_response_resource_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterConfigsResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v2(write: Write, message: AlterConfigsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.responses, _write_response_resource_v2)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AlterConfigsRequest:
    return decode(_REQUEST_READERS, "AlterConfigsRequest", buffer, position, end, version)


def encode_request(message: AlterConfigsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AlterConfigsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AlterConfigsResponse:
    return decode(_RESPONSE_READERS, "AlterConfigsResponse", buffer, position, end, version)


def encode_response(message: AlterConfigsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AlterConfigsResponse", message, version)


def begin_response(message: AlterConfigsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AlterConfigsResponse", message, version)
