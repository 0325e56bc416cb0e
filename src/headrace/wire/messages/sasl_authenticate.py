"""SaslAuthenticate (36), versions 0 to 2.

Generated from wire/schemas/sasl_authenticate.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT64, Buffer
from headrace.wire.primitives.readers import (
    read_bytes,
    read_compact_bytes,
    read_compact_nullable_string,
    read_nullable_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_bytes,
    write_compact_bytes,
    write_compact_nullable_string,
    write_nullable_string,
)

API_KEY = 36
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 2

_QX = Struct(">qx")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateRequest:
    auth_bytes: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateResponse:
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[SaslAuthenticateRequest, int]:
    auth_bytes, position = read_bytes(body, position)
    message = SaslAuthenticateRequest(auth_bytes=auth_bytes)
    return message, position


def _write_request_v0(write: Write, message: SaslAuthenticateRequest) -> None:
    write_bytes(write, message.auth_bytes)


def _read_request_v2(body: Buffer, position: int) -> tuple[SaslAuthenticateRequest, int]:
    auth_bytes, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SaslAuthenticateRequest(auth_bytes=auth_bytes)
    return message, position


def _write_request_v2(write: Write, message: SaslAuthenticateRequest) -> None:
    write_compact_bytes(write, message.auth_bytes)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[SaslAuthenticateResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    auth_bytes, position = read_bytes(body, position)
    message = SaslAuthenticateResponse(error_code=error_code, error_message=error_message, auth_bytes=auth_bytes)
    return message, position


def _write_response_v0(write: Write, message: SaslAuthenticateResponse) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write_bytes(write, message.auth_bytes)


def _read_response_v1(body: Buffer, position: int) -> tuple[SaslAuthenticateResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    auth_bytes, position = read_bytes(body, position)
    (session_lifetime_ms,) = INT64.unpack_from(body, position)
    position += 8
    message = SaslAuthenticateResponse(
        error_code=error_code,
        error_message=error_message,
        auth_bytes=auth_bytes,
        session_lifetime_ms=session_lifetime_ms,
    )
    return message, position


def _write_response_v1(write: Write, message: SaslAuthenticateResponse) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write_bytes(write, message.auth_bytes)
    write(INT64.pack(message.session_lifetime_ms))


def _read_response_v2(body: Buffer, position: int) -> tuple[SaslAuthenticateResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    auth_bytes, position = read_compact_bytes(body, position)
    (session_lifetime_ms,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = SaslAuthenticateResponse(
        error_code=error_code,
        error_message=error_message,
        auth_bytes=auth_bytes,
        session_lifetime_ms=session_lifetime_ms,
    )
    return message, position


def _write_response_v2(write: Write, message: SaslAuthenticateResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_bytes(write, message.auth_bytes)
    write(_QX.pack(message.session_lifetime_ms))


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


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> SaslAuthenticateRequest:
    return decode(_REQUEST_READERS, "SaslAuthenticateRequest", buffer, position, end, version)


def encode_request(message: SaslAuthenticateRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "SaslAuthenticateRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> SaslAuthenticateResponse:
    return decode(_RESPONSE_READERS, "SaslAuthenticateResponse", buffer, position, end, version)


def encode_response(message: SaslAuthenticateResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "SaslAuthenticateResponse", message, version)


def begin_response(message: SaslAuthenticateResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "SaslAuthenticateResponse", message, version)
