"""AddOffsetsToTxn (25), versions 0 to 4.

Generated from wire/schemas/add_offsets_to_txn.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.primitives.readers import read_compact_string, read_string, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, write_compact_string, write_string

API_KEY = 25
MIN_VERSION = 0
MAX_VERSION = 4
FLEXIBLE_FROM = 3

_IH = Struct(">ih")
_IHX = Struct(">ihx")
_QH = Struct(">qh")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOffsetsToTxnRequest:
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = 0
    error_code: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[AddOffsetsToTxnRequest, int]:
    transactional_id, position = read_string(body, position)
    producer_id, producer_epoch = _QH.unpack_from(body, position)
    position += 10
    group_id, position = read_string(body, position)
    message = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        group_id=group_id,
    )
    return message, position


def _write_request_v0(write: Write, message: AddOffsetsToTxnRequest) -> None:
    write_string(write, message.transactional_id)
    write(_QH.pack(message.producer_id, message.producer_epoch))
    write_string(write, message.group_id)


def _read_request_v3(body: Buffer, position: int) -> tuple[AddOffsetsToTxnRequest, int]:
    transactional_id, position = read_compact_string(body, position)
    producer_id, producer_epoch = _QH.unpack_from(body, position)
    position += 10
    group_id, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        group_id=group_id,
    )
    return message, position


def _write_request_v3(write: Write, message: AddOffsetsToTxnRequest) -> None:
    write_compact_string(write, message.transactional_id)
    write(_QH.pack(message.producer_id, message.producer_epoch))
    write_compact_string(write, message.group_id)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[AddOffsetsToTxnResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    message = AddOffsetsToTxnResponse(throttle_time_ms=throttle_time_ms, error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: AddOffsetsToTxnResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))


def _read_response_v3(body: Buffer, position: int) -> tuple[AddOffsetsToTxnResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddOffsetsToTxnResponse(throttle_time_ms=throttle_time_ms, error_code=error_code)
    return message, position


def _write_response_v3(write: Write, message: AddOffsetsToTxnResponse) -> None:
    write(_IHX.pack(message.throttle_time_ms, message.error_code))


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v3,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v3,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AddOffsetsToTxnRequest:
    return decode(_REQUEST_READERS, "AddOffsetsToTxnRequest", buffer, position, end, version)


def encode_request(message: AddOffsetsToTxnRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AddOffsetsToTxnRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
    _read_response_v3,
    _read_response_v3,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
    _write_response_v3,
    _write_response_v3,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AddOffsetsToTxnResponse:
    return decode(_RESPONSE_READERS, "AddOffsetsToTxnResponse", buffer, position, end, version)


def encode_response(message: AddOffsetsToTxnResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AddOffsetsToTxnResponse", message, version)


def begin_response(message: AddOffsetsToTxnResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AddOffsetsToTxnResponse", message, version)
