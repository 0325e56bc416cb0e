"""DescribeBatches (32003), versions 0 to 0.

Generated from wire/schemas/describe_batches.py by `python -m headrace.wire.generator`.
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

API_KEY = 32003
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_QH = Struct(">qh")
_QQ = Struct(">qq")
_QQX = Struct(">qqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeBatchesRequest:
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeBatchesResponseWriter:
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    state: str = ""
    run: str = ""
    batch_id: int = -1
    task_attempt_id: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeBatchesResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    run: str = ""
    committed_batch_id: int = -1
    committed_run: str = ""
    updated_at_ms: int = -1
    writers: tuple[DescribeBatchesResponseWriter, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeBatchesRequest, int]:
    owner, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeBatchesRequest(owner=owner)
    return message, position


def _write_request_v0(write: Write, message: DescribeBatchesRequest) -> None:
    write_compact_string(write, message.owner)
    write(NO_TAGS)


def _read_response_writer_v0(body: Buffer, position: int) -> tuple[DescribeBatchesResponseWriter, int]:
    transactional_id, position = read_compact_string(body, position)
    producer_id, producer_epoch = _QH.unpack_from(body, position)
    position += 10
    state, position = read_compact_string(body, position)
    run, position = read_compact_string(body, position)
    batch_id, task_attempt_id = _QQ.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeBatchesResponseWriter(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        state=state,
        run=run,
        batch_id=batch_id,
        task_attempt_id=task_attempt_id,
    )
    return message, position


def _write_response_writer_v0(write: Write, message: DescribeBatchesResponseWriter) -> None:
    write_compact_string(write, message.transactional_id)
    write(_QH.pack(message.producer_id, message.producer_epoch))
    write_compact_string(write, message.state)
    write_compact_string(write, message.run)
    write(_QQX.pack(message.batch_id, message.task_attempt_id))


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeBatchesResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    run, position = read_compact_string(body, position)
    (committed_batch_id,) = INT64.unpack_from(body, position)
    position += 8
    committed_run, position = read_compact_string(body, position)
    (updated_at_ms,) = INT64.unpack_from(body, position)
    position += 8
    writers, position = read_compact_array(body, position, 30, _read_response_writer_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeBatchesResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        run=run,
        committed_batch_id=committed_batch_id,
        committed_run=committed_run,
        updated_at_ms=updated_at_ms,
        writers=writers,
    )
    return message, position


def _write_response_v0(write: Write, message: DescribeBatchesResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_string(write, message.run)
    write(INT64.pack(message.committed_batch_id))
    write_compact_string(write, message.committed_run)
    write(INT64.pack(message.updated_at_ms))
    write_compact_array(write, message.writers, _write_response_writer_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeBatchesRequest:
    return decode(_REQUEST_READERS, "DescribeBatchesRequest", buffer, position, end, version)


def encode_request(message: DescribeBatchesRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeBatchesRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeBatchesResponse:
    return decode(_RESPONSE_READERS, "DescribeBatchesResponse", buffer, position, end, version)


def encode_response(message: DescribeBatchesResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeBatchesResponse", message, version)


def begin_response(message: DescribeBatchesResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeBatchesResponse", message, version)
