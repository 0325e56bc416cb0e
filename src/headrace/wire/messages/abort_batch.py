"""AbortBatch (32002), versions 0 to 0.

Generated from wire/schemas/abort_batch.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT64, Buffer
from headrace.wire.primitives.readers import read_compact_nullable_string, read_compact_string, skip_tags
from headrace.wire.primitives.writers import Write, write_compact_nullable_string, write_compact_string

API_KEY = 32002
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_FI = Struct(">?i")
_FIX = Struct(">?ix")
_IH = Struct(">ih")
_QX = Struct(">qx")


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortBatchRequest:
    owner: str = ""
    run: str = ""
    batch_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortBatchResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    already_committed: bool = False
    aborted_writers: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[AbortBatchRequest, int]:
    owner, position = read_compact_string(body, position)
    run, position = read_compact_string(body, position)
    (batch_id,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = AbortBatchRequest(owner=owner, run=run, batch_id=batch_id)
    return message, position


def _write_request_v0(write: Write, message: AbortBatchRequest) -> None:
    write_compact_string(write, message.owner)
    write_compact_string(write, message.run)
    write(_QX.pack(message.batch_id))


def _read_response_v0(body: Buffer, position: int) -> tuple[AbortBatchResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    already_committed, aborted_writers = _FI.unpack_from(body, position)
    position += 5
    position = skip_tags(body, position) if body[position] else position + 1
    message = AbortBatchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        already_committed=already_committed,
        aborted_writers=aborted_writers,
    )
    return message, position


def _write_response_v0(write: Write, message: AbortBatchResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(_FIX.pack(message.already_committed, message.aborted_writers))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AbortBatchRequest:
    return decode(_REQUEST_READERS, "AbortBatchRequest", buffer, position, end, version)


def encode_request(message: AbortBatchRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AbortBatchRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AbortBatchResponse:
    return decode(_RESPONSE_READERS, "AbortBatchResponse", buffer, position, end, version)


def encode_response(message: AbortBatchResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AbortBatchResponse", message, version)


def begin_response(message: AbortBatchResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AbortBatchResponse", message, version)
