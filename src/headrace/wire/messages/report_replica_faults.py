"""ReportReplicaFaults (32036), versions 0 to 0.

Generated from wire/schemas/report_replica_faults.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import read_compact_array, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, uuid, write_compact_array

API_KEY = 32036
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_HX = Struct(">hx")
_IQ = Struct(">iq")
_TIIB = Struct(">16siib")
_TIIBX = Struct(">16siibx")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReplicaFaultsRequestPartition:
    topic_id: bytes = ZERO_UUID
    partition_index: int = 0
    leader_epoch: int = 0
    fault: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReplicaFaultsRequest:
    broker_id: int = 0
    broker_epoch: int = 0
    partitions: tuple[ReportReplicaFaultsRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReplicaFaultsResponse:
    error_code: int = 0


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[ReportReplicaFaultsRequestPartition, int]:
    topic_id, partition_index, leader_epoch, fault = _TIIB.unpack_from(body, position)
    position += 25
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportReplicaFaultsRequestPartition(
        topic_id=topic_id,
        partition_index=partition_index,
        leader_epoch=leader_epoch,
        fault=fault,
    )
    return message, position


def _write_request_partition_v0(write: Write, message: ReportReplicaFaultsRequestPartition) -> None:
    write(_TIIBX.pack(uuid(message.topic_id), message.partition_index, message.leader_epoch, message.fault))


def _read_request_v0(body: Buffer, position: int) -> tuple[ReportReplicaFaultsRequest, int]:
    broker_id, broker_epoch = _IQ.unpack_from(body, position)
    position += 12
    partitions, position = read_compact_array(body, position, 26, _read_request_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportReplicaFaultsRequest(broker_id=broker_id, broker_epoch=broker_epoch, partitions=partitions)
    return message, position


def _write_request_v0(write: Write, message: ReportReplicaFaultsRequest) -> None:
    write(_IQ.pack(message.broker_id, message.broker_epoch))
    write_compact_array(write, message.partitions, _write_request_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ReportReplicaFaultsResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = ReportReplicaFaultsResponse(error_code=error_code)
    return message, position


def _write_response_v0(write: Write, message: ReportReplicaFaultsResponse) -> None:
    write(_HX.pack(message.error_code))


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ReportReplicaFaultsRequest:
    return decode(_REQUEST_READERS, "ReportReplicaFaultsRequest", buffer, position, end, version)


def encode_request(message: ReportReplicaFaultsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ReportReplicaFaultsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ReportReplicaFaultsResponse:
    return decode(_RESPONSE_READERS, "ReportReplicaFaultsResponse", buffer, position, end, version)


def encode_response(message: ReportReplicaFaultsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ReportReplicaFaultsResponse", message, version)


def begin_response(message: ReportReplicaFaultsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ReportReplicaFaultsResponse", message, version)
