"""OffsetForLeaderEpoch (23), versions 0 to 4.

Generated from wire/schemas/offset_for_leader_epoch.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
from headrace.wire.primitives.readers import read_array, read_compact_array, read_compact_string, read_string, skip_tags
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_string,
    write_string,
)

API_KEY = 23
MIN_VERSION = 0
MAX_VERSION = 4
FLEXIBLE_FROM = 4

_HIIQ = Struct(">hiiq")
_HIIQX = Struct(">hiiqx")
_HIQ = Struct(">hiq")
_II = Struct(">ii")
_III = Struct(">iii")
_IIIX = Struct(">iiix")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequestPartition:
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequestTopic:
    topic: str = ""
    partitions: tuple[OffsetForLeaderEpochRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    replica_id: int = -2
    topics: tuple[OffsetForLeaderEpochRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponsePartition:
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponseTopic:
    topic: str = ""
    partitions: tuple[OffsetForLeaderEpochResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = 0
    topics: tuple[OffsetForLeaderEpochResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequestPartition, int]:
    partition, leader_epoch = _II.unpack_from(body, position)
    position += 8
    message = OffsetForLeaderEpochRequestPartition(partition=partition, leader_epoch=leader_epoch)
    return message, position


def _write_request_partition_v0(write: Write, message: OffsetForLeaderEpochRequestPartition) -> None:
    write(_II.pack(message.partition, message.leader_epoch))


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequestTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 8, _read_request_partition_v0)
    message = OffsetForLeaderEpochRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: OffsetForLeaderEpochRequestTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_request_partition_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = OffsetForLeaderEpochRequest(topics=topics)
    return message, position


def _write_request_v0(write: Write, message: OffsetForLeaderEpochRequest) -> None:
    write_array(write, message.topics, _write_request_topic_v0)


def _read_request_partition_v2(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequestPartition, int]:
    partition, current_leader_epoch, leader_epoch = _III.unpack_from(body, position)
    position += 12
    message = OffsetForLeaderEpochRequestPartition(
        partition=partition,
        current_leader_epoch=current_leader_epoch,
        leader_epoch=leader_epoch,
    )
    return message, position


def _write_request_partition_v2(write: Write, message: OffsetForLeaderEpochRequestPartition) -> None:
    write(_III.pack(message.partition, message.current_leader_epoch, message.leader_epoch))


def _read_request_topic_v2(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequestTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 12, _read_request_partition_v2)
    message = OffsetForLeaderEpochRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v2(write: Write, message: OffsetForLeaderEpochRequestTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_request_partition_v2)


def _read_request_v2(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    topics, position = read_array(body, position, 6, _read_request_topic_v2)
    message = OffsetForLeaderEpochRequest(topics=topics)
    return message, position


def _write_request_v2(write: Write, message: OffsetForLeaderEpochRequest) -> None:
    write_array(write, message.topics, _write_request_topic_v2)


def _read_request_v3(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    (replica_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_request_topic_v2)
    message = OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics)
    return message, position


def _write_request_v3(write: Write, message: OffsetForLeaderEpochRequest) -> None:
    write(INT32.pack(message.replica_id))
    write_array(write, message.topics, _write_request_topic_v2)


def _read_request_partition_v4(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequestPartition, int]:
    partition, current_leader_epoch, leader_epoch = _III.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetForLeaderEpochRequestPartition(
        partition=partition,
        current_leader_epoch=current_leader_epoch,
        leader_epoch=leader_epoch,
    )
    return message, position


def _write_request_partition_v4(write: Write, message: OffsetForLeaderEpochRequestPartition) -> None:
    write(_IIIX.pack(message.partition, message.current_leader_epoch, message.leader_epoch))


def _read_request_topic_v4(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequestTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 13, _read_request_partition_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetForLeaderEpochRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v4(write: Write, message: OffsetForLeaderEpochRequestTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_array(write, message.partitions, _write_request_partition_v4)
    write(NO_TAGS)


def _read_request_v4(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    (replica_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics)
    return message, position


def _write_request_v4(write: Write, message: OffsetForLeaderEpochRequest) -> None:
    write(INT32.pack(message.replica_id))
    write_compact_array(write, message.topics, _write_request_topic_v4)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponsePartition, int]:
    error_code, partition, end_offset = _HIQ.unpack_from(body, position)
    position += 14
    message = OffsetForLeaderEpochResponsePartition(error_code=error_code, partition=partition, end_offset=end_offset)
    return message, position


def _write_response_partition_v0(write: Write, message: OffsetForLeaderEpochResponsePartition) -> None:
    write(_HIQ.pack(message.error_code, message.partition, message.end_offset))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponseTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 14, _read_response_partition_v0)
    message = OffsetForLeaderEpochResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: OffsetForLeaderEpochResponseTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = OffsetForLeaderEpochResponse(topics=topics)
    return message, position


def _write_response_v0(write: Write, message: OffsetForLeaderEpochResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_partition_v1(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponsePartition, int]:
    error_code, partition, leader_epoch, end_offset = _HIIQ.unpack_from(body, position)
    position += 18
    message = OffsetForLeaderEpochResponsePartition(
        error_code=error_code,
        partition=partition,
        leader_epoch=leader_epoch,
        end_offset=end_offset,
    )
    return message, position


def _write_response_partition_v1(write: Write, message: OffsetForLeaderEpochResponsePartition) -> None:
    write(_HIIQ.pack(message.error_code, message.partition, message.leader_epoch, message.end_offset))


def _read_response_topic_v1(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponseTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 18, _read_response_partition_v1)
    message = OffsetForLeaderEpochResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v1(write: Write, message: OffsetForLeaderEpochResponseTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_response_partition_v1)


def _read_response_v1(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v1)
    message = OffsetForLeaderEpochResponse(topics=topics)
    return message, position


def _write_response_v1(write: Write, message: OffsetForLeaderEpochResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_v2(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v1)
    message = OffsetForLeaderEpochResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v2(write: Write, message: OffsetForLeaderEpochResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_partition_v4(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponsePartition, int]:
    error_code, partition, leader_epoch, end_offset = _HIIQ.unpack_from(body, position)
    position += 18
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetForLeaderEpochResponsePartition(
        error_code=error_code,
        partition=partition,
        leader_epoch=leader_epoch,
        end_offset=end_offset,
    )
    return message, position


def _write_response_partition_v4(write: Write, message: OffsetForLeaderEpochResponsePartition) -> None:
    write(_HIIQX.pack(message.error_code, message.partition, message.leader_epoch, message.end_offset))


def _read_response_topic_v4(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponseTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 19, _read_response_partition_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetForLeaderEpochResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v4(write: Write, message: OffsetForLeaderEpochResponseTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_array(write, message.partitions, _write_response_partition_v4)
    write(NO_TAGS)


def _read_response_v4(body: Buffer, position: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetForLeaderEpochResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v4(write: Write, message: OffsetForLeaderEpochResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v4)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
    _read_request_v3,
    _read_request_v4,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
    _write_request_v3,
    _write_request_v4,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> OffsetForLeaderEpochRequest:
    return decode(_REQUEST_READERS, "OffsetForLeaderEpochRequest", buffer, position, end, version)


def encode_request(message: OffsetForLeaderEpochRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "OffsetForLeaderEpochRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
    _read_response_v2,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
    _write_response_v2,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> OffsetForLeaderEpochResponse:
    return decode(_RESPONSE_READERS, "OffsetForLeaderEpochResponse", buffer, position, end, version)


def encode_response(message: OffsetForLeaderEpochResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "OffsetForLeaderEpochResponse", message, version)


def begin_response(message: OffsetForLeaderEpochResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "OffsetForLeaderEpochResponse", message, version)
