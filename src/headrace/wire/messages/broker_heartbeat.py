"""BrokerHeartbeat (63), versions 0 to 1.

Generated from wire/schemas/broker_heartbeat.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT32, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_bool,
    read_compact_array,
    read_number,
    read_tag,
    read_tag_count,
    read_uuid,
    skip_tags,
)
from headrace.wire.primitives.writers import Write, write_compact_array, write_tags, write_uuid

API_KEY = 63
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 0

_IHFFF = Struct(">ih???")
_IHFFFX = Struct(">ih???x")
_IQQFF = Struct(">iqq??")
_IQQFFX = Struct(">iqq??x")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest:
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[bytes, ...] = ()
    turn_ms: int = 0
    append_ms: int = 0
    is_full: bool = False
    sync_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


def _read_request_v0(body: Buffer, position: int) -> tuple[BrokerHeartbeatRequest, int]:
    broker_id, broker_epoch, current_metadata_offset, want_fence, want_shut_down = _IQQFF.unpack_from(body, position)
    position += 22
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        current_metadata_offset=current_metadata_offset,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
    )
    return message, position


def _write_request_v0(write: Write, message: BrokerHeartbeatRequest) -> None:
    write(
        _IQQFFX.pack(
            message.broker_id,
            message.broker_epoch,
            message.current_metadata_offset,
            message.want_fence,
            message.want_shut_down,
        )
    )


def _read_request_v1(body: Buffer, position: int) -> tuple[BrokerHeartbeatRequest, int]:
    broker_id, broker_epoch, current_metadata_offset, want_fence, want_shut_down = _IQQFF.unpack_from(body, position)
    position += 22
    offline_log_dirs: tuple[bytes, ...] = ()
    turn_ms: int = 0
    append_ms: int = 0
    is_full: bool = False
    sync_ms: int = 0
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            offline_log_dirs, position = read_compact_array(body, position, 16, read_uuid)
        elif tag == 10000:
            turn_ms, position = read_number(body, position, INT32)
        elif tag == 10001:
            append_ms, position = read_number(body, position, INT32)
        elif tag == 10002:
            is_full, position = read_bool(body, position)
        elif tag == 10003:
            sync_ms, position = read_number(body, position, INT32)
        else:
            position = stop
        end_tag(position, stop)
    message = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        current_metadata_offset=current_metadata_offset,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
        offline_log_dirs=offline_log_dirs,
        turn_ms=turn_ms,
        append_ms=append_ms,
        is_full=is_full,
        sync_ms=sync_ms,
    )
    return message, position


def _write_request_v1(write: Write, message: BrokerHeartbeatRequest) -> None:
    write(
        _IQQFF.pack(
            message.broker_id,
            message.broker_epoch,
            message.current_metadata_offset,
            message.want_fence,
            message.want_shut_down,
        )
    )
    tagged: list[tuple[int, bytes]] = []
    if message.offline_log_dirs:
        parts: list[Buffer] = []
        write_compact_array(parts.append, message.offline_log_dirs, write_uuid)
        tagged.append((0, b"".join(parts)))
    if message.turn_ms:
        parts = []
        parts.append(INT32.pack(message.turn_ms))
        tagged.append((10000, b"".join(parts)))
    if message.append_ms:
        parts = []
        parts.append(INT32.pack(message.append_ms))
        tagged.append((10001, b"".join(parts)))
    if message.is_full:
        parts = []
        parts.append(BOOL.pack(message.is_full))
        tagged.append((10002, b"".join(parts)))
    if message.sync_ms:
        parts = []
        parts.append(INT32.pack(message.sync_ms))
        tagged.append((10003, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_v0(body: Buffer, position: int) -> tuple[BrokerHeartbeatResponse, int]:
    throttle_time_ms, error_code, is_caught_up, is_fenced, should_shut_down = _IHFFF.unpack_from(body, position)
    position += 9
    position = skip_tags(body, position) if body[position] else position + 1
    message = BrokerHeartbeatResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        is_caught_up=is_caught_up,
        is_fenced=is_fenced,
        should_shut_down=should_shut_down,
    )
    return message, position


def _write_response_v0(write: Write, message: BrokerHeartbeatResponse) -> None:
    write(
        _IHFFFX.pack(
            message.throttle_time_ms,
            message.error_code,
            message.is_caught_up,
            message.is_fenced,
            message.should_shut_down,
        )
    )


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> BrokerHeartbeatRequest:
    return decode(_REQUEST_READERS, "BrokerHeartbeatRequest", buffer, position, end, version)


def encode_request(message: BrokerHeartbeatRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "BrokerHeartbeatRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> BrokerHeartbeatResponse:
    return decode(_RESPONSE_READERS, "BrokerHeartbeatResponse", buffer, position, end, version)


def encode_response(message: BrokerHeartbeatResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "BrokerHeartbeatResponse", message, version)


def begin_response(message: BrokerHeartbeatResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "BrokerHeartbeatResponse", message, version)
