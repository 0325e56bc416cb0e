"""DescribeCluster (60), versions 0 to 2.

Generated from wire/schemas/describe_cluster.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT8, INT32, Buffer
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

API_KEY = 60
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 0

_FB = Struct(">?b")
_FBF = Struct(">?b?")
_FBFX = Struct(">?b?x")
_FBX = Struct(">?bx")
_FX = Struct(">?x")
_IH = Struct(">ih")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterResponseBroker:
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterResponseBroker, ...] = ()
    cluster_authorized_operations: int = -2147483648


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeClusterRequest, int]:
    (include_cluster_authorized_operations,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterRequest(include_cluster_authorized_operations=include_cluster_authorized_operations)
    return message, position


def _write_request_v0(write: Write, message: DescribeClusterRequest) -> None:
    write(_FX.pack(message.include_cluster_authorized_operations))


def _read_request_v1(body: Buffer, position: int) -> tuple[DescribeClusterRequest, int]:
    include_cluster_authorized_operations, endpoint_type = _FB.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterRequest(
        include_cluster_authorized_operations=include_cluster_authorized_operations,
        endpoint_type=endpoint_type,
    )
    return message, position


def _write_request_v1(write: Write, message: DescribeClusterRequest) -> None:
    write(_FBX.pack(message.include_cluster_authorized_operations, message.endpoint_type))


def _read_request_v2(body: Buffer, position: int) -> tuple[DescribeClusterRequest, int]:
    include_cluster_authorized_operations, endpoint_type, include_fenced_brokers = _FBF.unpack_from(body, position)
    position += 3
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterRequest(
        include_cluster_authorized_operations=include_cluster_authorized_operations,
        endpoint_type=endpoint_type,
        include_fenced_brokers=include_fenced_brokers,
    )
    return message, position


def _write_request_v2(write: Write, message: DescribeClusterRequest) -> None:
    write(
        _FBFX.pack(message.include_cluster_authorized_operations, message.endpoint_type, message.include_fenced_brokers)
    )


def _read_response_broker_v0(body: Buffer, position: int) -> tuple[DescribeClusterResponseBroker, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_compact_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    rack, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterResponseBroker(broker_id=broker_id, host=host, port=port, rack=rack)
    return message, position


def _write_response_broker_v0(write: Write, message: DescribeClusterResponseBroker) -> None:
    write(INT32.pack(message.broker_id))
    write_compact_string(write, message.host)
    write(INT32.pack(message.port))
    write_compact_nullable_string(write, message.rack)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeClusterResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    cluster_id, position = read_compact_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 11, _read_response_broker_v0)
    (cluster_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        cluster_id=cluster_id,
        controller_id=controller_id,
        brokers=brokers,
        cluster_authorized_operations=cluster_authorized_operations,
    )
    return message, position


def _write_response_v0(write: Write, message: DescribeClusterResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.brokers, _write_response_broker_v0)
    write(_IX.pack(message.cluster_authorized_operations))


def _read_response_v1(body: Buffer, position: int) -> tuple[DescribeClusterResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    (endpoint_type,) = INT8.unpack_from(body, position)
    position += 1
    cluster_id, position = read_compact_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 11, _read_response_broker_v0)
    (cluster_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        endpoint_type=endpoint_type,
        cluster_id=cluster_id,
        controller_id=controller_id,
        brokers=brokers,
        cluster_authorized_operations=cluster_authorized_operations,
    )
    return message, position


def _write_response_v1(write: Write, message: DescribeClusterResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(INT8.pack(message.endpoint_type))
    write_compact_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.brokers, _write_response_broker_v0)
    write(_IX.pack(message.cluster_authorized_operations))


def _read_response_broker_v2(body: Buffer, position: int) -> tuple[DescribeClusterResponseBroker, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_compact_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    rack, position = read_compact_nullable_string(body, position)
    (is_fenced,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterResponseBroker(broker_id=broker_id, host=host, port=port, rack=rack, is_fenced=is_fenced)
    return message, position


def _write_response_broker_v2(write: Write, message: DescribeClusterResponseBroker) -> None:
    write(INT32.pack(message.broker_id))
    write_compact_string(write, message.host)
    write(INT32.pack(message.port))
    write_compact_nullable_string(write, message.rack)
    write(_FX.pack(message.is_fenced))


def _read_response_v2(body: Buffer, position: int) -> tuple[DescribeClusterResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    (endpoint_type,) = INT8.unpack_from(body, position)
    position += 1
    cluster_id, position = read_compact_string(body, position)
    (controller_id,) = INT32.unpack_from(body, position)
    position += 4
    brokers, position = read_compact_array(body, position, 12, _read_response_broker_v2)
    (cluster_authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeClusterResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        endpoint_type=endpoint_type,
        cluster_id=cluster_id,
        controller_id=controller_id,
        brokers=brokers,
        cluster_authorized_operations=cluster_authorized_operations,
    )
    return message, position


def _write_response_v2(write: Write, message: DescribeClusterResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(INT8.pack(message.endpoint_type))
    write_compact_string(write, message.cluster_id)
    write(INT32.pack(message.controller_id))
    write_compact_array(write, message.brokers, _write_response_broker_v2)
    write(_IX.pack(message.cluster_authorized_operations))


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeClusterRequest:
    return decode(_REQUEST_READERS, "DescribeClusterRequest", buffer, position, end, version)


def encode_request(message: DescribeClusterRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeClusterRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeClusterResponse:
    return decode(_RESPONSE_READERS, "DescribeClusterResponse", buffer, position, end, version)


def encode_response(message: DescribeClusterResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeClusterResponse", message, version)


def begin_response(message: DescribeClusterResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeClusterResponse", message, version)
