"""DescribeGroups (15), versions 0 to 6.

Generated from wire/schemas/describe_groups.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_bytes,
    read_compact_array,
    read_compact_bytes,
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
    write_bytes,
    write_compact_array,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 15
MIN_VERSION = 0
MAX_VERSION = 6
FLEXIBLE_FROM = 5

_FX = Struct(">?x")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsRequest:
    groups: tuple[str, ...] = ()
    include_authorized_operations: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponseMember:
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponseGroup:
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribeGroupsResponseMember, ...] = ()
    authorized_operations: int = -2147483648


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponse:
    throttle_time_ms: int = 0
    groups: tuple[DescribeGroupsResponseGroup, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeGroupsRequest, int]:
    groups, position = read_array(body, position, 2, read_string)
    message = DescribeGroupsRequest(groups=groups)
    return message, position


def _write_request_v0(write: Write, message: DescribeGroupsRequest) -> None:
    write_array(write, message.groups, write_string)


def _read_request_v3(body: Buffer, position: int) -> tuple[DescribeGroupsRequest, int]:
    groups, position = read_array(body, position, 2, read_string)
    (include_authorized_operations,) = BOOL.unpack_from(body, position)
    position += 1
    message = DescribeGroupsRequest(groups=groups, include_authorized_operations=include_authorized_operations)
    return message, position


def _write_request_v3(write: Write, message: DescribeGroupsRequest) -> None:
    write_array(write, message.groups, write_string)
    write(BOOL.pack(message.include_authorized_operations))


def _read_request_v5(body: Buffer, position: int) -> tuple[DescribeGroupsRequest, int]:
    groups, position = read_compact_array(body, position, 1, read_compact_string)
    (include_authorized_operations,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeGroupsRequest(groups=groups, include_authorized_operations=include_authorized_operations)
    return message, position


def _write_request_v5(write: Write, message: DescribeGroupsRequest) -> None:
    write_compact_array(write, message.groups, write_compact_string)
    write(_FX.pack(message.include_authorized_operations))


def _read_response_member_v0(body: Buffer, position: int) -> tuple[DescribeGroupsResponseMember, int]:
    member_id, position = read_string(body, position)
    client_id, position = read_string(body, position)
    client_host, position = read_string(body, position)
    member_metadata, position = read_bytes(body, position)
    member_assignment, position = read_bytes(body, position)
    message = DescribeGroupsResponseMember(
        member_id=member_id,
        client_id=client_id,
        client_host=client_host,
        member_metadata=member_metadata,
        member_assignment=member_assignment,
    )
    return message, position


def _write_response_member_v0(write: Write, message: DescribeGroupsResponseMember) -> None:
    write_string(write, message.member_id)
    write_string(write, message.client_id)
    write_string(write, message.client_host)
    write_bytes(write, message.member_metadata)
    write_bytes(write, message.member_assignment)


def _read_response_group_v0(body: Buffer, position: int) -> tuple[DescribeGroupsResponseGroup, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    group_id, position = read_string(body, position)
    group_state, position = read_string(body, position)
    protocol_type, position = read_string(body, position)
    protocol_data, position = read_string(body, position)
    members, position = read_array(body, position, 14, _read_response_member_v0)
    message = DescribeGroupsResponseGroup(
        error_code=error_code,
        group_id=group_id,
        group_state=group_state,
        protocol_type=protocol_type,
        protocol_data=protocol_data,
        members=members,
    )
    return message, position


def _write_response_group_v0(write: Write, message: DescribeGroupsResponseGroup) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, message.group_id)
    write_string(write, message.group_state)
    write_string(write, message.protocol_type)
    write_string(write, message.protocol_data)
    write_array(write, message.members, _write_response_member_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeGroupsResponse, int]:
    groups, position = read_array(body, position, 14, _read_response_group_v0)
    message = DescribeGroupsResponse(groups=groups)
    return message, position


def _write_response_v0(write: Write, message: DescribeGroupsResponse) -> None:
    write_array(write, message.groups, _write_response_group_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[DescribeGroupsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_array(body, position, 14, _read_response_group_v0)
    message = DescribeGroupsResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v1(write: Write, message: DescribeGroupsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.groups, _write_response_group_v0)


def _read_response_group_v3(body: Buffer, position: int) -> tuple[DescribeGroupsResponseGroup, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    group_id, position = read_string(body, position)
    group_state, position = read_string(body, position)
    protocol_type, position = read_string(body, position)
    protocol_data, position = read_string(body, position)
    members, position = read_array(body, position, 14, _read_response_member_v0)
    (authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    message = DescribeGroupsResponseGroup(
        error_code=error_code,
        group_id=group_id,
        group_state=group_state,
        protocol_type=protocol_type,
        protocol_data=protocol_data,
        members=members,
        authorized_operations=authorized_operations,
    )
    return message, position


def _write_response_group_v3(write: Write, message: DescribeGroupsResponseGroup) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, message.group_id)
    write_string(write, message.group_state)
    write_string(write, message.protocol_type)
    write_string(write, message.protocol_data)
    write_array(write, message.members, _write_response_member_v0)
    write(INT32.pack(message.authorized_operations))


def _read_response_v3(body: Buffer, position: int) -> tuple[DescribeGroupsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_array(body, position, 18, _read_response_group_v3)
    message = DescribeGroupsResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v3(write: Write, message: DescribeGroupsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.groups, _write_response_group_v3)


def _read_response_member_v4(body: Buffer, position: int) -> tuple[DescribeGroupsResponseMember, int]:
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    client_id, position = read_string(body, position)
    client_host, position = read_string(body, position)
    member_metadata, position = read_bytes(body, position)
    member_assignment, position = read_bytes(body, position)
    message = DescribeGroupsResponseMember(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        member_metadata=member_metadata,
        member_assignment=member_assignment,
    )
    return message, position


def _write_response_member_v4(write: Write, message: DescribeGroupsResponseMember) -> None:
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)
    write_string(write, message.client_id)
    write_string(write, message.client_host)
    write_bytes(write, message.member_metadata)
    write_bytes(write, message.member_assignment)


def _read_response_group_v4(body: Buffer, position: int) -> tuple[DescribeGroupsResponseGroup, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    group_id, position = read_string(body, position)
    group_state, position = read_string(body, position)
    protocol_type, position = read_string(body, position)
    protocol_data, position = read_string(body, position)
    members, position = read_array(body, position, 16, _read_response_member_v4)
    (authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    message = DescribeGroupsResponseGroup(
        error_code=error_code,
        group_id=group_id,
        group_state=group_state,
        protocol_type=protocol_type,
        protocol_data=protocol_data,
        members=members,
        authorized_operations=authorized_operations,
    )
    return message, position


def _write_response_group_v4(write: Write, message: DescribeGroupsResponseGroup) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, message.group_id)
    write_string(write, message.group_state)
    write_string(write, message.protocol_type)
    write_string(write, message.protocol_data)
    write_array(write, message.members, _write_response_member_v4)
    write(INT32.pack(message.authorized_operations))


def _read_response_v4(body: Buffer, position: int) -> tuple[DescribeGroupsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_array(body, position, 18, _read_response_group_v4)
    message = DescribeGroupsResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v4(write: Write, message: DescribeGroupsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.groups, _write_response_group_v4)


def _read_response_member_v5(body: Buffer, position: int) -> tuple[DescribeGroupsResponseMember, int]:
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    client_id, position = read_compact_string(body, position)
    client_host, position = read_compact_string(body, position)
    member_metadata, position = read_compact_bytes(body, position)
    member_assignment, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeGroupsResponseMember(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        member_metadata=member_metadata,
        member_assignment=member_assignment,
    )
    return message, position


def _write_response_member_v5(write: Write, message: DescribeGroupsResponseMember) -> None:
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_string(write, message.client_id)
    write_compact_string(write, message.client_host)
    write_compact_bytes(write, message.member_metadata)
    write_compact_bytes(write, message.member_assignment)
    write(NO_TAGS)


def _read_response_group_v5(body: Buffer, position: int) -> tuple[DescribeGroupsResponseGroup, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    group_id, position = read_compact_string(body, position)
    group_state, position = read_compact_string(body, position)
    protocol_type, position = read_compact_string(body, position)
    protocol_data, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 7, _read_response_member_v5)
    (authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeGroupsResponseGroup(
        error_code=error_code,
        group_id=group_id,
        group_state=group_state,
        protocol_type=protocol_type,
        protocol_data=protocol_data,
        members=members,
        authorized_operations=authorized_operations,
    )
    return message, position


def _write_response_group_v5(write: Write, message: DescribeGroupsResponseGroup) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.group_state)
    write_compact_string(write, message.protocol_type)
    write_compact_string(write, message.protocol_data)
    write_compact_array(write, message.members, _write_response_member_v5)
    write(_IX.pack(message.authorized_operations))


def _read_response_v5(body: Buffer, position: int) -> tuple[DescribeGroupsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_compact_array(body, position, 12, _read_response_group_v5)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeGroupsResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v5(write: Write, message: DescribeGroupsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.groups, _write_response_group_v5)
    write(NO_TAGS)


def _read_response_group_v6(body: Buffer, position: int) -> tuple[DescribeGroupsResponseGroup, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    group_id, position = read_compact_string(body, position)
    group_state, position = read_compact_string(body, position)
    protocol_type, position = read_compact_string(body, position)
    protocol_data, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 7, _read_response_member_v5)
    (authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeGroupsResponseGroup(
        error_code=error_code,
        error_message=error_message,
        group_id=group_id,
        group_state=group_state,
        protocol_type=protocol_type,
        protocol_data=protocol_data,
        members=members,
        authorized_operations=authorized_operations,
    )
    return message, position


def _write_response_group_v6(write: Write, message: DescribeGroupsResponseGroup) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.group_state)
    write_compact_string(write, message.protocol_type)
    write_compact_string(write, message.protocol_data)
    write_compact_array(write, message.members, _write_response_member_v5)
    write(_IX.pack(message.authorized_operations))


def _read_response_v6(body: Buffer, position: int) -> tuple[DescribeGroupsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_compact_array(body, position, 13, _read_response_group_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeGroupsResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v6(write: Write, message: DescribeGroupsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.groups, _write_response_group_v6)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v3,
    _read_request_v5,
    _read_request_v5,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v3,
    _write_request_v5,
    _write_request_v5,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeGroupsRequest:
    return decode(_REQUEST_READERS, "DescribeGroupsRequest", buffer, position, end, version)


def encode_request(message: DescribeGroupsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeGroupsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v3,
    _read_response_v4,
    _read_response_v5,
    _read_response_v6,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v3,
    _write_response_v4,
    _write_response_v5,
    _write_response_v6,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeGroupsResponse:
    return decode(_RESPONSE_READERS, "DescribeGroupsResponse", buffer, position, end, version)


def encode_response(message: DescribeGroupsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeGroupsResponse", message, version)


def begin_response(message: DescribeGroupsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeGroupsResponse", message, version)
