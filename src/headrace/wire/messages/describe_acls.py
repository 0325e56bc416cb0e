"""DescribeAcls (29), versions 0 to 3.

Generated from wire/schemas/describe_acls.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT8, Buffer
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

API_KEY = 29
MIN_VERSION = 0
MAX_VERSION = 3
FLEXIBLE_FROM = 2

_BB = Struct(">bb")
_BBX = Struct(">bbx")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsRequest:
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResponseAcl:
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResponseResource:
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: tuple[DescribeAclsResponseAcl, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: tuple[DescribeAclsResponseResource, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeAclsRequest, int]:
    (resource_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    resource_name_filter, position = read_nullable_string(body, position)
    principal_filter, position = read_nullable_string(body, position)
    host_filter, position = read_nullable_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = DescribeAclsRequest(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_v0(write: Write, message: DescribeAclsRequest) -> None:
    write(INT8.pack(message.resource_type_filter))
    write_nullable_string(write, message.resource_name_filter)
    write_nullable_string(write, message.principal_filter)
    write_nullable_string(write, message.host_filter)
    write(_BB.pack(message.operation, message.permission_type))


def _read_request_v1(body: Buffer, position: int) -> tuple[DescribeAclsRequest, int]:
    (resource_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    resource_name_filter, position = read_nullable_string(body, position)
    (pattern_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    principal_filter, position = read_nullable_string(body, position)
    host_filter, position = read_nullable_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = DescribeAclsRequest(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        pattern_type_filter=pattern_type_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_v1(write: Write, message: DescribeAclsRequest) -> None:
    write(INT8.pack(message.resource_type_filter))
    write_nullable_string(write, message.resource_name_filter)
    write(INT8.pack(message.pattern_type_filter))
    write_nullable_string(write, message.principal_filter)
    write_nullable_string(write, message.host_filter)
    write(_BB.pack(message.operation, message.permission_type))


def _read_request_v2(body: Buffer, position: int) -> tuple[DescribeAclsRequest, int]:
    (resource_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    resource_name_filter, position = read_compact_nullable_string(body, position)
    (pattern_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    principal_filter, position = read_compact_nullable_string(body, position)
    host_filter, position = read_compact_nullable_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeAclsRequest(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        pattern_type_filter=pattern_type_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_v2(write: Write, message: DescribeAclsRequest) -> None:
    write(INT8.pack(message.resource_type_filter))
    write_compact_nullable_string(write, message.resource_name_filter)
    write(INT8.pack(message.pattern_type_filter))
    write_compact_nullable_string(write, message.principal_filter)
    write_compact_nullable_string(write, message.host_filter)
    write(_BBX.pack(message.operation, message.permission_type))


def _read_response_acl_v0(body: Buffer, position: int) -> tuple[DescribeAclsResponseAcl, int]:
    principal, position = read_string(body, position)
    host, position = read_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = DescribeAclsResponseAcl(
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_response_acl_v0(write: Write, message: DescribeAclsResponseAcl) -> None:
    write_string(write, message.principal)
    write_string(write, message.host)
    write(_BB.pack(message.operation, message.permission_type))


def _read_response_resource_v0(body: Buffer, position: int) -> tuple[DescribeAclsResponseResource, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    acls, position = read_array(body, position, 6, _read_response_acl_v0)
    message = DescribeAclsResponseResource(resource_type=resource_type, resource_name=resource_name, acls=acls)
    return message, position


def _write_response_resource_v0(write: Write, message: DescribeAclsResponseResource) -> None:
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_array(write, message.acls, _write_response_acl_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeAclsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_nullable_string(body, position)
    resources, position = read_array(body, position, 7, _read_response_resource_v0)
    message = DescribeAclsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        resources=resources,
    )
    return message, position


def _write_response_v0(write: Write, message: DescribeAclsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_nullable_string(write, message.error_message)
    write_array(write, message.resources, _write_response_resource_v0)


def _read_response_resource_v1(body: Buffer, position: int) -> tuple[DescribeAclsResponseResource, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    (pattern_type,) = INT8.unpack_from(body, position)
    position += 1
    acls, position = read_array(body, position, 6, _read_response_acl_v0)
    message = DescribeAclsResponseResource(
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        acls=acls,
    )
    return message, position


def _write_response_resource_v1(write: Write, message: DescribeAclsResponseResource) -> None:
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write(INT8.pack(message.pattern_type))
    write_array(write, message.acls, _write_response_acl_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[DescribeAclsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_nullable_string(body, position)
    resources, position = read_array(body, position, 8, _read_response_resource_v1)
    message = DescribeAclsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        resources=resources,
    )
    return message, position


def _write_response_v1(write: Write, message: DescribeAclsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_nullable_string(write, message.error_message)
    write_array(write, message.resources, _write_response_resource_v1)


def _read_response_acl_v2(body: Buffer, position: int) -> tuple[DescribeAclsResponseAcl, int]:
    principal, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeAclsResponseAcl(
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_response_acl_v2(write: Write, message: DescribeAclsResponseAcl) -> None:
    write_compact_string(write, message.principal)
    write_compact_string(write, message.host)
    write(_BBX.pack(message.operation, message.permission_type))


def _read_response_resource_v2(body: Buffer, position: int) -> tuple[DescribeAclsResponseResource, int]:
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    (pattern_type,) = INT8.unpack_from(body, position)
    position += 1
    acls, position = read_compact_array(body, position, 5, _read_response_acl_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeAclsResponseResource(
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        acls=acls,
    )
    return message, position


def _write_response_resource_v2(write: Write, message: DescribeAclsResponseResource) -> None:
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write(INT8.pack(message.pattern_type))
    write_compact_array(write, message.acls, _write_response_acl_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[DescribeAclsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    resources, position = read_compact_array(body, position, 5, _read_response_resource_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeAclsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        resources=resources,
    )
    return message, position


def _write_response_v2(write: Write, message: DescribeAclsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.resources, _write_response_resource_v2)
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


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeAclsRequest:
    return decode(_REQUEST_READERS, "DescribeAclsRequest", buffer, position, end, version)


def encode_request(message: DescribeAclsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeAclsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeAclsResponse:
    return decode(_RESPONSE_READERS, "DescribeAclsResponse", buffer, position, end, version)


def encode_response(message: DescribeAclsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeAclsResponse", message, version)


def begin_response(message: DescribeAclsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeAclsResponse", message, version)
