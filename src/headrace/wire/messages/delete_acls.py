"""DeleteAcls (31), versions 0 to 3.

Generated from wire/schemas/delete_acls.py by `python -m headrace.wire.generator`.
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

API_KEY = 31
MIN_VERSION = 0
MAX_VERSION = 3
FLEXIBLE_FROM = 2

_BB = Struct(">bb")
_BBX = Struct(">bbx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsRequestFilter:
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsRequest:
    filters: tuple[DeleteAclsRequestFilter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsResponseMatchingAcl:
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsResponseFilterResult:
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: tuple[DeleteAclsResponseMatchingAcl, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsResponse:
    throttle_time_ms: int = 0
    filter_results: tuple[DeleteAclsResponseFilterResult, ...] = ()


def _read_request_filter_v0(body: Buffer, position: int) -> tuple[DeleteAclsRequestFilter, int]:
    (resource_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    resource_name_filter, position = read_nullable_string(body, position)
    principal_filter, position = read_nullable_string(body, position)
    host_filter, position = read_nullable_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = DeleteAclsRequestFilter(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_filter_v0(write: Write, message: DeleteAclsRequestFilter) -> None:
    write(INT8.pack(message.resource_type_filter))
    write_nullable_string(write, message.resource_name_filter)
    write_nullable_string(write, message.principal_filter)
    write_nullable_string(write, message.host_filter)
    write(_BB.pack(message.operation, message.permission_type))


def _read_request_v0(body: Buffer, position: int) -> tuple[DeleteAclsRequest, int]:
    filters, position = read_array(body, position, 9, _read_request_filter_v0)
    message = DeleteAclsRequest(filters=filters)
    return message, position


def _write_request_v0(write: Write, message: DeleteAclsRequest) -> None:
    write_array(write, message.filters, _write_request_filter_v0)


def _read_request_filter_v1(body: Buffer, position: int) -> tuple[DeleteAclsRequestFilter, int]:
    (resource_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    resource_name_filter, position = read_nullable_string(body, position)
    (pattern_type_filter,) = INT8.unpack_from(body, position)
    position += 1
    principal_filter, position = read_nullable_string(body, position)
    host_filter, position = read_nullable_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = DeleteAclsRequestFilter(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        pattern_type_filter=pattern_type_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_filter_v1(write: Write, message: DeleteAclsRequestFilter) -> None:
    write(INT8.pack(message.resource_type_filter))
    write_nullable_string(write, message.resource_name_filter)
    write(INT8.pack(message.pattern_type_filter))
    write_nullable_string(write, message.principal_filter)
    write_nullable_string(write, message.host_filter)
    write(_BB.pack(message.operation, message.permission_type))


def _read_request_v1(body: Buffer, position: int) -> tuple[DeleteAclsRequest, int]:
    filters, position = read_array(body, position, 10, _read_request_filter_v1)
    message = DeleteAclsRequest(filters=filters)
    return message, position


def _write_request_v1(write: Write, message: DeleteAclsRequest) -> None:
    write_array(write, message.filters, _write_request_filter_v1)


def _read_request_filter_v2(body: Buffer, position: int) -> tuple[DeleteAclsRequestFilter, int]:
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
    message = DeleteAclsRequestFilter(
        resource_type_filter=resource_type_filter,
        resource_name_filter=resource_name_filter,
        pattern_type_filter=pattern_type_filter,
        principal_filter=principal_filter,
        host_filter=host_filter,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_request_filter_v2(write: Write, message: DeleteAclsRequestFilter) -> None:
    write(INT8.pack(message.resource_type_filter))
    write_compact_nullable_string(write, message.resource_name_filter)
    write(INT8.pack(message.pattern_type_filter))
    write_compact_nullable_string(write, message.principal_filter)
    write_compact_nullable_string(write, message.host_filter)
    write(_BBX.pack(message.operation, message.permission_type))


def _read_request_v2(body: Buffer, position: int) -> tuple[DeleteAclsRequest, int]:
    filters, position = read_compact_array(body, position, 8, _read_request_filter_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteAclsRequest(filters=filters)
    return message, position


def _write_request_v2(write: Write, message: DeleteAclsRequest) -> None:
    write_compact_array(write, message.filters, _write_request_filter_v2)
    write(NO_TAGS)


def _read_response_matching_acl_v0(body: Buffer, position: int) -> tuple[DeleteAclsResponseMatchingAcl, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    principal, position = read_string(body, position)
    host, position = read_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = DeleteAclsResponseMatchingAcl(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_response_matching_acl_v0(write: Write, message: DeleteAclsResponseMatchingAcl) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write_string(write, message.principal)
    write_string(write, message.host)
    write(_BB.pack(message.operation, message.permission_type))


def _read_response_filter_result_v0(body: Buffer, position: int) -> tuple[DeleteAclsResponseFilterResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    matching_acls, position = read_array(body, position, 13, _read_response_matching_acl_v0)
    message = DeleteAclsResponseFilterResult(
        error_code=error_code,
        error_message=error_message,
        matching_acls=matching_acls,
    )
    return message, position


def _write_response_filter_result_v0(write: Write, message: DeleteAclsResponseFilterResult) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write_array(write, message.matching_acls, _write_response_matching_acl_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[DeleteAclsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    filter_results, position = read_array(body, position, 8, _read_response_filter_result_v0)
    message = DeleteAclsResponse(throttle_time_ms=throttle_time_ms, filter_results=filter_results)
    return message, position


def _write_response_v0(write: Write, message: DeleteAclsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.filter_results, _write_response_filter_result_v0)


def _read_response_matching_acl_v1(body: Buffer, position: int) -> tuple[DeleteAclsResponseMatchingAcl, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_string(body, position)
    (pattern_type,) = INT8.unpack_from(body, position)
    position += 1
    principal, position = read_string(body, position)
    host, position = read_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    message = DeleteAclsResponseMatchingAcl(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_response_matching_acl_v1(write: Write, message: DeleteAclsResponseMatchingAcl) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_string(write, message.resource_name)
    write(INT8.pack(message.pattern_type))
    write_string(write, message.principal)
    write_string(write, message.host)
    write(_BB.pack(message.operation, message.permission_type))


def _read_response_filter_result_v1(body: Buffer, position: int) -> tuple[DeleteAclsResponseFilterResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    matching_acls, position = read_array(body, position, 14, _read_response_matching_acl_v1)
    message = DeleteAclsResponseFilterResult(
        error_code=error_code,
        error_message=error_message,
        matching_acls=matching_acls,
    )
    return message, position


def _write_response_filter_result_v1(write: Write, message: DeleteAclsResponseFilterResult) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write_array(write, message.matching_acls, _write_response_matching_acl_v1)


def _read_response_v1(body: Buffer, position: int) -> tuple[DeleteAclsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    filter_results, position = read_array(body, position, 8, _read_response_filter_result_v1)
    message = DeleteAclsResponse(throttle_time_ms=throttle_time_ms, filter_results=filter_results)
    return message, position


def _write_response_v1(write: Write, message: DeleteAclsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.filter_results, _write_response_filter_result_v1)


def _read_response_matching_acl_v2(body: Buffer, position: int) -> tuple[DeleteAclsResponseMatchingAcl, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    (resource_type,) = INT8.unpack_from(body, position)
    position += 1
    resource_name, position = read_compact_string(body, position)
    (pattern_type,) = INT8.unpack_from(body, position)
    position += 1
    principal, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    operation, permission_type = _BB.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteAclsResponseMatchingAcl(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    return message, position


def _write_response_matching_acl_v2(write: Write, message: DeleteAclsResponseMatchingAcl) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(INT8.pack(message.resource_type))
    write_compact_string(write, message.resource_name)
    write(INT8.pack(message.pattern_type))
    write_compact_string(write, message.principal)
    write_compact_string(write, message.host)
    write(_BBX.pack(message.operation, message.permission_type))


def _read_response_filter_result_v2(body: Buffer, position: int) -> tuple[DeleteAclsResponseFilterResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    matching_acls, position = read_compact_array(body, position, 11, _read_response_matching_acl_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteAclsResponseFilterResult(
        error_code=error_code,
        error_message=error_message,
        matching_acls=matching_acls,
    )
    return message, position


def _write_response_filter_result_v2(write: Write, message: DeleteAclsResponseFilterResult) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.matching_acls, _write_response_matching_acl_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[DeleteAclsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    filter_results, position = read_compact_array(body, position, 5, _read_response_filter_result_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteAclsResponse(throttle_time_ms=throttle_time_ms, filter_results=filter_results)
    return message, position


def _write_response_v2(write: Write, message: DeleteAclsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.filter_results, _write_response_filter_result_v2)
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


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DeleteAclsRequest:
    return decode(_REQUEST_READERS, "DeleteAclsRequest", buffer, position, end, version)


def encode_request(message: DeleteAclsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DeleteAclsRequest", message, version)


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


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DeleteAclsResponse:
    return decode(_RESPONSE_READERS, "DeleteAclsResponse", buffer, position, end, version)


def encode_response(message: DeleteAclsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DeleteAclsResponse", message, version)


def begin_response(message: DeleteAclsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DeleteAclsResponse", message, version)
