"""CreateDelegationToken (38), versions 1 to 3.

Generated from wire/schemas/create_delegation_token.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, INT64, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_bytes,
    read_compact_array,
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_string,
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
    write_string,
)

API_KEY = 38
MIN_VERSION = 1
MAX_VERSION = 3
FLEXIBLE_FROM = 2

_IX = Struct(">ix")
_QQQ = Struct(">qqq")
_QX = Struct(">qx")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDelegationTokenRequestRenewer:
    principal_type: str = ""
    principal_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: tuple[CreateDelegationTokenRequestRenewer, ...] = ()
    max_lifetime_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDelegationTokenResponse:
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0


def _read_request_renewer_v1(body: Buffer, position: int) -> tuple[CreateDelegationTokenRequestRenewer, int]:
    principal_type, position = read_string(body, position)
    principal_name, position = read_string(body, position)
    message = CreateDelegationTokenRequestRenewer(principal_type=principal_type, principal_name=principal_name)
    return message, position


def _write_request_renewer_v1(write: Write, message: CreateDelegationTokenRequestRenewer) -> None:
    write_string(write, message.principal_type)
    write_string(write, message.principal_name)


def _read_request_v1(body: Buffer, position: int) -> tuple[CreateDelegationTokenRequest, int]:
    renewers, position = read_array(body, position, 4, _read_request_renewer_v1)
    (max_lifetime_ms,) = INT64.unpack_from(body, position)
    position += 8
    message = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=max_lifetime_ms)
    return message, position


def _write_request_v1(write: Write, message: CreateDelegationTokenRequest) -> None:
    write_array(write, message.renewers, _write_request_renewer_v1)
    write(INT64.pack(message.max_lifetime_ms))


def _read_request_renewer_v2(body: Buffer, position: int) -> tuple[CreateDelegationTokenRequestRenewer, int]:
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateDelegationTokenRequestRenewer(principal_type=principal_type, principal_name=principal_name)
    return message, position


def _write_request_renewer_v2(write: Write, message: CreateDelegationTokenRequestRenewer) -> None:
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[CreateDelegationTokenRequest, int]:
    renewers, position = read_compact_array(body, position, 3, _read_request_renewer_v2)
    (max_lifetime_ms,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=max_lifetime_ms)
    return message, position


def _write_request_v2(write: Write, message: CreateDelegationTokenRequest) -> None:
    write_compact_array(write, message.renewers, _write_request_renewer_v2)
    write(_QX.pack(message.max_lifetime_ms))


def _read_request_v3(body: Buffer, position: int) -> tuple[CreateDelegationTokenRequest, int]:
    owner_principal_type, position = read_compact_nullable_string(body, position)
    owner_principal_name, position = read_compact_nullable_string(body, position)
    renewers, position = read_compact_array(body, position, 3, _read_request_renewer_v2)
    (max_lifetime_ms,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateDelegationTokenRequest(
        owner_principal_type=owner_principal_type,
        owner_principal_name=owner_principal_name,
        renewers=renewers,
        max_lifetime_ms=max_lifetime_ms,
    )
    return message, position


def _write_request_v3(write: Write, message: CreateDelegationTokenRequest) -> None:
    write_compact_nullable_string(write, message.owner_principal_type)
    write_compact_nullable_string(write, message.owner_principal_name)
    write_compact_array(write, message.renewers, _write_request_renewer_v2)
    write(_QX.pack(message.max_lifetime_ms))


def _read_response_v1(body: Buffer, position: int) -> tuple[CreateDelegationTokenResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    principal_type, position = read_string(body, position)
    principal_name, position = read_string(body, position)
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms = _QQQ.unpack_from(body, position)
    position += 24
    token_id, position = read_string(body, position)
    hmac, position = read_bytes(body, position)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = CreateDelegationTokenResponse(
        error_code=error_code,
        principal_type=principal_type,
        principal_name=principal_name,
        issue_timestamp_ms=issue_timestamp_ms,
        expiry_timestamp_ms=expiry_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        token_id=token_id,
        hmac=hmac,
        throttle_time_ms=throttle_time_ms,
    )
    return message, position


def _write_response_v1(write: Write, message: CreateDelegationTokenResponse) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, message.principal_type)
    write_string(write, message.principal_name)
    write(_QQQ.pack(message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms))
    write_string(write, message.token_id)
    write_bytes(write, message.hmac)
    write(INT32.pack(message.throttle_time_ms))


def _read_response_v2(body: Buffer, position: int) -> tuple[CreateDelegationTokenResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms = _QQQ.unpack_from(body, position)
    position += 24
    token_id, position = read_compact_string(body, position)
    hmac, position = read_compact_bytes(body, position)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateDelegationTokenResponse(
        error_code=error_code,
        principal_type=principal_type,
        principal_name=principal_name,
        issue_timestamp_ms=issue_timestamp_ms,
        expiry_timestamp_ms=expiry_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        token_id=token_id,
        hmac=hmac,
        throttle_time_ms=throttle_time_ms,
    )
    return message, position


def _write_response_v2(write: Write, message: CreateDelegationTokenResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write(_QQQ.pack(message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms))
    write_compact_string(write, message.token_id)
    write_compact_bytes(write, message.hmac)
    write(_IX.pack(message.throttle_time_ms))


def _read_response_v3(body: Buffer, position: int) -> tuple[CreateDelegationTokenResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    token_requester_principal_type, position = read_compact_string(body, position)
    token_requester_principal_name, position = read_compact_string(body, position)
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms = _QQQ.unpack_from(body, position)
    position += 24
    token_id, position = read_compact_string(body, position)
    hmac, position = read_compact_bytes(body, position)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = CreateDelegationTokenResponse(
        error_code=error_code,
        principal_type=principal_type,
        principal_name=principal_name,
        token_requester_principal_type=token_requester_principal_type,
        token_requester_principal_name=token_requester_principal_name,
        issue_timestamp_ms=issue_timestamp_ms,
        expiry_timestamp_ms=expiry_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        token_id=token_id,
        hmac=hmac,
        throttle_time_ms=throttle_time_ms,
    )
    return message, position


def _write_response_v3(write: Write, message: CreateDelegationTokenResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write_compact_string(write, message.token_requester_principal_type)
    write_compact_string(write, message.token_requester_principal_name)
    write(_QQQ.pack(message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms))
    write_compact_string(write, message.token_id)
    write_compact_bytes(write, message.hmac)
    write(_IX.pack(message.throttle_time_ms))


_REQUEST_READERS = (
    None,
    _read_request_v1,
    _read_request_v2,
    _read_request_v3,
)
_REQUEST_WRITERS = (
    None,
    _write_request_v1,
    _write_request_v2,
    _write_request_v3,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> CreateDelegationTokenRequest:
    return decode(_REQUEST_READERS, "CreateDelegationTokenRequest", buffer, position, end, version)


def encode_request(message: CreateDelegationTokenRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "CreateDelegationTokenRequest", message, version)


_RESPONSE_READERS = (
    None,
    _read_response_v1,
    _read_response_v2,
    _read_response_v3,
)
_RESPONSE_WRITERS = (
    None,
    _write_response_v1,
    _write_response_v2,
    _write_response_v3,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> CreateDelegationTokenResponse:
    return decode(_RESPONSE_READERS, "CreateDelegationTokenResponse", buffer, position, end, version)


def encode_response(message: CreateDelegationTokenResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "CreateDelegationTokenResponse", message, version)


def begin_response(message: CreateDelegationTokenResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "CreateDelegationTokenResponse", message, version)
