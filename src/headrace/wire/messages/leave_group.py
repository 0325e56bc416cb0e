"""LeaveGroup (13), versions 0 to 5.

Generated from wire/schemas/leave_group.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, Buffer
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

API_KEY = 13
MIN_VERSION = 0
MAX_VERSION = 5
FLEXIBLE_FROM = 4

_HX = Struct(">hx")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupRequestMember:
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupRequest:
    group_id: str = ""
    member_id: str = ""
    members: tuple[LeaveGroupRequestMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupResponseMember:
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    members: tuple[LeaveGroupResponseMember, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[LeaveGroupRequest, int]:
    group_id, position = read_string(body, position)
    member_id, position = read_string(body, position)
    message = LeaveGroupRequest(group_id=group_id, member_id=member_id)
    return message, position


def _write_request_v0(write: Write, message: LeaveGroupRequest) -> None:
    write_string(write, message.group_id)
    write_string(write, message.member_id)


def _read_request_member_v3(body: Buffer, position: int) -> tuple[LeaveGroupRequestMember, int]:
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    message = LeaveGroupRequestMember(member_id=member_id, group_instance_id=group_instance_id)
    return message, position


def _write_request_member_v3(write: Write, message: LeaveGroupRequestMember) -> None:
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)


def _read_request_v3(body: Buffer, position: int) -> tuple[LeaveGroupRequest, int]:
    group_id, position = read_string(body, position)
    members, position = read_array(body, position, 4, _read_request_member_v3)
    message = LeaveGroupRequest(group_id=group_id, members=members)
    return message, position


def _write_request_v3(write: Write, message: LeaveGroupRequest) -> None:
    write_string(write, message.group_id)
    write_array(write, message.members, _write_request_member_v3)


def _read_request_member_v4(body: Buffer, position: int) -> tuple[LeaveGroupRequestMember, int]:
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = LeaveGroupRequestMember(member_id=member_id, group_instance_id=group_instance_id)
    return message, position


def _write_request_member_v4(write: Write, message: LeaveGroupRequestMember) -> None:
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write(NO_TAGS)


def _read_request_v4(body: Buffer, position: int) -> tuple[LeaveGroupRequest, int]:
    group_id, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 3, _read_request_member_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = LeaveGroupRequest(group_id=group_id, members=members)
    return message, position


def _write_request_v4(write: Write, message: LeaveGroupRequest) -> None:
    write_compact_string(write, message.group_id)
    write_compact_array(write, message.members, _write_request_member_v4)
    write(NO_TAGS)


def _read_request_member_v5(body: Buffer, position: int) -> tuple[LeaveGroupRequestMember, int]:
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    reason, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = LeaveGroupRequestMember(member_id=member_id, group_instance_id=group_instance_id, reason=reason)
    return message, position


def _write_request_member_v5(write: Write, message: LeaveGroupRequestMember) -> None:
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_nullable_string(write, message.reason)
    write(NO_TAGS)


def _read_request_v5(body: Buffer, position: int) -> tuple[LeaveGroupRequest, int]:
    group_id, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 4, _read_request_member_v5)
    position = skip_tags(body, position) if body[position] else position + 1
    message = LeaveGroupRequest(group_id=group_id, members=members)
    return message, position


def _write_request_v5(write: Write, message: LeaveGroupRequest) -> None:
    write_compact_string(write, message.group_id)
    write_compact_array(write, message.members, _write_request_member_v5)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[LeaveGroupResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = LeaveGroupResponse(error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: LeaveGroupResponse) -> None:
    write(INT16.pack(message.error_code))


def _read_response_v1(body: Buffer, position: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    message = LeaveGroupResponse(throttle_time_ms=throttle_time_ms, error_code=error_code)
    return message, position


def _write_response_v1(write: Write, message: LeaveGroupResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))


def _read_response_member_v3(body: Buffer, position: int) -> tuple[LeaveGroupResponseMember, int]:
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = LeaveGroupResponseMember(member_id=member_id, group_instance_id=group_instance_id, error_code=error_code)
    return message, position


def _write_response_member_v3(write: Write, message: LeaveGroupResponseMember) -> None:
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)
    write(INT16.pack(message.error_code))


def _read_response_v3(body: Buffer, position: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    members, position = read_array(body, position, 6, _read_response_member_v3)
    message = LeaveGroupResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, members=members)
    return message, position


def _write_response_v3(write: Write, message: LeaveGroupResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_array(write, message.members, _write_response_member_v3)


def _read_response_member_v4(body: Buffer, position: int) -> tuple[LeaveGroupResponseMember, int]:
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = LeaveGroupResponseMember(member_id=member_id, group_instance_id=group_instance_id, error_code=error_code)
    return message, position


def _write_response_member_v4(write: Write, message: LeaveGroupResponseMember) -> None:
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write(_HX.pack(message.error_code))


def _read_response_v4(body: Buffer, position: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    members, position = read_compact_array(body, position, 5, _read_response_member_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = LeaveGroupResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, members=members)
    return message, position


def _write_response_v4(write: Write, message: LeaveGroupResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.members, _write_response_member_v4)
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


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> LeaveGroupRequest:
    return decode(_REQUEST_READERS, "LeaveGroupRequest", buffer, position, end, version)


def encode_request(message: LeaveGroupRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "LeaveGroupRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v3,
    _read_response_v4,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v3,
    _write_response_v4,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> LeaveGroupResponse:
    return decode(_RESPONSE_READERS, "LeaveGroupResponse", buffer, position, end, version)


def encode_response(message: LeaveGroupResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "LeaveGroupResponse", message, version)


def begin_response(message: LeaveGroupResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "LeaveGroupResponse", message, version)
