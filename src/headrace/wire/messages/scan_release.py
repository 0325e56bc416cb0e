"""ScanRelease (32011), versions 0 to 0.

Generated from wire/schemas/scan_release.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import read_compact_nullable_string, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, uuid, write_compact_nullable_string

API_KEY = 32011
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_TX = Struct(">16sx")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReleaseRequest:
    lease_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReleaseResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


def _read_request_v0(body: Buffer, position: int) -> tuple[ScanReleaseRequest, int]:
    (lease_id,) = UUID.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanReleaseRequest(lease_id=lease_id)
    return message, position


def _write_request_v0(write: Write, message: ScanReleaseRequest) -> None:
    write(_TX.pack(uuid(message.lease_id)))


def _read_response_v0(body: Buffer, position: int) -> tuple[ScanReleaseResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanReleaseResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, error_message=error_message)
    return message, position


def _write_response_v0(write: Write, message: ScanReleaseResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ScanReleaseRequest:
    return decode(_REQUEST_READERS, "ScanReleaseRequest", buffer, position, end, version)


def encode_request(message: ScanReleaseRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ScanReleaseRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ScanReleaseResponse:
    return decode(_RESPONSE_READERS, "ScanReleaseResponse", buffer, position, end, version)


def encode_response(message: ScanReleaseResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ScanReleaseResponse", message, version)


def begin_response(message: ScanReleaseResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ScanReleaseResponse", message, version)
