"""BeginBatchWriter (32000), versions 0 to 0.

Generated from wire/schemas/begin_batch_writer.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, Buffer
from headrace.wire.primitives.readers import read_compact_nullable_string, read_compact_string, skip_tags
from headrace.wire.primitives.writers import Write, write_compact_nullable_string, write_compact_string

API_KEY = 32000
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_QHI = Struct(">qhi")
_QHIX = Struct(">qhix")
_QQI = Struct(">qqi")
_QQIX = Struct(">qqix")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginBatchWriterRequest:
    owner: str = ""
    run: str = ""
    batch_id: int = 0
    task_attempt_id: int = 0
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginBatchWriterResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    already_committed: bool = False
    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[BeginBatchWriterRequest, int]:
    owner, position = read_compact_string(body, position)
    run, position = read_compact_string(body, position)
    batch_id, task_attempt_id, timeout_ms = _QQI.unpack_from(body, position)
    position += 20
    position = skip_tags(body, position) if body[position] else position + 1
    message = BeginBatchWriterRequest(
        owner=owner,
        run=run,
        batch_id=batch_id,
        task_attempt_id=task_attempt_id,
        timeout_ms=timeout_ms,
    )
    return message, position


def _write_request_v0(write: Write, message: BeginBatchWriterRequest) -> None:
    write_compact_string(write, message.owner)
    write_compact_string(write, message.run)
    write(_QQIX.pack(message.batch_id, message.task_attempt_id, message.timeout_ms))


def _read_response_v0(body: Buffer, position: int) -> tuple[BeginBatchWriterResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    (already_committed,) = BOOL.unpack_from(body, position)
    position += 1
    transactional_id, position = read_compact_nullable_string(body, position)
    producer_id, producer_epoch, timeout_ms = _QHI.unpack_from(body, position)
    position += 14
    position = skip_tags(body, position) if body[position] else position + 1
    message = BeginBatchWriterResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        already_committed=already_committed,
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
    )
    return message, position


def _write_response_v0(write: Write, message: BeginBatchWriterResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(BOOL.pack(message.already_committed))
    write_compact_nullable_string(write, message.transactional_id)
    write(_QHIX.pack(message.producer_id, message.producer_epoch, message.timeout_ms))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> BeginBatchWriterRequest:
    return decode(_REQUEST_READERS, "BeginBatchWriterRequest", buffer, position, end, version)


def encode_request(message: BeginBatchWriterRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "BeginBatchWriterRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> BeginBatchWriterResponse:
    return decode(_RESPONSE_READERS, "BeginBatchWriterResponse", buffer, position, end, version)


def encode_response(message: BeginBatchWriterResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "BeginBatchWriterResponse", message, version)


def begin_response(message: BeginBatchWriterResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "BeginBatchWriterResponse", message, version)
