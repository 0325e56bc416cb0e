"""ListGroups (16), versions 0 to 5.

Generated from wire/schemas/list_groups.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, Buffer
from headrace.wire.primitives.readers import read_array, read_compact_array, read_compact_string, read_string, skip_tags
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_string,
    write_string,
)

API_KEY = 16
MIN_VERSION = 0
MAX_VERSION = 5
FLEXIBLE_FROM = 3

_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest:
    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponseGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: tuple[ListGroupsResponseGroup, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[ListGroupsRequest, int]:
    message = ListGroupsRequest()
    return message, position


def _write_request_v0(write: Write, message: ListGroupsRequest) -> None:
    pass


def _read_request_v3(body: Buffer, position: int) -> tuple[ListGroupsRequest, int]:
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsRequest()
    return message, position


def _write_request_v3(write: Write, message: ListGroupsRequest) -> None:
    write(NO_TAGS)


def _read_request_v4(body: Buffer, position: int) -> tuple[ListGroupsRequest, int]:
    states_filter, position = read_compact_array(body, position, 1, read_compact_string)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsRequest(states_filter=states_filter)
    return message, position


def _write_request_v4(write: Write, message: ListGroupsRequest) -> None:
    write_compact_array(write, message.states_filter, write_compact_string)
    write(NO_TAGS)


def _read_request_v5(body: Buffer, position: int) -> tuple[ListGroupsRequest, int]:
    states_filter, position = read_compact_array(body, position, 1, read_compact_string)
    types_filter, position = read_compact_array(body, position, 1, read_compact_string)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsRequest(states_filter=states_filter, types_filter=types_filter)
    return message, position


def _write_request_v5(write: Write, message: ListGroupsRequest) -> None:
    write_compact_array(write, message.states_filter, write_compact_string)
    write_compact_array(write, message.types_filter, write_compact_string)
    write(NO_TAGS)


def _read_response_group_v0(body: Buffer, position: int) -> tuple[ListGroupsResponseGroup, int]:
    group_id, position = read_string(body, position)
    protocol_type, position = read_string(body, position)
    message = ListGroupsResponseGroup(group_id=group_id, protocol_type=protocol_type)
    return message, position


def _write_response_group_v0(write: Write, message: ListGroupsResponseGroup) -> None:
    write_string(write, message.group_id)
    write_string(write, message.protocol_type)


def _read_response_v0(body: Buffer, position: int) -> tuple[ListGroupsResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    groups, position = read_array(body, position, 4, _read_response_group_v0)
    message = ListGroupsResponse(error_code=error_code, groups=groups)
    return message, position


def _write_response_v0(write: Write, message: ListGroupsResponse) -> None:
    write(INT16.pack(message.error_code))
    write_array(write, message.groups, _write_response_group_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    groups, position = read_array(body, position, 4, _read_response_group_v0)
    message = ListGroupsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, groups=groups)
    return message, position


def _write_response_v1(write: Write, message: ListGroupsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_array(write, message.groups, _write_response_group_v0)


def _read_response_group_v3(body: Buffer, position: int) -> tuple[ListGroupsResponseGroup, int]:
    group_id, position = read_compact_string(body, position)
    protocol_type, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsResponseGroup(group_id=group_id, protocol_type=protocol_type)
    return message, position


def _write_response_group_v3(write: Write, message: ListGroupsResponseGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.protocol_type)
    write(NO_TAGS)


def _read_response_v3(body: Buffer, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    groups, position = read_compact_array(body, position, 3, _read_response_group_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, groups=groups)
    return message, position


def _write_response_v3(write: Write, message: ListGroupsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.groups, _write_response_group_v3)
    write(NO_TAGS)


def _read_response_group_v4(body: Buffer, position: int) -> tuple[ListGroupsResponseGroup, int]:
    group_id, position = read_compact_string(body, position)
    protocol_type, position = read_compact_string(body, position)
    group_state, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsResponseGroup(group_id=group_id, protocol_type=protocol_type, group_state=group_state)
    return message, position


def _write_response_group_v4(write: Write, message: ListGroupsResponseGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.protocol_type)
    write_compact_string(write, message.group_state)
    write(NO_TAGS)


def _read_response_v4(body: Buffer, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    groups, position = read_compact_array(body, position, 4, _read_response_group_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, groups=groups)
    return message, position


def _write_response_v4(write: Write, message: ListGroupsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.groups, _write_response_group_v4)
    write(NO_TAGS)


def _read_response_group_v5(body: Buffer, position: int) -> tuple[ListGroupsResponseGroup, int]:
    group_id, position = read_compact_string(body, position)
    protocol_type, position = read_compact_string(body, position)
    group_state, position = read_compact_string(body, position)
    group_type, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsResponseGroup(
        group_id=group_id,
        protocol_type=protocol_type,
        group_state=group_state,
        group_type=group_type,
    )
    return message, position


def _write_response_group_v5(write: Write, message: ListGroupsResponseGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.protocol_type)
    write_compact_string(write, message.group_state)
    write_compact_string(write, message.group_type)
    write(NO_TAGS)


def _read_response_v5(body: Buffer, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    groups, position = read_compact_array(body, position, 5, _read_response_group_v5)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListGroupsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, groups=groups)
    return message, position


def _write_response_v5(write: Write, message: ListGroupsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.groups, _write_response_group_v5)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v4,
    _read_request_v5,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v4,
    _write_request_v5,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ListGroupsRequest:
    return decode(_REQUEST_READERS, "ListGroupsRequest", buffer, position, end, version)


def encode_request(message: ListGroupsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ListGroupsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v3,
    _read_response_v4,
    _read_response_v5,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v3,
    _write_response_v4,
    _write_response_v5,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ListGroupsResponse:
    return decode(_RESPONSE_READERS, "ListGroupsResponse", buffer, position, end, version)


def encode_response(message: ListGroupsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ListGroupsResponse", message, version)


def begin_response(message: ListGroupsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ListGroupsResponse", message, version)
