"""DescribeConnections (32040), versions 0 to 0.

Generated from wire/schemas/describe_connections.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT64, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 32040
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_QI = Struct(">qi")
_QIX = Struct(">qix")
_QQQQQ = Struct(">qqqqq")
_QX = Struct(">qx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConnectionsRequest:
    after_connection_id: int = -1
    connections_max: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConnectionsResponseConnection:
    connection_id: int = 0
    listener: str = ""
    address: str = ""
    client_id: str = ""
    software_name: str = ""
    software_version: str = ""
    principal: str = ""
    connected_ms: int = 0
    idle_ms: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    errors: int = 0
    topics_written: tuple[str, ...] = ()
    topics_read: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConnectionsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    connections: tuple[DescribeConnectionsResponseConnection, ...] = ()
    next_connection_id: int = -1


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeConnectionsRequest, int]:
    after_connection_id, connections_max = _QI.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConnectionsRequest(after_connection_id=after_connection_id, connections_max=connections_max)
    return message, position


def _write_request_v0(write: Write, message: DescribeConnectionsRequest) -> None:
    write(_QIX.pack(message.after_connection_id, message.connections_max))


def _read_response_connection_v0(body: Buffer, position: int) -> tuple[DescribeConnectionsResponseConnection, int]:
    (connection_id,) = INT64.unpack_from(body, position)
    position += 8
    listener, position = read_compact_string(body, position)
    address, position = read_compact_string(body, position)
    client_id, position = read_compact_string(body, position)
    software_name, position = read_compact_string(body, position)
    software_version, position = read_compact_string(body, position)
    principal, position = read_compact_string(body, position)
    connected_ms, idle_ms, bytes_in, bytes_out, errors = _QQQQQ.unpack_from(body, position)
    position += 40
    topics_written, position = read_compact_array(body, position, 1, read_compact_string)
    topics_read, position = read_compact_array(body, position, 1, read_compact_string)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConnectionsResponseConnection(
        connection_id=connection_id,
        listener=listener,
        address=address,
        client_id=client_id,
        software_name=software_name,
        software_version=software_version,
        principal=principal,
        connected_ms=connected_ms,
        idle_ms=idle_ms,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        errors=errors,
        topics_written=topics_written,
        topics_read=topics_read,
    )
    return message, position


def _write_response_connection_v0(write: Write, message: DescribeConnectionsResponseConnection) -> None:
    write(INT64.pack(message.connection_id))
    write_compact_string(write, message.listener)
    write_compact_string(write, message.address)
    write_compact_string(write, message.client_id)
    write_compact_string(write, message.software_name)
    write_compact_string(write, message.software_version)
    write_compact_string(write, message.principal)
    write(_QQQQQ.pack(message.connected_ms, message.idle_ms, message.bytes_in, message.bytes_out, message.errors))
    write_compact_array(write, message.topics_written, write_compact_string)
    write_compact_array(write, message.topics_read, write_compact_string)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeConnectionsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    connections, position = read_compact_array(body, position, 57, _read_response_connection_v0)
    (next_connection_id,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeConnectionsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        connections=connections,
        next_connection_id=next_connection_id,
    )
    return message, position


def _write_response_v0(write: Write, message: DescribeConnectionsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.connections, _write_response_connection_v0)
    write(_QX.pack(message.next_connection_id))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeConnectionsRequest:
    return decode(_REQUEST_READERS, "DescribeConnectionsRequest", buffer, position, end, version)


def encode_request(message: DescribeConnectionsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeConnectionsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeConnectionsResponse:
    return decode(_RESPONSE_READERS, "DescribeConnectionsResponse", buffer, position, end, version)


def encode_response(message: DescribeConnectionsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeConnectionsResponse", message, version)


def begin_response(message: DescribeConnectionsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeConnectionsResponse", message, version)
