"""Heartbeat (12), versions 0 to 4.

Generated from wire/schemas/heartbeat.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 12
MIN_VERSION = 0
MAX_VERSION = 4
FLEXIBLE_FROM = 4

_IH = Struct(">ih")
_IHX = Struct(">ihx")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    throttle_time_ms: int = 0
    error_code: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[HeartbeatRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    message = HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member_id)
    return message, position


def _write_request_v0(write: Write, message: HeartbeatRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id))
    write_string(write, message.member_id)


def _read_request_v3(body: Buffer, position: int) -> tuple[HeartbeatRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    message = HeartbeatRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
    )
    return message, position


def _write_request_v3(write: Write, message: HeartbeatRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id))
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)


def _read_request_v4(body: Buffer, position: int) -> tuple[HeartbeatRequest, int]:
    group_id, position = read_compact_string(body, position)
    (generation_id,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = HeartbeatRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
    )
    return message, position


def _write_request_v4(write: Write, message: HeartbeatRequest) -> None:
    write_compact_string(write, message.group_id)
    write(INT32.pack(message.generation_id))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[HeartbeatResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = HeartbeatResponse(error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: HeartbeatResponse) -> None:
    write(INT16.pack(message.error_code))


def _read_response_v1(body: Buffer, position: int) -> tuple[HeartbeatResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    message = HeartbeatResponse(throttle_time_ms=throttle_time_ms, error_code=error_code)
    return message, position


def _write_response_v1(write: Write, message: HeartbeatResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))


def _read_response_v4(body: Buffer, position: int) -> tuple[HeartbeatResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = HeartbeatResponse(throttle_time_ms=throttle_time_ms, error_code=error_code)
    return message, position


def _write_response_v4(write: Write, message: HeartbeatResponse) -> None:
    write(_IHX.pack(message.throttle_time_ms, message.error_code))


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v4,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v4,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> HeartbeatRequest:
    return decode(_REQUEST_READERS, "HeartbeatRequest", buffer, position, end, version)


def encode_request(message: HeartbeatRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "HeartbeatRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v1,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v1,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> HeartbeatResponse:
    return decode(_RESPONSE_READERS, "HeartbeatResponse", buffer, position, end, version)


def encode_response(message: HeartbeatResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "HeartbeatResponse", message, version)


def begin_response(message: HeartbeatResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "HeartbeatResponse", message, version)
