"""DescribeUserScramCredentials (50), versions 0 to 0.

Generated from wire/schemas/describe_user_scram_credentials.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 50
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_BI = Struct(">bi")
_BIX = Struct(">bix")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsRequestUser:
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    users: tuple[DescribeUserScramCredentialsRequestUser, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResponseCredentialInfo:
    mechanism: int = 0
    iterations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResponseResult:
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: tuple[DescribeUserScramCredentialsResponseCredentialInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: tuple[DescribeUserScramCredentialsResponseResult, ...] = ()


def _read_request_user_v0(body: Buffer, position: int) -> tuple[DescribeUserScramCredentialsRequestUser, int]:
    name, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeUserScramCredentialsRequestUser(name=name)
    return message, position


def _write_request_user_v0(write: Write, message: DescribeUserScramCredentialsRequestUser) -> None:
    write_compact_string(write, message.name)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeUserScramCredentialsRequest, int]:
    users, position = read_compact_nullable_array(body, position, 2, _read_request_user_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeUserScramCredentialsRequest(users=users)
    return message, position


def _write_request_v0(write: Write, message: DescribeUserScramCredentialsRequest) -> None:
    write_compact_nullable_array(write, message.users, _write_request_user_v0)
    write(NO_TAGS)


def _read_response_credential_info_v0(
    body: Buffer, position: int
) -> tuple[DescribeUserScramCredentialsResponseCredentialInfo, int]:
    mechanism, iterations = _BI.unpack_from(body, position)
    position += 5
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeUserScramCredentialsResponseCredentialInfo(mechanism=mechanism, iterations=iterations)
    return message, position


def _write_response_credential_info_v0(
    write: Write, message: DescribeUserScramCredentialsResponseCredentialInfo
) -> None:
    write(_BIX.pack(message.mechanism, message.iterations))


def _read_response_result_v0(body: Buffer, position: int) -> tuple[DescribeUserScramCredentialsResponseResult, int]:
    user, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    credential_infos, position = read_compact_array(body, position, 6, _read_response_credential_info_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeUserScramCredentialsResponseResult(
        user=user,
        error_code=error_code,
        error_message=error_message,
        credential_infos=credential_infos,
    )
    return message, position


def _write_response_result_v0(write: Write, message: DescribeUserScramCredentialsResponseResult) -> None:
    write_compact_string(write, message.user)
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.credential_infos, _write_response_credential_info_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeUserScramCredentialsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    results, position = read_compact_array(body, position, 6, _read_response_result_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeUserScramCredentialsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        results=results,
    )
    return message, position


def _write_response_v0(write: Write, message: DescribeUserScramCredentialsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.results, _write_response_result_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeUserScramCredentialsRequest:
    return decode(_REQUEST_READERS, "DescribeUserScramCredentialsRequest", buffer, position, end, version)


def encode_request(message: DescribeUserScramCredentialsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeUserScramCredentialsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeUserScramCredentialsResponse:
    return decode(_RESPONSE_READERS, "DescribeUserScramCredentialsResponse", buffer, position, end, version)


def encode_response(message: DescribeUserScramCredentialsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeUserScramCredentialsResponse", message, version)


def begin_response(message: DescribeUserScramCredentialsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeUserScramCredentialsResponse", message, version)
