"""FindCoordinator (10), versions 0 to 6.

Generated from wire/schemas/find_coordinator.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT8, INT32, Buffer
from headrace.wire.primitives.readers import (
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
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 10
MIN_VERSION = 0
MAX_VERSION = 6
FLEXIBLE_FROM = 3

_BX = Struct(">bx")
_HI = Struct(">hi")
_IH = Struct(">ih")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest:
    key: str = ""
    key_type: int = 0
    coordinator_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponseCoordinator:
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: tuple[FindCoordinatorResponseCoordinator, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[FindCoordinatorRequest, int]:
    key, position = read_string(body, position)
    message = FindCoordinatorRequest(key=key)
    return message, position


def _write_request_v0(write: Write, message: FindCoordinatorRequest) -> None:
    write_string(write, message.key)


def _read_request_v1(body: Buffer, position: int) -> tuple[FindCoordinatorRequest, int]:
    key, position = read_string(body, position)
    (key_type,) = INT8.unpack_from(body, position)
    position += 1
    message = FindCoordinatorRequest(key=key, key_type=key_type)
    return message, position


def _write_request_v1(write: Write, message: FindCoordinatorRequest) -> None:
    write_string(write, message.key)
    write(INT8.pack(message.key_type))


def _read_request_v3(body: Buffer, position: int) -> tuple[FindCoordinatorRequest, int]:
    key, position = read_compact_string(body, position)
    (key_type,) = INT8.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = FindCoordinatorRequest(key=key, key_type=key_type)
    return message, position


def _write_request_v3(write: Write, message: FindCoordinatorRequest) -> None:
    write_compact_string(write, message.key)
    write(_BX.pack(message.key_type))


def _read_request_v4(body: Buffer, position: int) -> tuple[FindCoordinatorRequest, int]:
    (key_type,) = INT8.unpack_from(body, position)
    position += 1
    coordinator_keys, position = read_compact_array(body, position, 1, read_compact_string)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FindCoordinatorRequest(key_type=key_type, coordinator_keys=coordinator_keys)
    return message, position


def _write_request_v4(write: Write, message: FindCoordinatorRequest) -> None:
    write(INT8.pack(message.key_type))
    write_compact_array(write, message.coordinator_keys, write_compact_string)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[FindCoordinatorResponse, int]:
    error_code, node_id = _HI.unpack_from(body, position)
    position += 6
    host, position = read_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    message = FindCoordinatorResponse(error_code=error_code, node_id=node_id, host=host, port=port)
    return message, position


def _write_response_v0(write: Write, message: FindCoordinatorResponse) -> None:
    write(_HI.pack(message.error_code, message.node_id))
    write_string(write, message.host)
    write(INT32.pack(message.port))


def _read_response_v1(body: Buffer, position: int) -> tuple[FindCoordinatorResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_nullable_string(body, position)
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    message = FindCoordinatorResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        node_id=node_id,
        host=host,
        port=port,
    )
    return message, position


def _write_response_v1(write: Write, message: FindCoordinatorResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_nullable_string(write, message.error_message)
    write(INT32.pack(message.node_id))
    write_string(write, message.host)
    write(INT32.pack(message.port))


def _read_response_v3(body: Buffer, position: int) -> tuple[FindCoordinatorResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_compact_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = FindCoordinatorResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        node_id=node_id,
        host=host,
        port=port,
    )
    return message, position


def _write_response_v3(write: Write, message: FindCoordinatorResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(INT32.pack(message.node_id))
    write_compact_string(write, message.host)
    write(_IX.pack(message.port))


def _read_response_coordinator_v4(body: Buffer, position: int) -> tuple[FindCoordinatorResponseCoordinator, int]:
    key, position = read_compact_string(body, position)
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_compact_string(body, position)
    port, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FindCoordinatorResponseCoordinator(
        key=key,
        node_id=node_id,
        host=host,
        port=port,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_coordinator_v4(write: Write, message: FindCoordinatorResponseCoordinator) -> None:
    write_compact_string(write, message.key)
    write(INT32.pack(message.node_id))
    write_compact_string(write, message.host)
    write(_IH.pack(message.port, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_v4(body: Buffer, position: int) -> tuple[FindCoordinatorResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    coordinators, position = read_compact_array(body, position, 14, _read_response_coordinator_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FindCoordinatorResponse(throttle_time_ms=throttle_time_ms, coordinators=coordinators)
    return message, position


def _write_response_v4(write: Write, message: FindCoordinatorResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.coordinators, _write_response_coordinator_v4)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v1,
    _read_request_v3,
    _read_request_v4,
    _read_request_v4,
    _read_request_v4,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v1,
    _write_request_v3,
    _write_request_v4,
    _write_request_v4,
    _write_request_v4,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> FindCoordinatorRequest:
    return decode(_REQUEST_READERS, "FindCoordinatorRequest", buffer, position, end, version)


def encode_request(message: FindCoordinatorRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "FindCoordinatorRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
    _read_response_v3,
    _read_response_v4,
    _read_response_v4,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
    _write_response_v3,
    _write_response_v4,
    _write_response_v4,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> FindCoordinatorResponse:
    return decode(_RESPONSE_READERS, "FindCoordinatorResponse", buffer, position, end, version)


def encode_response(message: FindCoordinatorResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "FindCoordinatorResponse", message, version)


def begin_response(message: FindCoordinatorResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "FindCoordinatorResponse", message, version)
