"""AlterClientQuotas (49), versions 0 to 1.

Generated from wire/schemas/alter_client_quotas.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 49
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 1

_DF = Struct(">d?")
_DFX = Struct(">d?x")
_FX = Struct(">?x")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequestEntity:
    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequestOp:
    key: str = ""
    value: float = 0.0
    remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequestEntry:
    entity: tuple[AlterClientQuotasRequestEntity, ...] = ()
    ops: tuple[AlterClientQuotasRequestOp, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequest:
    entries: tuple[AlterClientQuotasRequestEntry, ...] = ()
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasResponseEntity:
    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasResponseEntry:
    error_code: int = 0
    error_message: str | None = ""
    entity: tuple[AlterClientQuotasResponseEntity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasResponse:
    throttle_time_ms: int = 0
    entries: tuple[AlterClientQuotasResponseEntry, ...] = ()


def _read_request_entity_v0(body: Buffer, position: int) -> tuple[AlterClientQuotasRequestEntity, int]:
    entity_type, position = read_string(body, position)
    entity_name, position = read_nullable_string(body, position)
    message = AlterClientQuotasRequestEntity(entity_type=entity_type, entity_name=entity_name)
    return message, position


def _write_request_entity_v0(write: Write, message: AlterClientQuotasRequestEntity) -> None:
    write_string(write, message.entity_type)
    write_nullable_string(write, message.entity_name)


def _read_request_op_v0(body: Buffer, position: int) -> tuple[AlterClientQuotasRequestOp, int]:
    key, position = read_string(body, position)
    value, remove = _DF.unpack_from(body, position)
    position += 9
    message = AlterClientQuotasRequestOp(key=key, value=value, remove=remove)
    return message, position


def _write_request_op_v0(write: Write, message: AlterClientQuotasRequestOp) -> None:
    write_string(write, message.key)
    write(_DF.pack(message.value, message.remove))


def _read_request_entry_v0(body: Buffer, position: int) -> tuple[AlterClientQuotasRequestEntry, int]:
    entity, position = read_array(body, position, 4, _read_request_entity_v0)
    ops, position = read_array(body, position, 11, _read_request_op_v0)
    message = AlterClientQuotasRequestEntry(entity=entity, ops=ops)
    return message, position


def _write_request_entry_v0(write: Write, message: AlterClientQuotasRequestEntry) -> None:
    write_array(write, message.entity, _write_request_entity_v0)
    write_array(write, message.ops, _write_request_op_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[AlterClientQuotasRequest, int]:
    entries, position = read_array(body, position, 8, _read_request_entry_v0)
    (validate_only,) = BOOL.unpack_from(body, position)
    position += 1
    message = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    return message, position


def _write_request_v0(write: Write, message: AlterClientQuotasRequest) -> None:
    write_array(write, message.entries, _write_request_entry_v0)
    write(BOOL.pack(message.validate_only))


def _read_request_entity_v1(body: Buffer, position: int) -> tuple[AlterClientQuotasRequestEntity, int]:
    entity_type, position = read_compact_string(body, position)
    entity_name, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterClientQuotasRequestEntity(entity_type=entity_type, entity_name=entity_name)
    return message, position


def _write_request_entity_v1(write: Write, message: AlterClientQuotasRequestEntity) -> None:
    write_compact_string(write, message.entity_type)
    write_compact_nullable_string(write, message.entity_name)
    write(NO_TAGS)


def _read_request_op_v1(body: Buffer, position: int) -> tuple[AlterClientQuotasRequestOp, int]:
    key, position = read_compact_string(body, position)
    value, remove = _DF.unpack_from(body, position)
    position += 9
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterClientQuotasRequestOp(key=key, value=value, remove=remove)
    return message, position


def _write_request_op_v1(write: Write, message: AlterClientQuotasRequestOp) -> None:
    write_compact_string(write, message.key)
    write(_DFX.pack(message.value, message.remove))


def _read_request_entry_v1(body: Buffer, position: int) -> tuple[AlterClientQuotasRequestEntry, int]:
    entity, position = read_compact_array(body, position, 3, _read_request_entity_v1)
    ops, position = read_compact_array(body, position, 11, _read_request_op_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterClientQuotasRequestEntry(entity=entity, ops=ops)
    return message, position


def _write_request_entry_v1(write: Write, message: AlterClientQuotasRequestEntry) -> None:
    write_compact_array(write, message.entity, _write_request_entity_v1)
    write_compact_array(write, message.ops, _write_request_op_v1)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[AlterClientQuotasRequest, int]:
    entries, position = read_compact_array(body, position, 3, _read_request_entry_v1)
    (validate_only,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    return message, position


def _write_request_v1(write: Write, message: AlterClientQuotasRequest) -> None:
    write_compact_array(write, message.entries, _write_request_entry_v1)
    write(_FX.pack(message.validate_only))


def _read_response_entity_v0(body: Buffer, position: int) -> tuple[AlterClientQuotasResponseEntity, int]:
    entity_type, position = read_string(body, position)
    entity_name, position = read_nullable_string(body, position)
    message = AlterClientQuotasResponseEntity(entity_type=entity_type, entity_name=entity_name)
    return message, position


def _write_response_entity_v0(write: Write, message: AlterClientQuotasResponseEntity) -> None:
    write_string(write, message.entity_type)
    write_nullable_string(write, message.entity_name)


def _read_response_entry_v0(body: Buffer, position: int) -> tuple[AlterClientQuotasResponseEntry, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_nullable_string(body, position)
    entity, position = read_array(body, position, 4, _read_response_entity_v0)
    message = AlterClientQuotasResponseEntry(error_code=error_code, error_message=error_message, entity=entity)
    return message, position


def _write_response_entry_v0(write: Write, message: AlterClientQuotasResponseEntry) -> None:
    write(INT16.pack(message.error_code))
    write_nullable_string(write, message.error_message)
    write_array(write, message.entity, _write_response_entity_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[AlterClientQuotasResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    entries, position = read_array(body, position, 8, _read_response_entry_v0)
    message = AlterClientQuotasResponse(throttle_time_ms=throttle_time_ms, entries=entries)
    return message, position


def _write_response_v0(write: Write, message: AlterClientQuotasResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.entries, _write_response_entry_v0)


def _read_response_entity_v1(body: Buffer, position: int) -> tuple[AlterClientQuotasResponseEntity, int]:
    entity_type, position = read_compact_string(body, position)
    entity_name, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterClientQuotasResponseEntity(entity_type=entity_type, entity_name=entity_name)
    return message, position


def _write_response_entity_v1(write: Write, message: AlterClientQuotasResponseEntity) -> None:
    write_compact_string(write, message.entity_type)
    write_compact_nullable_string(write, message.entity_name)
    write(NO_TAGS)


def _read_response_entry_v1(body: Buffer, position: int) -> tuple[AlterClientQuotasResponseEntry, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    entity, position = read_compact_array(body, position, 3, _read_response_entity_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterClientQuotasResponseEntry(error_code=error_code, error_message=error_message, entity=entity)
    return message, position


def _write_response_entry_v1(write: Write, message: AlterClientQuotasResponseEntry) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.entity, _write_response_entity_v1)
    write(NO_TAGS)


def _read_response_v1(body: Buffer, position: int) -> tuple[AlterClientQuotasResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    entries, position = read_compact_array(body, position, 5, _read_response_entry_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterClientQuotasResponse(throttle_time_ms=throttle_time_ms, entries=entries)
    return message, position


def _write_response_v1(write: Write, message: AlterClientQuotasResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.entries, _write_response_entry_v1)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AlterClientQuotasRequest:
    return decode(_REQUEST_READERS, "AlterClientQuotasRequest", buffer, position, end, version)


def encode_request(message: AlterClientQuotasRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AlterClientQuotasRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AlterClientQuotasResponse:
    return decode(_RESPONSE_READERS, "AlterClientQuotasResponse", buffer, position, end, version)


def encode_response(message: AlterClientQuotasResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AlterClientQuotasResponse", message, version)


def begin_response(message: AlterClientQuotasResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AlterClientQuotasResponse", message, version)
