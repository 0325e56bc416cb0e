"""ScanManifest (32010), versions 0 to 0.

Generated from wire/schemas/scan_manifest.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT64, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 32010
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_IQ = Struct(">iq")
_IQQQQ = Struct(">iqqqq")
_IQX = Struct(">iqx")
_ITI = Struct(">i16si")
_QQ = Struct(">qq")
_QQF = Struct(">qq?")
_QQFX = Struct(">qq?x")
_QQQ = Struct(">qqq")
_QQQX = Struct(">qqqx")
_QX = Struct(">qx")
_TIB = Struct(">16sib")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestRequestPartition:
    partition_index: int = 0
    from_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestRequestTopic:
    name: str = ""
    partitions: tuple[ScanManifestRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestRequest:
    lease_id: bytes = ZERO_UUID
    lease_ms: int = 0
    isolation_level: int = 0
    topics: tuple[ScanManifestRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestResponseDirectory:
    directory_id: bytes = ZERO_UUID
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestResponseLeaderEpoch:
    epoch: int = 0
    start_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestResponseSegment:
    base_offset: int = 0
    end_offset: int = 0
    file_name: str = ""
    size_bytes: int = 0
    max_timestamp: int = -1
    is_closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestResponseAbortedTransaction:
    producer_id: int = 0
    first_offset: int = 0
    last_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    directory_id: bytes = ZERO_UUID
    folder: str = ""
    leader_epoch: int = -1
    start_offset: int = -1
    end_offset: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    leader_epochs: tuple[ScanManifestResponseLeaderEpoch, ...] = ()
    segments: tuple[ScanManifestResponseSegment, ...] = ()
    aborted_transactions: tuple[ScanManifestResponseAbortedTransaction, ...] = ()
    next_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestResponseTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[ScanManifestResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanManifestResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    cluster_id: str = ""
    node_id: int = 0
    lease_id: bytes = ZERO_UUID
    lease_ms: int = 0
    directories: tuple[ScanManifestResponseDirectory, ...] = ()
    topics: tuple[ScanManifestResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[ScanManifestRequestPartition, int]:
    partition_index, from_offset = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestRequestPartition(partition_index=partition_index, from_offset=from_offset)
    return message, position


def _write_request_partition_v0(write: Write, message: ScanManifestRequestPartition) -> None:
    write(_IQX.pack(message.partition_index, message.from_offset))


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[ScanManifestRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 13, _read_request_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: ScanManifestRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_request_partition_v0)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[ScanManifestRequest, int]:
    lease_id, lease_ms, isolation_level = _TIB.unpack_from(body, position)
    position += 21
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestRequest(lease_id=lease_id, lease_ms=lease_ms, isolation_level=isolation_level, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: ScanManifestRequest) -> None:
    write(_TIB.pack(uuid(message.lease_id), message.lease_ms, message.isolation_level))
    write_compact_array(write, message.topics, _write_request_topic_v0)
    write(NO_TAGS)


def _read_response_directory_v0(body: Buffer, position: int) -> tuple[ScanManifestResponseDirectory, int]:
    (directory_id,) = UUID.unpack_from(body, position)
    position += 16
    path, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestResponseDirectory(directory_id=directory_id, path=path)
    return message, position


def _write_response_directory_v0(write: Write, message: ScanManifestResponseDirectory) -> None:
    write(UUID.pack(uuid(message.directory_id)))
    write_compact_string(write, message.path)
    write(NO_TAGS)


def _read_response_leader_epoch_v0(body: Buffer, position: int) -> tuple[ScanManifestResponseLeaderEpoch, int]:
    epoch, start_offset = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestResponseLeaderEpoch(epoch=epoch, start_offset=start_offset)
    return message, position


def _write_response_leader_epoch_v0(write: Write, message: ScanManifestResponseLeaderEpoch) -> None:
    write(_IQX.pack(message.epoch, message.start_offset))


def _read_response_segment_v0(body: Buffer, position: int) -> tuple[ScanManifestResponseSegment, int]:
    base_offset, end_offset = _QQ.unpack_from(body, position)
    position += 16
    file_name, position = read_compact_string(body, position)
    size_bytes, max_timestamp, is_closed = _QQF.unpack_from(body, position)
    position += 17
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestResponseSegment(
        base_offset=base_offset,
        end_offset=end_offset,
        file_name=file_name,
        size_bytes=size_bytes,
        max_timestamp=max_timestamp,
        is_closed=is_closed,
    )
    return message, position


def _write_response_segment_v0(write: Write, message: ScanManifestResponseSegment) -> None:
    write(_QQ.pack(message.base_offset, message.end_offset))
    write_compact_string(write, message.file_name)
    write(_QQFX.pack(message.size_bytes, message.max_timestamp, message.is_closed))


def _read_response_aborted_transaction_v0(
    body: Buffer, position: int
) -> tuple[ScanManifestResponseAbortedTransaction, int]:
    producer_id, first_offset, last_offset = _QQQ.unpack_from(body, position)
    position += 24
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestResponseAbortedTransaction(
        producer_id=producer_id,
        first_offset=first_offset,
        last_offset=last_offset,
    )
    return message, position


def _write_response_aborted_transaction_v0(write: Write, message: ScanManifestResponseAbortedTransaction) -> None:
    write(_QQQX.pack(message.producer_id, message.first_offset, message.last_offset))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[ScanManifestResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    (directory_id,) = UUID.unpack_from(body, position)
    position += 16
    folder, position = read_compact_string(body, position)
    leader_epoch, start_offset, end_offset, high_watermark, last_stable_offset = _IQQQQ.unpack_from(body, position)
    position += 36
    leader_epochs, position = read_compact_array(body, position, 13, _read_response_leader_epoch_v0)
    segments, position = read_compact_array(body, position, 35, _read_response_segment_v0)
    aborted_transactions, position = read_compact_array(body, position, 25, _read_response_aborted_transaction_v0)
    (next_offset,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
        directory_id=directory_id,
        folder=folder,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        end_offset=end_offset,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        leader_epochs=leader_epochs,
        segments=segments,
        aborted_transactions=aborted_transactions,
        next_offset=next_offset,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: ScanManifestResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(UUID.pack(uuid(message.directory_id)))
    write_compact_string(write, message.folder)
    write(
        _IQQQQ.pack(
            message.leader_epoch,
            message.start_offset,
            message.end_offset,
            message.high_watermark,
            message.last_stable_offset,
        )
    )
    write_compact_array(write, message.leader_epochs, _write_response_leader_epoch_v0)
    write_compact_array(write, message.segments, _write_response_segment_v0)
    write_compact_array(write, message.aborted_transactions, _write_response_aborted_transaction_v0)
    write(_QX.pack(message.next_offset))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[ScanManifestResponseTopic, int]:
    name, position = read_compact_string(body, position)
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 72, _read_response_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestResponseTopic(name=name, topic_id=topic_id, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: ScanManifestResponseTopic) -> None:
    write_compact_string(write, message.name)
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ScanManifestResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    cluster_id, position = read_compact_string(body, position)
    node_id, lease_id, lease_ms = _ITI.unpack_from(body, position)
    position += 24
    directories, position = read_compact_array(body, position, 18, _read_response_directory_v0)
    topics, position = read_compact_array(body, position, 19, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ScanManifestResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        cluster_id=cluster_id,
        node_id=node_id,
        lease_id=lease_id,
        lease_ms=lease_ms,
        directories=directories,
        topics=topics,
    )
    return message, position


def _write_response_v0(write: Write, message: ScanManifestResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_string(write, message.cluster_id)
    write(_ITI.pack(message.node_id, uuid(message.lease_id), message.lease_ms))
    write_compact_array(write, message.directories, _write_response_directory_v0)
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ScanManifestRequest:
    return decode(_REQUEST_READERS, "ScanManifestRequest", buffer, position, end, version)


def encode_request(message: ScanManifestRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ScanManifestRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ScanManifestResponse:
    return decode(_RESPONSE_READERS, "ScanManifestResponse", buffer, position, end, version)


def encode_response(message: ScanManifestResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ScanManifestResponse", message, version)


def begin_response(message: ScanManifestResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ScanManifestResponse", message, version)
