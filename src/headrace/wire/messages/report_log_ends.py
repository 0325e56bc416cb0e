"""ReportLogEnds (32035), versions 0 to 0.

Generated from wire/schemas/report_log_ends.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import read_compact_array, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, uuid, write_compact_array

API_KEY = 32035
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_HX = Struct(">hx")
_IQ = Struct(">iq")
_TIIQ = Struct(">16siiq")
_TIIQX = Struct(">16siiqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLogEndsRequestPartition:
    topic_id: bytes = ZERO_UUID
    partition_index: int = 0
    leader_epoch: int = 0
    end_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLogEndsRequest:
    broker_id: int = 0
    broker_epoch: int = 0
    partitions: tuple[ReportLogEndsRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLogEndsResponse:
    error_code: int = 0


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[ReportLogEndsRequestPartition, int]:
    topic_id, partition_index, leader_epoch, end_offset = _TIIQ.unpack_from(body, position)
    position += 32
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportLogEndsRequestPartition(
        topic_id=topic_id,
        partition_index=partition_index,
        leader_epoch=leader_epoch,
        end_offset=end_offset,
    )
    return message, position


def _write_request_partition_v0(write: Write, message: ReportLogEndsRequestPartition) -> None:
    write(_TIIQX.pack(uuid(message.topic_id), message.partition_index, message.leader_epoch, message.end_offset))


def _read_request_v0(body: Buffer, position: int) -> tuple[ReportLogEndsRequest, int]:
    broker_id, broker_epoch = _IQ.unpack_from(body, position)
    position += 12
    partitions, position = read_compact_array(body, position, 33, _read_request_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportLogEndsRequest(broker_id=broker_id, broker_epoch=broker_epoch, partitions=partitions)
    return message, position


def _write_request_v0(write: Write, message: ReportLogEndsRequest) -> None:
    write(_IQ.pack(message.broker_id, message.broker_epoch))
    write_compact_array(write, message.partitions, _write_request_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ReportLogEndsResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportLogEndsResponse(error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: ReportLogEndsResponse) -> None:
    write(_HX.pack(message.error_code))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ReportLogEndsRequest:
    return decode(_REQUEST_READERS, "ReportLogEndsRequest", buffer, position, end, version)


def encode_request(message: ReportLogEndsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ReportLogEndsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ReportLogEndsResponse:
    return decode(_RESPONSE_READERS, "ReportLogEndsResponse", buffer, position, end, version)


def encode_response(message: ReportLogEndsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ReportLogEndsResponse", message, version)


def begin_response(message: ReportLogEndsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ReportLogEndsResponse", message, version)
