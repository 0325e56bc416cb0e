"""JoinGroup (11), versions 0 to 9.

Generated from wire/schemas/join_group.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT32, Buffer
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
    present,
    write_array,
    write_bytes,
    write_compact_array,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 11
MIN_VERSION = 0
MAX_VERSION = 9
FLEXIBLE_FROM = 6

_HI = Struct(">hi")
_IHI = Struct(">ihi")
_II = Struct(">ii")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupRequest:
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupResponseMember:
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()


def _read_request_protocol_v0(body: Buffer, position: int) -> tuple[JoinGroupRequestProtocol, int]:
    name, position = read_string(body, position)
    metadata, position = read_bytes(body, position)
    message = JoinGroupRequestProtocol(name=name, metadata=metadata)
    return message, position


def _write_request_protocol_v0(write: Write, message: JoinGroupRequestProtocol) -> None:
    write_string(write, message.name)
    write_bytes(write, message.metadata)


def _read_request_v0(body: Buffer, position: int) -> tuple[JoinGroupRequest, int]:
    group_id, position = read_string(body, position)
    (session_timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    protocol_type, position = read_string(body, position)
    protocols, position = read_array(body, position, 6, _read_request_protocol_v0)
    message = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        member_id=member_id,
        protocol_type=protocol_type,
        protocols=protocols,
    )
    return message, position


def _write_request_v0(write: Write, message: JoinGroupRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.session_timeout_ms))
    write_string(write, message.member_id)
    write_string(write, message.protocol_type)
    write_array(write, message.protocols, _write_request_protocol_v0)


def _read_request_v1(body: Buffer, position: int) -> tuple[JoinGroupRequest, int]:
    group_id, position = read_string(body, position)
    session_timeout_ms, rebalance_timeout_ms = _II.unpack_from(body, position)
    position += 8
    member_id, position = read_string(body, position)
    protocol_type, position = read_string(body, position)
    protocols, position = read_array(body, position, 6, _read_request_protocol_v0)
    message = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        protocol_type=protocol_type,
        protocols=protocols,
    )
    return message, position


def _write_request_v1(write: Write, message: JoinGroupRequest) -> None:
    write_string(write, message.group_id)
    write(_II.pack(message.session_timeout_ms, message.rebalance_timeout_ms))
    write_string(write, message.member_id)
    write_string(write, message.protocol_type)
    write_array(write, message.protocols, _write_request_protocol_v0)


def _read_request_v5(body: Buffer, position: int) -> tuple[JoinGroupRequest, int]:
    group_id, position = read_string(body, position)
    session_timeout_ms, rebalance_timeout_ms = _II.unpack_from(body, position)
    position += 8
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    protocol_type, position = read_string(body, position)
    protocols, position = read_array(body, position, 6, _read_request_protocol_v0)
    message = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=protocols,
    )
    return message, position


def _write_request_v5(write: Write, message: JoinGroupRequest) -> None:
    write_string(write, message.group_id)
    write(_II.pack(message.session_timeout_ms, message.rebalance_timeout_ms))
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)
    write_string(write, message.protocol_type)
    write_array(write, message.protocols, _write_request_protocol_v0)


def _read_request_protocol_v6(body: Buffer, position: int) -> tuple[JoinGroupRequestProtocol, int]:
    name, position = read_compact_string(body, position)
    metadata, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinGroupRequestProtocol(name=name, metadata=metadata)
    return message, position


def _write_request_protocol_v6(write: Write, message: JoinGroupRequestProtocol) -> None:
    write_compact_string(write, message.name)
    write_compact_bytes(write, message.metadata)
    write(NO_TAGS)


def _read_request_v6(body: Buffer, position: int) -> tuple[JoinGroupRequest, int]:
    group_id, position = read_compact_string(body, position)
    session_timeout_ms, rebalance_timeout_ms = _II.unpack_from(body, position)
    position += 8
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    protocol_type, position = read_compact_string(body, position)
    protocols, position = read_compact_array(body, position, 3, _read_request_protocol_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=protocols,
    )
    return message, position


def _write_request_v6(write: Write, message: JoinGroupRequest) -> None:
    write_compact_string(write, message.group_id)
    write(_II.pack(message.session_timeout_ms, message.rebalance_timeout_ms))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_string(write, message.protocol_type)
    write_compact_array(write, message.protocols, _write_request_protocol_v6)
    write(NO_TAGS)


def _read_request_v8(body: Buffer, position: int) -> tuple[JoinGroupRequest, int]:
    group_id, position = read_compact_string(body, position)
    session_timeout_ms, rebalance_timeout_ms = _II.unpack_from(body, position)
    position += 8
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    protocol_type, position = read_compact_string(body, position)
    protocols, position = read_compact_array(body, position, 3, _read_request_protocol_v6)
    reason, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=protocols,
        reason=reason,
    )
    return message, position


def _write_request_v8(write: Write, message: JoinGroupRequest) -> None:
    write_compact_string(write, message.group_id)
    write(_II.pack(message.session_timeout_ms, message.rebalance_timeout_ms))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_string(write, message.protocol_type)
    write_compact_array(write, message.protocols, _write_request_protocol_v6)
    write_compact_nullable_string(write, message.reason)
    write(NO_TAGS)


def _read_response_member_v0(body: Buffer, position: int) -> tuple[JoinGroupResponseMember, int]:
    member_id, position = read_string(body, position)
    metadata, position = read_bytes(body, position)
    message = JoinGroupResponseMember(member_id=member_id, metadata=metadata)
    return message, position


def _write_response_member_v0(write: Write, message: JoinGroupResponseMember) -> None:
    write_string(write, message.member_id)
    write_bytes(write, message.metadata)


def _read_response_v0(body: Buffer, position: int) -> tuple[JoinGroupResponse, int]:
    error_code, generation_id = _HI.unpack_from(body, position)
    position += 6
    protocol_name, position = read_string(body, position)
    leader, position = read_string(body, position)
    member_id, position = read_string(body, position)
    members, position = read_array(body, position, 6, _read_response_member_v0)
    message = JoinGroupResponse(
        error_code=error_code,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader=leader,
        member_id=member_id,
        members=members,
    )
    return message, position


def _write_response_v0(write: Write, message: JoinGroupResponse) -> None:
    write(_HI.pack(message.error_code, message.generation_id))
    write_string(write, present(message.protocol_name))
    write_string(write, message.leader)
    write_string(write, message.member_id)
    write_array(write, message.members, _write_response_member_v0)


def _read_response_v2(body: Buffer, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id = _IHI.unpack_from(body, position)
    position += 10
    protocol_name, position = read_string(body, position)
    leader, position = read_string(body, position)
    member_id, position = read_string(body, position)
    members, position = read_array(body, position, 6, _read_response_member_v0)
    message = JoinGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader=leader,
        member_id=member_id,
        members=members,
    )
    return message, position


def _write_response_v2(write: Write, message: JoinGroupResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.generation_id))
    write_string(write, present(message.protocol_name))
    write_string(write, message.leader)
    write_string(write, message.member_id)
    write_array(write, message.members, _write_response_member_v0)


def _read_response_member_v5(body: Buffer, position: int) -> tuple[JoinGroupResponseMember, int]:
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    metadata, position = read_bytes(body, position)
    message = JoinGroupResponseMember(member_id=member_id, group_instance_id=group_instance_id, metadata=metadata)
    return message, position


def _write_response_member_v5(write: Write, message: JoinGroupResponseMember) -> None:
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)
    write_bytes(write, message.metadata)


def _read_response_v5(body: Buffer, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id = _IHI.unpack_from(body, position)
    position += 10
    protocol_name, position = read_string(body, position)
    leader, position = read_string(body, position)
    member_id, position = read_string(body, position)
    members, position = read_array(body, position, 8, _read_response_member_v5)
    message = JoinGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader=leader,
        member_id=member_id,
        members=members,
    )
    return message, position


def _write_response_v5(write: Write, message: JoinGroupResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.generation_id))
    write_string(write, present(message.protocol_name))
    write_string(write, message.leader)
    write_string(write, message.member_id)
    write_array(write, message.members, _write_response_member_v5)


def _read_response_member_v6(body: Buffer, position: int) -> tuple[JoinGroupResponseMember, int]:
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    metadata, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinGroupResponseMember(member_id=member_id, group_instance_id=group_instance_id, metadata=metadata)
    return message, position


def _write_response_member_v6(write: Write, message: JoinGroupResponseMember) -> None:
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_bytes(write, message.metadata)
    write(NO_TAGS)


def _read_response_v6(body: Buffer, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id = _IHI.unpack_from(body, position)
    position += 10
    protocol_name, position = read_compact_string(body, position)
    leader, position = read_compact_string(body, position)
    member_id, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 4, _read_response_member_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader=leader,
        member_id=member_id,
        members=members,
    )
    return message, position


def _write_response_v6(write: Write, message: JoinGroupResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.generation_id))
    write_compact_string(write, present(message.protocol_name))
    write_compact_string(write, message.leader)
    write_compact_string(write, message.member_id)
    write_compact_array(write, message.members, _write_response_member_v6)
    write(NO_TAGS)


def _read_response_v7(body: Buffer, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id = _IHI.unpack_from(body, position)
    position += 10
    protocol_type, position = read_compact_nullable_string(body, position)
    protocol_name, position = read_compact_nullable_string(body, position)
    leader, position = read_compact_string(body, position)
    member_id, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 4, _read_response_member_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        generation_id=generation_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader=leader,
        member_id=member_id,
        members=members,
    )
    return message, position


def _write_response_v7(write: Write, message: JoinGroupResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.generation_id))
    write_compact_nullable_string(write, message.protocol_type)
    write_compact_nullable_string(write, message.protocol_name)
    write_compact_string(write, message.leader)
    write_compact_string(write, message.member_id)
    write_compact_array(write, message.members, _write_response_member_v6)
    write(NO_TAGS)


def _read_response_v9(body: Buffer, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id = _IHI.unpack_from(body, position)
    position += 10
    protocol_type, position = read_compact_nullable_string(body, position)
    protocol_name, position = read_compact_nullable_string(body, position)
    leader, position = read_compact_string(body, position)
    (skip_assignment,) = BOOL.unpack_from(body, position)
    position += 1
    member_id, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 4, _read_response_member_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = JoinGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        generation_id=generation_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader=leader,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )
    return message, position


def _write_response_v9(write: Write, message: JoinGroupResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.generation_id))
    write_compact_nullable_string(write, message.protocol_type)
    write_compact_nullable_string(write, message.protocol_name)
    write_compact_string(write, message.leader)
    write(BOOL.pack(message.skip_assignment))
    write_compact_string(write, message.member_id)
    write_compact_array(write, message.members, _write_response_member_v6)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v1,
    _read_request_v1,
    _read_request_v1,
    _read_request_v5,
    _read_request_v6,
    _read_request_v6,
    _read_request_v8,
    _read_request_v8,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v1,
    _write_request_v1,
    _write_request_v1,
    _write_request_v5,
    _write_request_v6,
    _write_request_v6,
    _write_request_v8,
    _write_request_v8,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> JoinGroupRequest:
    return decode(_REQUEST_READERS, "JoinGroupRequest", buffer, position, end, version)


def encode_request(message: JoinGroupRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "JoinGroupRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
    _read_response_v2,
    _read_response_v2,
    _read_response_v5,
    _read_response_v6,
    _read_response_v7,
    _read_response_v7,
    _read_response_v9,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
    _write_response_v2,
    _write_response_v2,
    _write_response_v5,
    _write_response_v6,
    _write_response_v7,
    _write_response_v7,
    _write_response_v9,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> JoinGroupResponse:
    return decode(_RESPONSE_READERS, "JoinGroupResponse", buffer, position, end, version)


def encode_response(message: JoinGroupResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "JoinGroupResponse", message, version)


def begin_response(message: JoinGroupResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "JoinGroupResponse", message, version)
