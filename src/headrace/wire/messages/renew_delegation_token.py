"""RenewDelegationToken (39), versions 1 to 2.

Generated from wire/schemas/renew_delegation_token.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT64, Buffer
from headrace.wire.primitives.readers import read_bytes, read_compact_bytes, skip_tags
from headrace.wire.primitives.writers import Write, write_bytes, write_compact_bytes

API_KEY = 39
MIN_VERSION = 1
MAX_VERSION = 2
FLEXIBLE_FROM = 2

_HQI = Struct(">hqi")
_HQIX = Struct(">hqix")
_QX = Struct(">qx")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewDelegationTokenRequest:
    hmac: bytes = b""
    renew_period_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewDelegationTokenResponse:
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0


def _read_request_v1(body: Buffer, position: int) -> tuple[RenewDelegationTokenRequest, int]:
    hmac, position = read_bytes(body, position)
    (renew_period_ms,) = INT64.unpack_from(body, position)
    position += 8
    message = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)
    return message, position


def _write_request_v1(write: Write, message: RenewDelegationTokenRequest) -> None:
    write_bytes(write, message.hmac)
    write(INT64.pack(message.renew_period_ms))


def _read_request_v2(body: Buffer, position: int) -> tuple[RenewDelegationTokenRequest, int]:
    hmac, position = read_compact_bytes(body, position)
    (renew_period_ms,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)
    return message, position


def _write_request_v2(write: Write, message: RenewDelegationTokenRequest) -> None:
    write_compact_bytes(write, message.hmac)
    write(_QX.pack(message.renew_period_ms))


def _read_response_v1(body: Buffer, position: int) -> tuple[RenewDelegationTokenResponse, int]:
    error_code, expiry_timestamp_ms, throttle_time_ms = _HQI.unpack_from(body, position)
    position += 14
    message = RenewDelegationTokenResponse(
        error_code=error_code,
        expiry_timestamp_ms=expiry_timestamp_ms,
        throttle_time_ms=throttle_time_ms,
    )
    return message, position


def _write_response_v1(write: Write, message: RenewDelegationTokenResponse) -> None:
    write(_HQI.pack(message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms))


def _read_response_v2(body: Buffer, position: int) -> tuple[RenewDelegationTokenResponse, int]:
    error_code, expiry_timestamp_ms, throttle_time_ms = _HQI.unpack_from(body, position)
    position += 14
    position = skip_tags(body, position) if body[position] else position + 1
    message = RenewDelegationTokenResponse(
        error_code=error_code,
        expiry_timestamp_ms=expiry_timestamp_ms,
        throttle_time_ms=throttle_time_ms,
    )
    return message, position


def _write_response_v2(write: Write, message: RenewDelegationTokenResponse) -> None:
    write(_HQIX.pack(message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms))


_REQUEST_READERS = (
    None,
    _read_request_v1,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    None,
    _write_request_v1,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> RenewDelegationTokenRequest:
    return decode(_REQUEST_READERS, "RenewDelegationTokenRequest", buffer, position, end, version)


def encode_request(message: RenewDelegationTokenRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "RenewDelegationTokenRequest", message, version)


_RESPONSE_READERS = (
    None,
    _read_response_v1,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    None,
    _write_response_v1,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> RenewDelegationTokenResponse:
    return decode(_RESPONSE_READERS, "RenewDelegationTokenResponse", buffer, position, end, version)


def encode_response(message: RenewDelegationTokenResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "RenewDelegationTokenResponse", message, version)


def begin_response(message: RenewDelegationTokenResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "RenewDelegationTokenResponse", message, version)
