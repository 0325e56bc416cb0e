"""DescribeDelegationToken (41), versions 1 to 3.

Generated from wire/schemas/describe_delegation_token.py by `python -m headrace.wire.generator`.
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
    read_compact_nullable_array,
    read_compact_string,
    read_nullable_array,
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
    write_compact_nullable_array,
    write_compact_string,
    write_nullable_array,
    write_string,
)

API_KEY = 41
MIN_VERSION = 1
MAX_VERSION = 3
FLEXIBLE_FROM = 2

_IX = Struct(">ix")
_QQQ = Struct(">qqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenRequestOwner:
    principal_type: str = ""
    principal_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenRequest:
    owners: tuple[DescribeDelegationTokenRequestOwner, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenResponseRenewer:
    principal_type: str = ""
    principal_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenResponseToken:
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: tuple[DescribeDelegationTokenResponseRenewer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenResponse:
    error_code: int = 0
    tokens: tuple[DescribeDelegationTokenResponseToken, ...] = ()
    throttle_time_ms: int = 0


def _read_request_owner_v1(body: Buffer, position: int) -> tuple[DescribeDelegationTokenRequestOwner, int]:
    principal_type, position = read_string(body, position)
    principal_name, position = read_string(body, position)
    message = DescribeDelegationTokenRequestOwner(principal_type=principal_type, principal_name=principal_name)
    return message, position


def _write_request_owner_v1(write: Write, message: DescribeDelegationTokenRequestOwner) -> None:
    write_string(write, message.principal_type)
    write_string(write, message.principal_name)


def _read_request_v1(body: Buffer, position: int) -> tuple[DescribeDelegationTokenRequest, int]:
    owners, position = read_nullable_array(body, position, 4, _read_request_owner_v1)
    message = DescribeDelegationTokenRequest(owners=owners)
    return message, position


def _write_request_v1(write: Write, message: DescribeDelegationTokenRequest) -> None:
    write_nullable_array(write, message.owners, _write_request_owner_v1)


def _read_request_owner_v2(body: Buffer, position: int) -> tuple[DescribeDelegationTokenRequestOwner, int]:
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeDelegationTokenRequestOwner(principal_type=principal_type, principal_name=principal_name)
    return message, position


def _write_request_owner_v2(write: Write, message: DescribeDelegationTokenRequestOwner) -> None:
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[DescribeDelegationTokenRequest, int]:
    owners, position = read_compact_nullable_array(body, position, 3, _read_request_owner_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeDelegationTokenRequest(owners=owners)
    return message, position


def _write_request_v2(write: Write, message: DescribeDelegationTokenRequest) -> None:
    write_compact_nullable_array(write, message.owners, _write_request_owner_v2)
    write(NO_TAGS)


def _read_response_renewer_v1(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponseRenewer, int]:
    principal_type, position = read_string(body, position)
    principal_name, position = read_string(body, position)
    message = DescribeDelegationTokenResponseRenewer(principal_type=principal_type, principal_name=principal_name)
    return message, position


def _write_response_renewer_v1(write: Write, message: DescribeDelegationTokenResponseRenewer) -> None:
    write_string(write, message.principal_type)
    write_string(write, message.principal_name)


def _read_response_token_v1(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponseToken, int]:
    principal_type, position = read_string(body, position)
    principal_name, position = read_string(body, position)
    issue_timestamp, expiry_timestamp, max_timestamp = _QQQ.unpack_from(body, position)
    position += 24
    token_id, position = read_string(body, position)
    hmac, position = read_bytes(body, position)
    renewers, position = read_array(body, position, 4, _read_response_renewer_v1)
    message = DescribeDelegationTokenResponseToken(
        principal_type=principal_type,
        principal_name=principal_name,
        issue_timestamp=issue_timestamp,
        expiry_timestamp=expiry_timestamp,
        max_timestamp=max_timestamp,
        token_id=token_id,
        hmac=hmac,
        renewers=renewers,
    )
    return message, position


def _write_response_token_v1(write: Write, message: DescribeDelegationTokenResponseToken) -> None:
    write_string(write, message.principal_type)
    write_string(write, message.principal_name)
    write(_QQQ.pack(message.issue_timestamp, message.expiry_timestamp, message.max_timestamp))
    write_string(write, message.token_id)
    write_bytes(write, message.hmac)
    write_array(write, message.renewers, _write_response_renewer_v1)


def _read_response_v1(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    tokens, position = read_array(body, position, 38, _read_response_token_v1)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = DescribeDelegationTokenResponse(error_code=error_code, tokens=tokens, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v1(write: Write, message: DescribeDelegationTokenResponse) -> None:
    write(INT16.pack(message.error_code))
    write_array(write, message.tokens, _write_response_token_v1)
    write(INT32.pack(message.throttle_time_ms))


def _read_response_renewer_v2(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponseRenewer, int]:
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeDelegationTokenResponseRenewer(principal_type=principal_type, principal_name=principal_name)
    return message, position


def _write_response_renewer_v2(write: Write, message: DescribeDelegationTokenResponseRenewer) -> None:
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write(NO_TAGS)


def _read_response_token_v2(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponseToken, int]:
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    issue_timestamp, expiry_timestamp, max_timestamp = _QQQ.unpack_from(body, position)
    position += 24
    token_id, position = read_compact_string(body, position)
    hmac, position = read_compact_bytes(body, position)
    renewers, position = read_compact_array(body, position, 3, _read_response_renewer_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeDelegationTokenResponseToken(
        principal_type=principal_type,
        principal_name=principal_name,
        issue_timestamp=issue_timestamp,
        expiry_timestamp=expiry_timestamp,
        max_timestamp=max_timestamp,
        token_id=token_id,
        hmac=hmac,
        renewers=renewers,
    )
    return message, position


def _write_response_token_v2(write: Write, message: DescribeDelegationTokenResponseToken) -> None:
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write(_QQQ.pack(message.issue_timestamp, message.expiry_timestamp, message.max_timestamp))
    write_compact_string(write, message.token_id)
    write_compact_bytes(write, message.hmac)
    write_compact_array(write, message.renewers, _write_response_renewer_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    tokens, position = read_compact_array(body, position, 30, _read_response_token_v2)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeDelegationTokenResponse(error_code=error_code, tokens=tokens, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v2(write: Write, message: DescribeDelegationTokenResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_array(write, message.tokens, _write_response_token_v2)
    write(_IX.pack(message.throttle_time_ms))


def _read_response_token_v3(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponseToken, int]:
    principal_type, position = read_compact_string(body, position)
    principal_name, position = read_compact_string(body, position)
    token_requester_principal_type, position = read_compact_string(body, position)
    token_requester_principal_name, position = read_compact_string(body, position)
    issue_timestamp, expiry_timestamp, max_timestamp = _QQQ.unpack_from(body, position)
    position += 24
    token_id, position = read_compact_string(body, position)
    hmac, position = read_compact_bytes(body, position)
    renewers, position = read_compact_array(body, position, 3, _read_response_renewer_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeDelegationTokenResponseToken(
        principal_type=principal_type,
        principal_name=principal_name,
        token_requester_principal_type=token_requester_principal_type,
        token_requester_principal_name=token_requester_principal_name,
        issue_timestamp=issue_timestamp,
        expiry_timestamp=expiry_timestamp,
        max_timestamp=max_timestamp,
        token_id=token_id,
        hmac=hmac,
        renewers=renewers,
    )
    return message, position


def _write_response_token_v3(write: Write, message: DescribeDelegationTokenResponseToken) -> None:
    write_compact_string(write, message.principal_type)
    write_compact_string(write, message.principal_name)
    write_compact_string(write, message.token_requester_principal_type)
    write_compact_string(write, message.token_requester_principal_name)
    write(_QQQ.pack(message.issue_timestamp, message.expiry_timestamp, message.max_timestamp))
    write_compact_string(write, message.token_id)
    write_compact_bytes(write, message.hmac)
    write_compact_array(write, message.renewers, _write_response_renewer_v2)
    write(NO_TAGS)


def _read_response_v3(body: Buffer, position: int) -> tuple[DescribeDelegationTokenResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    tokens, position = read_compact_array(body, position, 32, _read_response_token_v3)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeDelegationTokenResponse(error_code=error_code, tokens=tokens, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v3(write: Write, message: DescribeDelegationTokenResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_array(write, message.tokens, _write_response_token_v3)
    write(_IX.pack(message.throttle_time_ms))


_REQUEST_READERS = (
    None,
    _read_request_v1,
    _read_request_v2,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    None,
    _write_request_v1,
    _write_request_v2,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeDelegationTokenRequest:
    return decode(_REQUEST_READERS, "DescribeDelegationTokenRequest", buffer, position, end, version)


def encode_request(message: DescribeDelegationTokenRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeDelegationTokenRequest", message, version)


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


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeDelegationTokenResponse:
    return decode(_RESPONSE_READERS, "DescribeDelegationTokenResponse", buffer, position, end, version)


def encode_response(message: DescribeDelegationTokenResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeDelegationTokenResponse", message, version)


def begin_response(message: DescribeDelegationTokenResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeDelegationTokenResponse", message, version)
