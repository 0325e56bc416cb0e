"""OffsetCommit (8), versions 0 to 10.

Generated from wire/schemas/offset_commit.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, INT64, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_array,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 8
MIN_VERSION = 0
MAX_VERSION = 10
FLEXIBLE_FROM = 8

_IH = Struct(">ih")
_IHX = Struct(">ihx")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_IQQ = Struct(">iqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    commit_timestamp: int = -1
    committed_metadata: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest:
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: tuple[OffsetCommitRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse:
    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[OffsetCommitRequestPartition, int]:
    partition_index, committed_offset = _IQ.unpack_from(body, position)
    position += 12
    committed_metadata, position = read_nullable_string(body, position)
    message = OffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_metadata=committed_metadata,
    )
    return message, position


def _write_request_partition_v0(write: Write, message: OffsetCommitRequestPartition) -> None:
    write(_IQ.pack(message.partition_index, message.committed_offset))
    write_nullable_string(write, message.committed_metadata)


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[OffsetCommitRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 14, _read_request_partition_v0)
    message = OffsetCommitRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: OffsetCommitRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_string(body, position)
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = OffsetCommitRequest(group_id=group_id, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: OffsetCommitRequest) -> None:
    write_string(write, message.group_id)
    write_array(write, message.topics, _write_request_topic_v0)


def _read_request_partition_v1(body: Buffer, position: int) -> tuple[OffsetCommitRequestPartition, int]:
    partition_index, committed_offset, commit_timestamp = _IQQ.unpack_from(body, position)
    position += 20
    committed_metadata, position = read_nullable_string(body, position)
    message = OffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        commit_timestamp=commit_timestamp,
        committed_metadata=committed_metadata,
    )
    return message, position


def _write_request_partition_v1(write: Write, message: OffsetCommitRequestPartition) -> None:
    write(_IQQ.pack(message.partition_index, message.committed_offset, message.commit_timestamp))
    write_nullable_string(write, message.committed_metadata)


def _read_request_topic_v1(body: Buffer, position: int) -> tuple[OffsetCommitRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 22, _read_request_partition_v1)
    message = OffsetCommitRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v1(write: Write, message: OffsetCommitRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v1)


def _read_request_v1(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id_or_member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    topics, position = read_array(body, position, 6, _read_request_topic_v1)
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        topics=topics,
    )
    return message, position


def _write_request_v1(write: Write, message: OffsetCommitRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id_or_member_epoch))
    write_string(write, message.member_id)
    write_array(write, message.topics, _write_request_topic_v1)


def _read_request_v2(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id_or_member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    (retention_time_ms,) = INT64.unpack_from(body, position)
    position += 8
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        retention_time_ms=retention_time_ms,
        topics=topics,
    )
    return message, position


def _write_request_v2(write: Write, message: OffsetCommitRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id_or_member_epoch))
    write_string(write, message.member_id)
    write(INT64.pack(message.retention_time_ms))
    write_array(write, message.topics, _write_request_topic_v0)


def _read_request_v5(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id_or_member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        topics=topics,
    )
    return message, position


def _write_request_v5(write: Write, message: OffsetCommitRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id_or_member_epoch))
    write_string(write, message.member_id)
    write_array(write, message.topics, _write_request_topic_v0)


def _read_request_partition_v6(body: Buffer, position: int) -> tuple[OffsetCommitRequestPartition, int]:
    partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(body, position)
    position += 16
    committed_metadata, position = read_nullable_string(body, position)
    message = OffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        committed_metadata=committed_metadata,
    )
    return message, position


def _write_request_partition_v6(write: Write, message: OffsetCommitRequestPartition) -> None:
    write(_IQI.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    write_nullable_string(write, message.committed_metadata)


def _read_request_topic_v6(body: Buffer, position: int) -> tuple[OffsetCommitRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 18, _read_request_partition_v6)
    message = OffsetCommitRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v6(write: Write, message: OffsetCommitRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v6)


def _read_request_v6(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id_or_member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    topics, position = read_array(body, position, 6, _read_request_topic_v6)
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        topics=topics,
    )
    return message, position


def _write_request_v6(write: Write, message: OffsetCommitRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id_or_member_epoch))
    write_string(write, message.member_id)
    write_array(write, message.topics, _write_request_topic_v6)


def _read_request_v7(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_string(body, position)
    (generation_id_or_member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_string(body, position)
    group_instance_id, position = read_nullable_string(body, position)
    topics, position = read_array(body, position, 6, _read_request_topic_v6)
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=topics,
    )
    return message, position


def _write_request_v7(write: Write, message: OffsetCommitRequest) -> None:
    write_string(write, message.group_id)
    write(INT32.pack(message.generation_id_or_member_epoch))
    write_string(write, message.member_id)
    write_nullable_string(write, message.group_instance_id)
    write_array(write, message.topics, _write_request_topic_v6)


def _read_request_partition_v8(body: Buffer, position: int) -> tuple[OffsetCommitRequestPartition, int]:
    partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(body, position)
    position += 16
    committed_metadata, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        committed_metadata=committed_metadata,
    )
    return message, position


def _write_request_partition_v8(write: Write, message: OffsetCommitRequestPartition) -> None:
    write(_IQI.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    write_compact_nullable_string(write, message.committed_metadata)
    write(NO_TAGS)


def _read_request_topic_v8(body: Buffer, position: int) -> tuple[OffsetCommitRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 18, _read_request_partition_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v8(write: Write, message: OffsetCommitRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_request_partition_v8)
    write(NO_TAGS)


def _read_request_v8(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_compact_string(body, position)
    (generation_id_or_member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=topics,
    )
    return message, position


def _write_request_v8(write: Write, message: OffsetCommitRequest) -> None:
    write_compact_string(write, message.group_id)
    write(INT32.pack(message.generation_id_or_member_epoch))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_array(write, message.topics, _write_request_topic_v8)
    write(NO_TAGS)


def _read_request_topic_v10(body: Buffer, position: int) -> tuple[OffsetCommitRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 18, _read_request_partition_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitRequestTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_topic_v10(write: Write, message: OffsetCommitRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_request_partition_v8)
    write(NO_TAGS)


def _read_request_v10(body: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    group_id, position = read_compact_string(body, position)
    (generation_id_or_member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v10)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id_or_member_epoch,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=topics,
    )
    return message, position


def _write_request_v10(write: Write, message: OffsetCommitRequest) -> None:
    write_compact_string(write, message.group_id)
    write(INT32.pack(message.generation_id_or_member_epoch))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_array(write, message.topics, _write_request_topic_v10)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[OffsetCommitResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    message = OffsetCommitResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v0(write: Write, message: OffsetCommitResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[OffsetCommitResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 6, _read_response_partition_v0)
    message = OffsetCommitResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: OffsetCommitResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[OffsetCommitResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = OffsetCommitResponse(topics=topics)
    return message, position


def _write_response_v0(write: Write, message: OffsetCommitResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_v3(body: Buffer, position: int) -> tuple[OffsetCommitResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = OffsetCommitResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v3(write: Write, message: OffsetCommitResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_partition_v8(body: Buffer, position: int) -> tuple[OffsetCommitResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v8(write: Write, message: OffsetCommitResponsePartition) -> None:
    write(_IHX.pack(message.partition_index, message.error_code))


def _read_response_topic_v8(body: Buffer, position: int) -> tuple[OffsetCommitResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 7, _read_response_partition_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v8(write: Write, message: OffsetCommitResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v8)
    write(NO_TAGS)


def _read_response_v8(body: Buffer, position: int) -> tuple[OffsetCommitResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v8(write: Write, message: OffsetCommitResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v8)
    write(NO_TAGS)


def _read_response_topic_v10(body: Buffer, position: int) -> tuple[OffsetCommitResponseTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 7, _read_response_partition_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitResponseTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_response_topic_v10(write: Write, message: OffsetCommitResponseTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_response_partition_v8)
    write(NO_TAGS)


def _read_response_v10(body: Buffer, position: int) -> tuple[OffsetCommitResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 18, _read_response_topic_v10)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetCommitResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v10(write: Write, message: OffsetCommitResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v10)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
    _read_request_v2,
    _read_request_v2,
    _read_request_v5,
    _read_request_v6,
    _read_request_v7,
    _read_request_v8,
    _read_request_v8,
    _read_request_v10,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
    _write_request_v2,
    _write_request_v2,
    _write_request_v5,
    _write_request_v6,
    _write_request_v7,
    _write_request_v8,
    _write_request_v8,
    _write_request_v10,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> OffsetCommitRequest:
    return decode(_REQUEST_READERS, "OffsetCommitRequest", buffer, position, end, version)


def encode_request(message: OffsetCommitRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "OffsetCommitRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
    _read_response_v3,
    _read_response_v3,
    _read_response_v3,
    _read_response_v3,
    _read_response_v3,
    _read_response_v8,
    _read_response_v8,
    _read_response_v10,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
    _write_response_v3,
    _write_response_v3,
    _write_response_v3,
    _write_response_v3,
    _write_response_v3,
    _write_response_v8,
    _write_response_v8,
    _write_response_v10,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> OffsetCommitResponse:
    return decode(_RESPONSE_READERS, "OffsetCommitResponse", buffer, position, end, version)


def encode_response(message: OffsetCommitResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "OffsetCommitResponse", message, version)


def begin_response(message: OffsetCommitResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "OffsetCommitResponse", message, version)
