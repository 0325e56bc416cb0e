"""InitProducerId (22), versions 0 to 6.

Generated from wire/schemas/init_producer_id.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
from headrace.wire.primitives.readers import read_compact_nullable_string, read_nullable_string, skip_tags
from headrace.wire.primitives.writers import Write, write_compact_nullable_string, write_nullable_string

API_KEY = 22
MIN_VERSION = 0
MAX_VERSION = 6
FLEXIBLE_FROM = 2

_IHQH = Struct(">ihqh")
_IHQHQH = Struct(">ihqhqh")
_IHQHQHX = Struct(">ihqhqhx")
_IHQHX = Struct(">ihqhx")
_IQH = Struct(">iqh")
_IQHFF = Struct(">iqh??")
_IQHFFX = Struct(">iqh??x")
_IQHX = Struct(">iqhx")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1


def _read_request_v0(body: Buffer, position: int) -> tuple[InitProducerIdRequest, int]:
    transactional_id, position = read_nullable_string(body, position)
    (transaction_timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=transaction_timeout_ms)
    return message, position


def _write_request_v0(write: Write, message: InitProducerIdRequest) -> None:
    write_nullable_string(write, message.transactional_id)
    write(INT32.pack(message.transaction_timeout_ms))


def _read_request_v2(body: Buffer, position: int) -> tuple[InitProducerIdRequest, int]:
    transactional_id, position = read_compact_nullable_string(body, position)
    (transaction_timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=transaction_timeout_ms)
    return message, position


def _write_request_v2(write: Write, message: InitProducerIdRequest) -> None:
    write_compact_nullable_string(write, message.transactional_id)
    write(_IX.pack(message.transaction_timeout_ms))


def _read_request_v3(body: Buffer, position: int) -> tuple[InitProducerIdRequest, int]:
    transactional_id, position = read_compact_nullable_string(body, position)
    transaction_timeout_ms, producer_id, producer_epoch = _IQH.unpack_from(body, position)
    position += 14
    position = skip_tags(body, position) if body[position] else position + 1
    message = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return message, position


def _write_request_v3(write: Write, message: InitProducerIdRequest) -> None:
    write_compact_nullable_string(write, message.transactional_id)
    write(_IQHX.pack(message.transaction_timeout_ms, message.producer_id, message.producer_epoch))


def _read_request_v6(body: Buffer, position: int) -> tuple[InitProducerIdRequest, int]:
    transactional_id, position = read_compact_nullable_string(body, position)
    (
        transaction_timeout_ms,
        producer_id,
        producer_epoch,
        enable2_pc,
        keep_prepared_txn,
    ) = _IQHFF.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        enable2_pc=enable2_pc,
        keep_prepared_txn=keep_prepared_txn,
    )
    return message, position


def _write_request_v6(write: Write, message: InitProducerIdRequest) -> None:
    write_compact_nullable_string(write, message.transactional_id)
    write(
        _IQHFFX.pack(
            message.transaction_timeout_ms,
            message.producer_id,
            message.producer_epoch,
            message.enable2_pc,
            message.keep_prepared_txn,
        )
    )


def _read_response_v0(body: Buffer, position: int) -> tuple[InitProducerIdResponse, int]:
    throttle_time_ms, error_code, producer_id, producer_epoch = _IHQH.unpack_from(body, position)
    position += 16
    message = InitProducerIdResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return message, position


def _write_response_v0(write: Write, message: InitProducerIdResponse) -> None:
    write(_IHQH.pack(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch))


def _read_response_v2(body: Buffer, position: int) -> tuple[InitProducerIdResponse, int]:
    throttle_time_ms, error_code, producer_id, producer_epoch = _IHQH.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = InitProducerIdResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return message, position


def _write_response_v2(write: Write, message: InitProducerIdResponse) -> None:
    write(_IHQHX.pack(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch))


def _read_response_v6(body: Buffer, position: int) -> tuple[InitProducerIdResponse, int]:
    (
        throttle_time_ms,
        error_code,
        producer_id,
        producer_epoch,
        ongoing_txn_producer_id,
        ongoing_txn_producer_epoch,
    ) = _IHQHQH.unpack_from(body, position)
    position += 26
    position = skip_tags(body, position) if body[position] else position + 1
    message = InitProducerIdResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        ongoing_txn_producer_id=ongoing_txn_producer_id,
        ongoing_txn_producer_epoch=ongoing_txn_producer_epoch,
    )
    return message, position


def _write_response_v6(write: Write, message: InitProducerIdResponse) -> None:
    write(
        _IHQHQHX.pack(
            message.throttle_time_ms,
            message.error_code,
            message.producer_id,
            message.producer_epoch,
            message.ongoing_txn_producer_id,
            message.ongoing_txn_producer_epoch,
        )
    )


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
    _read_request_v3,
    _read_request_v3,
    _read_request_v3,
    _read_request_v6,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
    _write_request_v3,
    _write_request_v3,
    _write_request_v3,
    _write_request_v6,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> InitProducerIdRequest:
    return decode(_REQUEST_READERS, "InitProducerIdRequest", buffer, position, end, version)


def encode_request(message: InitProducerIdRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "InitProducerIdRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
    _read_response_v2,
    _read_response_v2,
    _read_response_v2,
    _read_response_v6,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
    _write_response_v2,
    _write_response_v2,
    _write_response_v2,
    _write_response_v6,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> InitProducerIdResponse:
    return decode(_RESPONSE_READERS, "InitProducerIdResponse", buffer, position, end, version)


def encode_response(message: InitProducerIdResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "InitProducerIdResponse", message, version)


def begin_response(message: InitProducerIdResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "InitProducerIdResponse", message, version)
