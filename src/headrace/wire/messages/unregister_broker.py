"""UnregisterBroker (64), versions 0 to 0.

Generated from wire/schemas/unregister_broker.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
from headrace.wire.primitives.readers import read_compact_nullable_string, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, write_compact_nullable_string

API_KEY = 64
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRequest:
    broker_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


def _read_request_v0(body: Buffer, position: int) -> tuple[UnregisterBrokerRequest, int]:
    (broker_id,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = UnregisterBrokerRequest(broker_id=broker_id)
    return message, position


def _write_request_v0(write: Write, message: UnregisterBrokerRequest) -> None:
    write(_IX.pack(message.broker_id))


def _read_response_v0(body: Buffer, position: int) -> tuple[UnregisterBrokerResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = UnregisterBrokerResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
    )
    return message, position


def _write_response_v0(write: Write, message: UnregisterBrokerResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> UnregisterBrokerRequest:
    return decode(_REQUEST_READERS, "UnregisterBrokerRequest", buffer, position, end, version)


def encode_request(message: UnregisterBrokerRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "UnregisterBrokerRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> UnregisterBrokerResponse:
    return decode(_RESPONSE_READERS, "UnregisterBrokerResponse", buffer, position, end, version)


def encode_response(message: UnregisterBrokerResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "UnregisterBrokerResponse", message, version)


def begin_response(message: UnregisterBrokerResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "UnregisterBrokerResponse", message, version)
