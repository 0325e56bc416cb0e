"""DeleteGroups (42), versions 0 to 2.

Generated from wire/schemas/delete_groups.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.readers import read_array, read_compact_array, read_compact_string, read_string, skip_tags
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_string,
    write_string,
)

API_KEY = 42
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 2

_HX = Struct(">hx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsRequest:
    groups_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponseResult:
    group_id: str = ""
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse:
    throttle_time_ms: int = 0
    results: tuple[DeleteGroupsResponseResult, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[DeleteGroupsRequest, int]:
    groups_names, position = read_array(body, position, 2, read_string)
    message = DeleteGroupsRequest(groups_names=groups_names)
    return message, position


def _write_request_v0(write: Write, message: DeleteGroupsRequest) -> None:
    write_array(write, message.groups_names, write_string)


def _read_request_v2(body: Buffer, position: int) -> tuple[DeleteGroupsRequest, int]:
    groups_names, position = read_compact_array(body, position, 1, read_compact_string)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteGroupsRequest(groups_names=groups_names)
    return message, position


def _write_request_v2(write: Write, message: DeleteGroupsRequest) -> None:
    write_compact_array(write, message.groups_names, write_compact_string)
    write(NO_TAGS)


def _read_response_result_v0(body: Buffer, position: int) -> tuple[DeleteGroupsResponseResult, int]:
    group_id, position = read_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = DeleteGroupsResponseResult(group_id=group_id, error_code=error_code)
    return message, position


def _write_response_result_v0(write: Write, message: DeleteGroupsResponseResult) -> None:
    write_string(write, message.group_id)
    write(INT16.pack(message.error_code))


def _read_response_v0(body: Buffer, position: int) -> tuple[DeleteGroupsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_array(body, position, 4, _read_response_result_v0)
    message = DeleteGroupsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v0(write: Write, message: DeleteGroupsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results, _write_response_result_v0)


def _read_response_result_v2(body: Buffer, position: int) -> tuple[DeleteGroupsResponseResult, int]:
    group_id, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteGroupsResponseResult(group_id=group_id, error_code=error_code)
    return message, position


def _write_response_result_v2(write: Write, message: DeleteGroupsResponseResult) -> None:
    write_compact_string(write, message.group_id)
    write(_HX.pack(message.error_code))


def _read_response_v2(body: Buffer, position: int) -> tuple[DeleteGroupsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_compact_array(body, position, 4, _read_response_result_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteGroupsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v2(write: Write, message: DeleteGroupsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.results, _write_response_result_v2)
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


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DeleteGroupsRequest:
    return decode(_REQUEST_READERS, "DeleteGroupsRequest", buffer, position, end, version)


def encode_request(message: DeleteGroupsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DeleteGroupsRequest", message, version)


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


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DeleteGroupsResponse:
    return decode(_RESPONSE_READERS, "DeleteGroupsResponse", buffer, position, end, version)


def encode_response(message: DeleteGroupsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DeleteGroupsResponse", message, version)


def begin_response(message: DeleteGroupsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DeleteGroupsResponse", message, version)
