"""CheckRecords (32037), versions 0 to 0.

Generated from wire/schemas/check_records.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import skip_tags
from headrace.wire.primitives.writers import Write, uuid

API_KEY = 32037
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_HX = Struct(">hx")
_TIIQ = Struct(">16siiq")
_TIIQX = Struct(">16siiqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRecordsRequest:
    topic_id: bytes = ZERO_UUID
    partition_index: int = 0
    leader_epoch: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRecordsResponse:
    error_code: int = 0


def _read_request_v0(body: Buffer, position: int) -> tuple[CheckRecordsRequest, int]:
    topic_id, partition_index, leader_epoch, offset = _TIIQ.unpack_from(body, position)
    position += 32
    position = skip_tags(body, position) if body[position] else position + 1
    message = CheckRecordsRequest(
        topic_id=topic_id,
        partition_index=partition_index,
        leader_epoch=leader_epoch,
        offset=offset,
    )
    return message, position


def _write_request_v0(write: Write, message: CheckRecordsRequest) -> None:
    write(_TIIQX.pack(uuid(message.topic_id), message.partition_index, message.leader_epoch, message.offset))


def _read_response_v0(body: Buffer, position: int) -> tuple[CheckRecordsResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = CheckRecordsResponse(error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: CheckRecordsResponse) -> None:
    write(_HX.pack(message.error_code))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> CheckRecordsRequest:
    return decode(_REQUEST_READERS, "CheckRecordsRequest", buffer, position, end, version)


def encode_request(message: CheckRecordsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "CheckRecordsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> CheckRecordsResponse:
    return decode(_RESPONSE_READERS, "CheckRecordsResponse", buffer, position, end, version)


def encode_response(message: CheckRecordsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "CheckRecordsResponse", message, version)


def begin_response(message: CheckRecordsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "CheckRecordsResponse", message, version)
