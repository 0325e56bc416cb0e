"""CommitBatch (32001), versions 0 to 1.

Generated from wire/schemas/commit_batch.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT64, Buffer
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

API_KEY = 32001
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 0

_FX = Struct(">?x")
_IH = Struct(">ih")
_QH = Struct(">qh")
_QHX = Struct(">qhx")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBatchRequestWriter:
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBatchRequest:
    owner: str = ""
    run: str = ""
    batch_id: int = 0
    writers: tuple[CommitBatchRequestWriter, ...] = ()
    write_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBatchResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    already_committed: bool = False


def _read_request_writer_v0(body: Buffer, position: int) -> tuple[CommitBatchRequestWriter, int]:
    transactional_id, position = read_compact_string(body, position)
    producer_id, producer_epoch = _QH.unpack_from(body, position)
    position += 10
    position = skip_tags(body, position) if body[position] else position + 1
    message = CommitBatchRequestWriter(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return message, position


def _write_request_writer_v0(write: Write, message: CommitBatchRequestWriter) -> None:
    write_compact_string(write, message.transactional_id)
    write(_QHX.pack(message.producer_id, message.producer_epoch))


def _read_request_v0(body: Buffer, position: int) -> tuple[CommitBatchRequest, int]:
    owner, position = read_compact_string(body, position)
    run, position = read_compact_string(body, position)
    (batch_id,) = INT64.unpack_from(body, position)
    position += 8
    writers, position = read_compact_array(body, position, 12, _read_request_writer_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CommitBatchRequest(owner=owner, run=run, batch_id=batch_id, writers=writers)
    return message, position


def _write_request_v0(write: Write, message: CommitBatchRequest) -> None:
    write_compact_string(write, message.owner)
    write_compact_string(write, message.run)
    write(INT64.pack(message.batch_id))
    write_compact_array(write, message.writers, _write_request_writer_v0)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[CommitBatchRequest, int]:
    owner, position = read_compact_string(body, position)
    run, position = read_compact_string(body, position)
    (batch_id,) = INT64.unpack_from(body, position)
    position += 8
    writers, position = read_compact_array(body, position, 12, _read_request_writer_v0)
    write_id, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = CommitBatchRequest(owner=owner, run=run, batch_id=batch_id, writers=writers, write_id=write_id)
    return message, position


def _write_request_v1(write: Write, message: CommitBatchRequest) -> None:
    write_compact_string(write, message.owner)
    write_compact_string(write, message.run)
    write(INT64.pack(message.batch_id))
    write_compact_array(write, message.writers, _write_request_writer_v0)
    write_compact_string(write, message.write_id)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[CommitBatchResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    (already_committed,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = CommitBatchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        already_committed=already_committed,
    )
    return message, position


def _write_response_v0(write: Write, message: CommitBatchResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(_FX.pack(message.already_committed))


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> CommitBatchRequest:
    return decode(_REQUEST_READERS, "CommitBatchRequest", buffer, position, end, version)


def encode_request(message: CommitBatchRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "CommitBatchRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> CommitBatchResponse:
    return decode(_RESPONSE_READERS, "CommitBatchResponse", buffer, position, end, version)


def encode_response(message: CommitBatchResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "CommitBatchResponse", message, version)


def begin_response(message: CommitBatchResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "CommitBatchResponse", message, version)
