"""EndTxn (26), versions 0 to 5.

Generated from wire/schemas/end_txn.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.primitives.readers import read_compact_string, read_string, skip_tags
from headrace.wire.primitives.writers import Write, write_compact_string, write_string

API_KEY = 26
MIN_VERSION = 0
MAX_VERSION = 5
FLEXIBLE_FROM = 3

_IH = Struct(">ih")
_IHQH = Struct(">ihqh")
_IHQHX = Struct(">ihqhx")
_IHX = Struct(">ihx")
_QHF = Struct(">qh?")
_QHFX = Struct(">qh?x")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnRequest:
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


def _read_request_v0(body: Buffer, position: int) -> tuple[EndTxnRequest, int]:
    transactional_id, position = read_string(body, position)
    producer_id, producer_epoch, committed = _QHF.unpack_from(body, position)
    position += 11
    message = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        committed=committed,
    )
    return message, position


def _write_request_v0(write: Write, message: EndTxnRequest) -> None:
    write_string(write, message.transactional_id)
    write(_QHF.pack(message.producer_id, message.producer_epoch, message.committed))


def _read_request_v3(body: Buffer, position: int) -> tuple[EndTxnRequest, int]:
    transactional_id, position = read_compact_string(body, position)
    producer_id, producer_epoch, committed = _QHF.unpack_from(body, position)
    position += 11
    position = skip_tags(body, position) if body[position] else position + 1
    message = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        committed=committed,
    )
    return message, position


def _write_request_v3(write: Write, message: EndTxnRequest) -> None:
    write_compact_string(write, message.transactional_id)
    write(_QHFX.pack(message.producer_id, message.producer_epoch, message.committed))


def _read_response_v0(body: Buffer, position: int) -> tuple[EndTxnResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    message = EndTxnResponse(throttle_time_ms=throttle_time_ms, error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: EndTxnResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))


def _read_response_v3(body: Buffer, position: int) -> tuple[EndTxnResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = EndTxnResponse(throttle_time_ms=throttle_time_ms, error_code=error_code)
    return message, position


def _write_response_v3(write: Write, message: EndTxnResponse) -> None:
    write(_IHX.pack(message.throttle_time_ms, message.error_code))


def _read_response_v5(body: Buffer, position: int) -> tuple[EndTxnResponse, int]:
    throttle_time_ms, error_code, producer_id, producer_epoch = _IHQH.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = EndTxnResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return message, position


def _write_response_v5(write: Write, message: EndTxnResponse) -> None:
    write(_IHQHX.pack(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch))


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v3,
    _read_request_v3,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v3,
    _write_request_v3,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> EndTxnRequest:
    return decode(_REQUEST_READERS, "EndTxnRequest", buffer, position, end, version)


def encode_request(message: EndTxnRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "EndTxnRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
    _read_response_v3,
    _read_response_v3,
    _read_response_v5,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
    _write_response_v3,
    _write_response_v3,
    _write_response_v5,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> EndTxnResponse:
    return decode(_RESPONSE_READERS, "EndTxnResponse", buffer, position, end, version)


def encode_response(message: EndTxnResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "EndTxnResponse", message, version)


def begin_response(message: EndTxnResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "EndTxnResponse", message, version)
