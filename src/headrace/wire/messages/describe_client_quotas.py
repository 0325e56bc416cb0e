"""DescribeClientQuotas (48), versions 0 to 1.

Generated from wire/schemas/describe_client_quotas.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, FLOAT64, INT8, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_array,
    read_nullable_string,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_array,
    write_nullable_string,
    write_string,
)

API_KEY = 48
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 1

_DX = Struct(">dx")
_FX = Struct(">?x")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequestComponent:
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    components: tuple[DescribeClientQuotasRequestComponent, ...] = ()
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponseEntity:
    entity_type: str = ""
    entity_name: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponseValue:
    key: str = ""
    value: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponseEntry:
    entity: tuple[DescribeClientQuotasResponseEntity, ...] = ()
    values: tuple[DescribeClientQuotasResponseValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: tuple[DescribeClientQuotasResponseEntry, ...] | None = ()


def _read_request_component_v0(body: Buffer, position: int) -> tuple[DescribeClientQuotasRequestComponent, int]:
    entity_type, position = read_string(body, position)
    (match_type,) = INT8.unpack_from(body, position)
    position += 1
    match, position = read_nullable_string(body, position)
    message = DescribeClientQuotasRequestComponent(entity_type=entity_type, match_type=match_type, match=match)
    return message, position


def _write_request_component_v0(write: Write, message: DescribeClientQuotasRequestComponent) -> None:
    write_string(write, message.entity_type)
    write(INT8.pack(message.match_type))
    write_nullable_string(write, message.match)


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeClientQuotasRequest, int]:
    components, position = read_array(body, position, 5, _read_request_component_v0)
    (strict,) = BOOL.unpack_from(body, position)
    position += 1
    message = DescribeClientQuotasRequest(components=components, strict=strict)
    return message, position


def _write_request_v0(write: Write, message: DescribeClientQuotasRequest) -> None:
    write_array(write, message.components, _write_request_component_v0)
    write(BOOL.pack(message.strict))


def _read_request_component_v1(body: Buffer, position: int) -> tuple[DescribeClientQuotasRequestComponent, int]:
    entity_type, position = read_compact_string(body, position)
    (match_type,) = INT8.unpack_from(body, position)
    position += 1
    match, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClientQuotasRequestComponent(entity_type=entity_type, match_type=match_type, match=match)
    return message, position


def _write_request_component_v1(write: Write, message: DescribeClientQuotasRequestComponent) -> None:
    write_compact_string(write, message.entity_type)
    write(INT8.pack(message.match_type))
    write_compact_nullable_string(write, message.match)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[DescribeClientQuotasRequest, int]:
    components, position = read_compact_array(body, position, 4, _read_request_component_v1)
    (strict,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClientQuotasRequest(components=components, strict=strict)
    return message, position


def _write_request_v1(write: Write, message: DescribeClientQuotasRequest) -> None:
    write_compact_array(write, message.components, _write_request_component_v1)
    write(_FX.pack(message.strict))


def _read_response_entity_v0(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponseEntity, int]:
    entity_type, position = read_string(body, position)
    entity_name, position = read_nullable_string(body, position)
    message = DescribeClientQuotasResponseEntity(entity_type=entity_type, entity_name=entity_name)
    return message, position


def _write_response_entity_v0(write: Write, message: DescribeClientQuotasResponseEntity) -> None:
    write_string(write, message.entity_type)
    write_nullable_string(write, message.entity_name)


def _read_response_value_v0(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponseValue, int]:
    key, position = read_string(body, position)
    (value,) = FLOAT64.unpack_from(body, position)
    position += 8
    message = DescribeClientQuotasResponseValue(key=key, value=value)
    return message, position


def _write_response_value_v0(write: Write, message: DescribeClientQuotasResponseValue) -> None:
    write_string(write, message.key)
    write(FLOAT64.pack(message.value))


def _read_response_entry_v0(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponseEntry, int]:
    entity, position = read_array(body, position, 4, _read_response_entity_v0)
    values, position = read_array(body, position, 10, _read_response_value_v0)
    message = DescribeClientQuotasResponseEntry(entity=entity, values=values)
    return message, position


def _write_response_entry_v0(write: Write, message: DescribeClientQuotasResponseEntry) -> None:
    write_array(write, message.entity, _write_response_entity_v0)
    write_array(write, message.values, _write_response_value_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_nullable_string(body, position)
    entries, position = read_nullable_array(body, position, 8, _read_response_entry_v0)
    message = DescribeClientQuotasResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        entries=entries,
    )
    return message, position


def _write_response_v0(write: Write, message: DescribeClientQuotasResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_nullable_string(write, message.error_message)
    write_nullable_array(write, message.entries, _write_response_entry_v0)


def _read_response_entity_v1(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponseEntity, int]:
    entity_type, position = read_compact_string(body, position)
    entity_name, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClientQuotasResponseEntity(entity_type=entity_type, entity_name=entity_name)
    return message, position


def _write_response_entity_v1(write: Write, message: DescribeClientQuotasResponseEntity) -> None:
    write_compact_string(write, message.entity_type)
    write_compact_nullable_string(write, message.entity_name)
    write(NO_TAGS)


def _read_response_value_v1(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponseValue, int]:
    key, position = read_compact_string(body, position)
    (value,) = FLOAT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClientQuotasResponseValue(key=key, value=value)
    return message, position


def _write_response_value_v1(write: Write, message: DescribeClientQuotasResponseValue) -> None:
    write_compact_string(write, message.key)
    write(_DX.pack(message.value))


def _read_response_entry_v1(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponseEntry, int]:
    entity, position = read_compact_array(body, position, 3, _read_response_entity_v1)
    values, position = read_compact_array(body, position, 10, _read_response_value_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClientQuotasResponseEntry(entity=entity, values=values)
    return message, position


def _write_response_entry_v1(write: Write, message: DescribeClientQuotasResponseEntry) -> None:
    write_compact_array(write, message.entity, _write_response_entity_v1)
    write_compact_array(write, message.values, _write_response_value_v1)
    write(NO_TAGS)


def _read_response_v1(body: Buffer, position: int) -> tuple[DescribeClientQuotasResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    entries, position = read_compact_nullable_array(body, position, 3, _read_response_entry_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClientQuotasResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        entries=entries,
    )
    return message, position


def _write_response_v1(write: Write, message: DescribeClientQuotasResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_nullable_array(write, message.entries, _write_response_entry_v1)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeClientQuotasRequest:
    return decode(_REQUEST_READERS, "DescribeClientQuotasRequest", buffer, position, end, version)


def encode_request(message: DescribeClientQuotasRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeClientQuotasRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeClientQuotasResponse:
    return decode(_RESPONSE_READERS, "DescribeClientQuotasResponse", buffer, position, end, version)


def encode_response(message: DescribeClientQuotasResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeClientQuotasResponse", message, version)


def begin_response(message: DescribeClientQuotasResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeClientQuotasResponse", message, version)
