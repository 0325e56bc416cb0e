"""SyncGroup (14), versions 0 to 5.

Generated from wire/schemas/sync_group.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
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

API_KEY = 14
MIN_VERSION = 0
MAX_VERSION = 5
FLEXIBLE_FROM = 4

_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupRequest:
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


def _read_request_assignment_v0(body: Buffer, position: int) -> tuple[SyncGroupRequestAssignment, int]:
    member_id, position = read_string(body, position)
    assignment, position = read_bytes(body, position)
    message = SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
    return message, position


def _write_request_assignment_v0(write: Write, message: SyncGroupRequestAssignment) -> None:
    write_string(write, message.member_id)
    write_bytes(write, message.assignment)


def _read_request_v0(body: Buffer, position: int) -> tuple[SyncGroupRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    assignments, position = read_array(body, position, 6, _read_request_assignment_v0)
    message = SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        assignments=assignments,
    )
    return message, position


def _write_request_v0(write: Write, message: SyncGroupRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id))
    write_string(write, message.member_id)
    write_array(write, message.assignments, _write_request_assignment_v0)


def _read_request_v3(body: Buffer, position: int) -> tuple[SyncGroupRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    assignments, position = read_array(body, position, 6, _read_request_assignment_v0)
    message = SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        assignments=assignments,
    )
    return message, position


def _write_request_v3(write: Write, message: SyncGroupRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id))
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)
    write_array(write, message.assignments, _write_request_assignment_v0)


def _read_request_assignment_v4(body: Buffer, position: int) -> tuple[SyncGroupRequestAssignment, int]:
    member_id, position = read_compact_string(body, position)
    assignment, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
    return message, position


def _write_request_assignment_v4(write: Write, message: SyncGroupRequestAssignment) -> None:
    write_compact_string(write, message.member_id)
    write_compact_bytes(write, message.assignment)
    write(NO_TAGS)


def _read_request_v4(body: Buffer, position: int) -> tuple[SyncGroupRequest, int]:
    group_id, position = read_compact_string(body, position)
    (generation_id,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    assignments, position = read_compact_array(body, position, 3, _read_request_assignment_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        assignments=assignments,
    )
    return message, position


def _write_request_v4(write: Write, message: SyncGroupRequest) -> None:
    write_compact_string(write, message.group_id)
    write(INT32.pack(message.generation_id))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_array(write, message.assignments, _write_request_assignment_v4)
    write(NO_TAGS)


def _read_request_v5(body: Buffer, position: int) -> tuple[SyncGroupRequest, int]:
    group_id, position = read_compact_string(body, position)
    (generation_id,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    protocol_type, position = read_compact_nullable_string(body, position)
    protocol_name, position = read_compact_nullable_string(body, position)
    assignments, position = read_compact_array(body, position, 3, _read_request_assignment_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=assignments,
    )
    return message, position


def _write_request_v5(write: Write, message: SyncGroupRequest) -> None:
    write_compact_string(write, message.group_id)
    write(INT32.pack(message.generation_id))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_nullable_string(write, message.protocol_type)
    write_compact_nullable_string(write, message.protocol_name)
    write_compact_array(write, message.assignments, _write_request_assignment_v4)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[SyncGroupResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    assignment, position = read_bytes(body, position)
    message = SyncGroupResponse(error_code=error_code, assignment=assignment)
    return message, position


def _write_response_v0(write: Write, message: SyncGroupResponse) -> None:
    write(INT16.pack(message.error_code))
    write_bytes(write, message.assignment)


def _read_response_v1(body: Buffer, position: int) -> tuple[SyncGroupResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    assignment, position = read_bytes(body, position)
    message = SyncGroupResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, assignment=assignment)
    return message, position


def _write_response_v1(write: Write, message: SyncGroupResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_bytes(write, message.assignment)


def _read_response_v4(body: Buffer, position: int) -> tuple[SyncGroupResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    assignment, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncGroupResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, assignment=assignment)
    return message, position


def _write_response_v4(write: Write, message: SyncGroupResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_bytes(write, message.assignment)
    write(NO_TAGS)


def _read_response_v5(body: Buffer, position: int) -> tuple[SyncGroupResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    protocol_type, position = read_compact_nullable_string(body, position)
    protocol_name, position = read_compact_nullable_string(body, position)
    assignment, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignment=assignment,
    )
    return message, position


def _write_response_v5(write: Write, message: SyncGroupResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.protocol_type)
    write_compact_nullable_string(write, message.protocol_name)
    write_compact_bytes(write, message.assignment)
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


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> SyncGroupRequest:
    return decode(_REQUEST_READERS, "SyncGroupRequest", buffer, position, end, version)


def encode_request(message: SyncGroupRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "SyncGroupRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v1,
    _read_response_v4,
    _read_response_v5,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v1,
    _write_response_v4,
    _write_response_v5,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> SyncGroupResponse:
    return decode(_RESPONSE_READERS, "SyncGroupResponse", buffer, position, end, version)


def encode_response(message: SyncGroupResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "SyncGroupResponse", message, version)


def begin_response(message: SyncGroupResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "SyncGroupResponse", message, version)
