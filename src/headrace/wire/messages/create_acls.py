"""CreateAcls (30), versions 0 to 3.

Generated from wire/schemas/create_acls.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT8, INT16, INT32, Buffer
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

API_KEY = 30
MIN_VERSION = 0
MAX_VERSION = 3
FLEXIBLE_FROM = 2

_BB = Struct(">bb")
_BBX = Struct(">bbx")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsRequestCreation:
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsRequest:
    creations: tuple[CreateAclsRequestCreation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsResponseResult:
    error_code: int = 0
    error_message: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsResponse:
    throttle_time_ms: int = 0
    results: tuple[CreateAclsResponseResult, ...] = ()


def _read_request_creation_v0(body: Buffer, position: int) -> tuple[CreateAclsRequestCreation, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    principal, position = read_string(body, position)
    host, position = read_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = CreateAclsRequestCreation(
        resource_type=resource_type,
        resource_name=resource_name,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_creation_v0(write: Write, message: CreateAclsRequestCreation) -> None:
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_string(write, message.principal)
    write_string(write, message.host)
    write(_BB.pack(message.operation, message.permission_type))


def _read_request_v0(body: Buffer, position: int) -> tuple[CreateAclsRequest, int]:
    creations, position = read_array(body, position, 9, _read_request_creation_v0)
    message = CreateAclsRequest(creations=creations)
    return message, position


def _write_request_v0(write: Write, message: CreateAclsRequest) -> None:
    write_array(write, message.creations, _write_request_creation_v0)


def _read_request_creation_v1(body: Buffer, position: int) -> tuple[CreateAclsRequestCreation, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    (resource_pattern_type,) = INT8.unpack_from(body, position)
    position += 1
    principal, position = read_string(body, position)
    host, position = read_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = CreateAclsRequestCreation(
        resource_type=resource_type,
        resource_name=resource_name,
        resource_pattern_type=resource_pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_creation_v1(write: Write, message: CreateAclsRequestCreation) -> None:
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write(INT8.pack(message.resource_pattern_type))
    write_string(write, message.principal)
    write_string(write, message.host)
    write(_BB.pack(message.operation, message.permission_type))


def _read_request_v1(body: Buffer, position: int) -> tuple[CreateAclsRequest, int]:
    creations, position = read_array(body, position, 10, _read_request_creation_v1)
    message = CreateAclsRequest(creations=creations)
    return message, position


def _write_request_v1(write: Write, message: CreateAclsRequest) -> None:
    write_array(write, message.creations, _write_request_creation_v1)


def _read_request_creation_v2(body: Buffer, position: int) -> tuple[CreateAclsRequestCreation, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    (resource_pattern_type,) = INT8.unpack_from(body, position)
    position += 1
    principal, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateAclsRequestCreation(
        resource_type=resource_type,
        resource_name=resource_name,
        resource_pattern_type=resource_pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_creation_v2(write: Write, message: CreateAclsRequestCreation) -> None:
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write(INT8.pack(message.resource_pattern_type))
    write_compact_string(write, message.principal)
    write_compact_string(write, message.host)
    write(_BBX.pack(message.operation, message.permission_type))


def _read_request_v2(body: Buffer, position: int) -> tuple[CreateAclsRequest, int]:
    creations, position = read_compact_array(body, position, 8, _read_request_creation_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateAclsRequest(creations=creations)
    return message, position


def _write_request_v2(write: Write, message: CreateAclsRequest) -> None:
    write_compact_array(write, message.creations, _write_request_creation_v2)
    write(NO_TAGS)


def _read_response_result_v0(body: Buffer, position: int) -> tuple[CreateAclsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    message = CreateAclsResponseResult(error_code=error_code, error_message=error_message)
    return message, position


def _write_response_result_v0(write: Write, message: CreateAclsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)


def _read_response_v0(body: Buffer, position: int) -> tuple[CreateAclsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_array(body, position, 4, _read_response_result_v0)
    message = CreateAclsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v0(write: Write, message: CreateAclsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results, _write_response_result_v0)


def _read_response_result_v2(body: Buffer, position: int) -> tuple[CreateAclsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateAclsResponseResult(error_code=error_code, error_message=error_message)
    return message, position


def _write_response_result_v2(write: Write, message: CreateAclsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[CreateAclsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_compact_array(body, position, 4, _read_response_result_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateAclsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v2(write: Write, message: CreateAclsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.results, _write_response_result_v2)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> CreateAclsRequest:
    return decode(_REQUEST_READERS, "CreateAclsRequest", buffer, position, end, version)


def encode_request(message: CreateAclsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "CreateAclsRequest", message, version)


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


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> CreateAclsResponse:
    return decode(_RESPONSE_READERS, "CreateAclsResponse", buffer, position, end, version)


def encode_response(message: CreateAclsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "CreateAclsResponse", message, version)


def begin_response(message: CreateAclsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "CreateAclsResponse", message, version)
