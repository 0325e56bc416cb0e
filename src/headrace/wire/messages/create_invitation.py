"""CreateInvitation (32026), versions 0 to 0.

Generated from wire/schemas/create_invitation.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT64, Buffer
from headrace.wire.primitives.readers import read_compact_nullable_string, read_compact_string, skip_tags
from headrace.wire.primitives.writers import Write, write_compact_nullable_string, write_compact_string

API_KEY = 32026
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_QX = Struct(">qx")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateInvitationRequest:
    lifetime_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateInvitationResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    token: str = ""
    expiry_ms: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[CreateInvitationRequest, int]:
    (lifetime_ms,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateInvitationRequest(lifetime_ms=lifetime_ms)
    return message, position


def _write_request_v0(write: Write, message: CreateInvitationRequest) -> None:
    write(_QX.pack(message.lifetime_ms))


def _read_response_v0(body: Buffer, position: int) -> tuple[CreateInvitationResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    token, position = read_compact_string(body, position)
    (expiry_ms,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateInvitationResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        token=token,
        expiry_ms=expiry_ms,
    )
    return message, position


def _write_response_v0(write: Write, message: CreateInvitationResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_string(write, message.token)
    write(_QX.pack(message.expiry_ms))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> CreateInvitationRequest:
    return decode(_REQUEST_READERS, "CreateInvitationRequest", buffer, position, end, version)


def encode_request(message: CreateInvitationRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "CreateInvitationRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> CreateInvitationResponse:
    return decode(_RESPONSE_READERS, "CreateInvitationResponse", buffer, position, end, version)


def encode_response(message: CreateInvitationResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "CreateInvitationResponse", message, version)


def begin_response(message: CreateInvitationResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "CreateInvitationResponse", message, version)
