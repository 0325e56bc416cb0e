"""AlterUserScramCredentials (51), versions 0 to 0.

Generated from wire/schemas/alter_user_scram_credentials.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT8, INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 51
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_BI = Struct(">bi")
_BX = Struct(">bx")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsRequestDeletion:
    name: str = ""
    mechanism: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsRequestUpsertion:
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsRequest:
    deletions: tuple[AlterUserScramCredentialsRequestDeletion, ...] = ()
    upsertions: tuple[AlterUserScramCredentialsRequestUpsertion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsResponseResult:
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = 0
    results: tuple[AlterUserScramCredentialsResponseResult, ...] = ()


def _read_request_deletion_v0(body: Buffer, position: int) -> tuple[AlterUserScramCredentialsRequestDeletion, int]:
    name, position = read_compact_string(body, position)
    (mechanism,) = INT8.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterUserScramCredentialsRequestDeletion(name=name, mechanism=mechanism)
    return message, position


def _write_request_deletion_v0(write: Write, message: AlterUserScramCredentialsRequestDeletion) -> None:
    write_compact_string(write, message.name)
    write(_BX.pack(message.mechanism))


def _read_request_upsertion_v0(body: Buffer, position: int) -> tuple[AlterUserScramCredentialsRequestUpsertion, int]:
    name, position = read_compact_string(body, position)
    mechanism, iterations = _BI.unpack_from(body, position)
    position += 5
    salt, position = read_compact_bytes(body, position)
    salted_password, position = read_compact_bytes(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterUserScramCredentialsRequestUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password,
    )
    return message, position


def _write_request_upsertion_v0(write: Write, message: AlterUserScramCredentialsRequestUpsertion) -> None:
    write_compact_string(write, message.name)
    write(_BI.pack(message.mechanism, message.iterations))
    write_compact_bytes(write, message.salt)
    write_compact_bytes(write, message.salted_password)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[AlterUserScramCredentialsRequest, int]:
    deletions, position = read_compact_array(body, position, 3, _read_request_deletion_v0)
    upsertions, position = read_compact_array(body, position, 9, _read_request_upsertion_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    return message, position


def _write_request_v0(write: Write, message: AlterUserScramCredentialsRequest) -> None:
    write_compact_array(write, message.deletions, _write_request_deletion_v0)
    write_compact_array(write, message.upsertions, _write_request_upsertion_v0)
    write(NO_TAGS)


def _read_response_result_v0(body: Buffer, position: int) -> tuple[AlterUserScramCredentialsResponseResult, int]:
    user, position = read_compact_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterUserScramCredentialsResponseResult(user=user, error_code=error_code, error_message=error_message)
    return message, position


def _write_response_result_v0(write: Write, message: AlterUserScramCredentialsResponseResult) -> None:
    write_compact_string(write, message.user)
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[AlterUserScramCredentialsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_compact_array(body, position, 5, _read_response_result_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterUserScramCredentialsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v0(write: Write, message: AlterUserScramCredentialsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.results, _write_response_result_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AlterUserScramCredentialsRequest:
    return decode(_REQUEST_READERS, "AlterUserScramCredentialsRequest", buffer, position, end, version)


def encode_request(message: AlterUserScramCredentialsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AlterUserScramCredentialsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AlterUserScramCredentialsResponse:
    return decode(_RESPONSE_READERS, "AlterUserScramCredentialsResponse", buffer, position, end, version)


def encode_response(message: AlterUserScramCredentialsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AlterUserScramCredentialsResponse", message, version)


def begin_response(message: AlterUserScramCredentialsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AlterUserScramCredentialsResponse", message, version)
