"""WriteTxnMarkers (27), versions 0 to 2.

Generated from wire/schemas/write_txn_markers.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT32, INT64, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_array,
    read_bool,
    read_compact_array,
    read_compact_numbers,
    read_compact_string,
    read_number,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_numbers,
    write_compact_string,
    write_numbers,
    write_string,
    write_tags,
)

API_KEY = 27
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 1

_IB = Struct(">ib")
_IH = Struct(">ih")
_IHX = Struct(">ihx")
_IX = Struct(">ix")
_QHF = Struct(">qh?")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersRequestTopic:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersRequestMarker:
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: tuple[WriteTxnMarkersRequestTopic, ...] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0
    sync: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersRequest:
    markers: tuple[WriteTxnMarkersRequestMarker, ...] = ()
    metadata_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersResponseTopic:
    name: str = ""
    partitions: tuple[WriteTxnMarkersResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersResponseMarker:
    producer_id: int = 0
    topics: tuple[WriteTxnMarkersResponseTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersResponse:
    markers: tuple[WriteTxnMarkersResponseMarker, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequestTopic, int]:
    name, position = read_string(body, position)
    partition_indexes, position = read_numbers(body, position, INT32)
    message = WriteTxnMarkersRequestTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_topic_v0(write: Write, message: WriteTxnMarkersRequestTopic) -> None:
    write_string(write, message.name)
    write_numbers(write, message.partition_indexes, INT32)


def _read_request_marker_v0(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequestMarker, int]:
    producer_id, producer_epoch, transaction_result = _QHF.unpack_from(body, position)
    position += 11
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    (coordinator_epoch,) = INT32.unpack_from(body, position)
    position += 4
    message = WriteTxnMarkersRequestMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=transaction_result,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
    )
    return message, position


def _write_request_marker_v0(write: Write, message: WriteTxnMarkersRequestMarker) -> None:
    write(_QHF.pack(message.producer_id, message.producer_epoch, message.transaction_result))
    write_array(write, message.topics, _write_request_topic_v0)
    write(INT32.pack(message.coordinator_epoch))


def _read_request_v0(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequest, int]:
    markers, position = read_array(body, position, 19, _read_request_marker_v0)
    message = WriteTxnMarkersRequest(markers=markers)
    return message, position


def _write_request_v0(write: Write, message: WriteTxnMarkersRequest) -> None:
    write_array(write, message.markers, _write_request_marker_v0)


def _read_request_topic_v1(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partition_indexes, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = WriteTxnMarkersRequestTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_topic_v1(write: Write, message: WriteTxnMarkersRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_numbers(write, message.partition_indexes, INT32)
    write(NO_TAGS)


def _read_request_marker_v1(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequestMarker, int]:
    producer_id, producer_epoch, transaction_result = _QHF.unpack_from(body, position)
    position += 11
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v1)
    (coordinator_epoch,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = WriteTxnMarkersRequestMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=transaction_result,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
    )
    return message, position


def _write_request_marker_v1(write: Write, message: WriteTxnMarkersRequestMarker) -> None:
    write(_QHF.pack(message.producer_id, message.producer_epoch, message.transaction_result))
    write_compact_array(write, message.topics, _write_request_topic_v1)
    write(_IX.pack(message.coordinator_epoch))


def _read_request_v1(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequest, int]:
    markers, position = read_compact_array(body, position, 17, _read_request_marker_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = WriteTxnMarkersRequest(markers=markers)
    return message, position


def _write_request_v1(write: Write, message: WriteTxnMarkersRequest) -> None:
    write_compact_array(write, message.markers, _write_request_marker_v1)
    write(NO_TAGS)


def _read_request_marker_v2(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequestMarker, int]:
    producer_id, producer_epoch, transaction_result = _QHF.unpack_from(body, position)
    position += 11
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v1)
    coordinator_epoch, transaction_version = _IB.unpack_from(body, position)
    position += 5
    sync: bool = False
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 10000:
            sync, position = read_bool(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = WriteTxnMarkersRequestMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=transaction_result,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
        sync=sync,
    )
    return message, position


def _write_request_marker_v2(write: Write, message: WriteTxnMarkersRequestMarker) -> None:
    write(_QHF.pack(message.producer_id, message.producer_epoch, message.transaction_result))
    write_compact_array(write, message.topics, _write_request_topic_v1)
    write(_IB.pack(message.coordinator_epoch, message.transaction_version))
    tagged: list[tuple[int, bytes]] = []
    if message.sync:
        parts: list[Buffer] = []
        parts.append(BOOL.pack(message.sync))
        tagged.append((10000, b"".join(parts)))
    write_tags(write, tagged)


def _read_request_v2(body: Buffer, position: int) -> tuple[WriteTxnMarkersRequest, int]:
    markers, position = read_compact_array(body, position, 18, _read_request_marker_v2)
    metadata_offset: int = -1
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 10000:
            metadata_offset, position = read_number(body, position, INT64)
        else:
            position = stop
        end_tag(position, stop)
    message = WriteTxnMarkersRequest(markers=markers, metadata_offset=metadata_offset)
    return message, position


def _write_request_v2(write: Write, message: WriteTxnMarkersRequest) -> None:
    write_compact_array(write, message.markers, _write_request_marker_v2)
    tagged: list[tuple[int, bytes]] = []
    if message.metadata_offset != -1:
        parts: list[Buffer] = []
        parts.append(INT64.pack(message.metadata_offset))
        tagged.append((10000, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    message = WriteTxnMarkersResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v0(write: Write, message: WriteTxnMarkersResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 6, _read_response_partition_v0)
    message = WriteTxnMarkersResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: WriteTxnMarkersResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_marker_v0(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponseMarker, int]:
    (producer_id,) = INT64.unpack_from(body, position)
    position += 8
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = WriteTxnMarkersResponseMarker(producer_id=producer_id, topics=topics)
    return message, position


def _write_response_marker_v0(write: Write, message: WriteTxnMarkersResponseMarker) -> None:
    write(INT64.pack(message.producer_id))
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponse, int]:
    markers, position = read_array(body, position, 12, _read_response_marker_v0)
    message = WriteTxnMarkersResponse(markers=markers)
    return message, position


def _write_response_v0(write: Write, message: WriteTxnMarkersResponse) -> None:
    write_array(write, message.markers, _write_response_marker_v0)


def _read_response_partition_v1(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = WriteTxnMarkersResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v1(write: Write, message: WriteTxnMarkersResponsePartition) -> None:
    write(_IHX.pack(message.partition_index, message.error_code))


def _read_response_topic_v1(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 7, _read_response_partition_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = WriteTxnMarkersResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v1(write: Write, message: WriteTxnMarkersResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v1)
    write(NO_TAGS)


def _read_response_marker_v1(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponseMarker, int]:
    (producer_id,) = INT64.unpack_from(body, position)
    position += 8
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = WriteTxnMarkersResponseMarker(producer_id=producer_id, topics=topics)
    return message, position


def _write_response_marker_v1(write: Write, message: WriteTxnMarkersResponseMarker) -> None:
    write(INT64.pack(message.producer_id))
    write_compact_array(write, message.topics, _write_response_topic_v1)
    write(NO_TAGS)


def _read_response_v1(body: Buffer, position: int) -> tuple[WriteTxnMarkersResponse, int]:
    markers, position = read_compact_array(body, position, 10, _read_response_marker_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = WriteTxnMarkersResponse(markers=markers)
    return message, position


def _write_response_v1(write: Write, message: WriteTxnMarkersResponse) -> None:
    write_compact_array(write, message.markers, _write_response_marker_v1)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> WriteTxnMarkersRequest:
    return decode(_REQUEST_READERS, "WriteTxnMarkersRequest", buffer, position, end, version)


def encode_request(message: WriteTxnMarkersRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "WriteTxnMarkersRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v1,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v1,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> WriteTxnMarkersResponse:
    return decode(_RESPONSE_READERS, "WriteTxnMarkersResponse", buffer, position, end, version)


def encode_response(message: WriteTxnMarkersResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "WriteTxnMarkersResponse", message, version)


def begin_response(message: WriteTxnMarkersResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "WriteTxnMarkersResponse", message, version)
