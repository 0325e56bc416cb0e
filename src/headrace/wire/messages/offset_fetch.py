"""OffsetFetch (9), versions 0 to 10.

Generated from wire/schemas/offset_fetch.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT16, INT32, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    read_nullable_array,
    read_nullable_string,
    read_numbers,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    present,
    uuid,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_array,
    write_nullable_string,
    write_numbers,
    write_string,
)

API_KEY = 9
MIN_VERSION = 0
MAX_VERSION = 10
FLEXIBLE_FROM = 6

_FX = Struct(">?x")
_HX = Struct(">hx")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroupTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroup:
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestGroupTopic, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest:
    group_id: str = ""
    topics: tuple[OffsetFetchRequestTopic, ...] | None = ()
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    require_stable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponsePartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroupPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroupTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[OffsetFetchResponseGroupPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: tuple[OffsetFetchResponseGroupTopic, ...] = ()
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse:
    throttle_time_ms: int = 0
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: int = 0
    groups: tuple[OffsetFetchResponseGroup, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[OffsetFetchRequestTopic, int]:
    name, position = read_string(body, position)
    partition_indexes, position = read_numbers(body, position, INT32)
    message = OffsetFetchRequestTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_topic_v0(write: Write, message: OffsetFetchRequestTopic) -> None:
    write_string(write, message.name)
    write_numbers(write, message.partition_indexes, INT32)


def _read_request_v0(body: Buffer, position: int) -> tuple[OffsetFetchRequest, int]:
    group_id, position = read_string(body, position)
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = OffsetFetchRequest(group_id=group_id, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: OffsetFetchRequest) -> None:
    write_string(write, message.group_id)
    write_array(write, present(message.topics), _write_request_topic_v0)


def _read_request_v2(body: Buffer, position: int) -> tuple[OffsetFetchRequest, int]:
    group_id, position = read_string(body, position)
    topics, position = read_nullable_array(body, position, 6, _read_request_topic_v0)
    message = OffsetFetchRequest(group_id=group_id, topics=topics)
    return message, position


def _write_request_v2(write: Write, message: OffsetFetchRequest) -> None:
    write_string(write, message.group_id)
    write_nullable_array(write, message.topics, _write_request_topic_v0)


def _read_request_topic_v6(body: Buffer, position: int) -> tuple[OffsetFetchRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partition_indexes, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequestTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_topic_v6(write: Write, message: OffsetFetchRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_numbers(write, message.partition_indexes, INT32)
    write(NO_TAGS)


def _read_request_v6(body: Buffer, position: int) -> tuple[OffsetFetchRequest, int]:
    group_id, position = read_compact_string(body, position)
    topics, position = read_compact_nullable_array(body, position, 3, _read_request_topic_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequest(group_id=group_id, topics=topics)
    return message, position


def _write_request_v6(write: Write, message: OffsetFetchRequest) -> None:
    write_compact_string(write, message.group_id)
    write_compact_nullable_array(write, message.topics, _write_request_topic_v6)
    write(NO_TAGS)


def _read_request_v7(body: Buffer, position: int) -> tuple[OffsetFetchRequest, int]:
    group_id, position = read_compact_string(body, position)
    topics, position = read_compact_nullable_array(body, position, 3, _read_request_topic_v6)
    (require_stable,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)
    return message, position


def _write_request_v7(write: Write, message: OffsetFetchRequest) -> None:
    write_compact_string(write, message.group_id)
    write_compact_nullable_array(write, message.topics, _write_request_topic_v6)
    write(_FX.pack(message.require_stable))


def _read_request_group_topic_v8(body: Buffer, position: int) -> tuple[OffsetFetchRequestGroupTopic, int]:
    name, position = read_compact_string(body, position)
    partition_indexes, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequestGroupTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_group_topic_v8(write: Write, message: OffsetFetchRequestGroupTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_numbers(write, message.partition_indexes, INT32)
    write(NO_TAGS)


def _read_request_group_v8(body: Buffer, position: int) -> tuple[OffsetFetchRequestGroup, int]:
    group_id, position = read_compact_string(body, position)
    topics, position = read_compact_nullable_array(body, position, 3, _read_request_group_topic_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    return message, position


def _write_request_group_v8(write: Write, message: OffsetFetchRequestGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_nullable_array(write, message.topics, _write_request_group_topic_v8)
    write(NO_TAGS)


def _read_request_v8(body: Buffer, position: int) -> tuple[OffsetFetchRequest, int]:
    groups, position = read_compact_array(body, position, 3, _read_request_group_v8)
    (require_stable,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequest(groups=groups, require_stable=require_stable)
    return message, position


def _write_request_v8(write: Write, message: OffsetFetchRequest) -> None:
    write_compact_array(write, message.groups, _write_request_group_v8)
    write(_FX.pack(message.require_stable))


def _read_request_group_v9(body: Buffer, position: int) -> tuple[OffsetFetchRequestGroup, int]:
    group_id, position = read_compact_string(body, position)
    member_id, position = read_compact_nullable_string(body, position)
    (member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_nullable_array(body, position, 3, _read_request_group_topic_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequestGroup(group_id=group_id, member_id=member_id, member_epoch=member_epoch, topics=topics)
    return message, position


def _write_request_group_v9(write: Write, message: OffsetFetchRequestGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_nullable_string(write, message.member_id)
    write(INT32.pack(message.member_epoch))
    write_compact_nullable_array(write, message.topics, _write_request_group_topic_v8)
    write(NO_TAGS)


def _read_request_v9(body: Buffer, position: int) -> tuple[OffsetFetchRequest, int]:
    groups, position = read_compact_array(body, position, 8, _read_request_group_v9)
    (require_stable,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequest(groups=groups, require_stable=require_stable)
    return message, position


def _write_request_v9(write: Write, message: OffsetFetchRequest) -> None:
    write_compact_array(write, message.groups, _write_request_group_v9)
    write(_FX.pack(message.require_stable))


def _read_request_group_topic_v10(body: Buffer, position: int) -> tuple[OffsetFetchRequestGroupTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partition_indexes, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequestGroupTopic(topic_id=topic_id, partition_indexes=partition_indexes)
    return message, position


def _write_request_group_topic_v10(write: Write, message: OffsetFetchRequestGroupTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_numbers(write, message.partition_indexes, INT32)
    write(NO_TAGS)


def _read_request_group_v10(body: Buffer, position: int) -> tuple[OffsetFetchRequestGroup, int]:
    group_id, position = read_compact_string(body, position)
    member_id, position = read_compact_nullable_string(body, position)
    (member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_nullable_array(body, position, 18, _read_request_group_topic_v10)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequestGroup(group_id=group_id, member_id=member_id, member_epoch=member_epoch, topics=topics)
    return message, position


def _write_request_group_v10(write: Write, message: OffsetFetchRequestGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_nullable_string(write, message.member_id)
    write(INT32.pack(message.member_epoch))
    write_compact_nullable_array(write, message.topics, _write_request_group_topic_v10)
    write(NO_TAGS)


def _read_request_v10(body: Buffer, position: int) -> tuple[OffsetFetchRequest, int]:
    groups, position = read_compact_array(body, position, 8, _read_request_group_v10)
    (require_stable,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchRequest(groups=groups, require_stable=require_stable)
    return message, position


def _write_request_v10(write: Write, message: OffsetFetchRequest) -> None:
    write_compact_array(write, message.groups, _write_request_group_v10)
    write(_FX.pack(message.require_stable))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[OffsetFetchResponsePartition, int]:
    partition_index, committed_offset = _IQ.unpack_from(body, position)
    position += 12
    metadata, position = read_nullable_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = OffsetFetchResponsePartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        metadata=metadata,
        error_code=error_code,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: OffsetFetchResponsePartition) -> None:
    write(_IQ.pack(message.partition_index, message.committed_offset))
    write_nullable_string(write, message.metadata)
    write(INT16.pack(message.error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[OffsetFetchResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 16, _read_response_partition_v0)
    message = OffsetFetchResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: OffsetFetchResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[OffsetFetchResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = OffsetFetchResponse(topics=topics)
    return message, position


def _write_response_v0(write: Write, message: OffsetFetchResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_v2(body: Buffer, position: int) -> tuple[OffsetFetchResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = OffsetFetchResponse(topics=topics, error_code=error_code)
    return message, position


def _write_response_v2(write: Write, message: OffsetFetchResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v0)
    write(INT16.pack(message.error_code))


def _read_response_v3(body: Buffer, position: int) -> tuple[OffsetFetchResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = OffsetFetchResponse(throttle_time_ms=throttle_time_ms, topics=topics, error_code=error_code)
    return message, position


def _write_response_v3(write: Write, message: OffsetFetchResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v0)
    write(INT16.pack(message.error_code))


def _read_response_partition_v5(body: Buffer, position: int) -> tuple[OffsetFetchResponsePartition, int]:
    partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(body, position)
    position += 16
    metadata, position = read_nullable_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = OffsetFetchResponsePartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        metadata=metadata,
        error_code=error_code,
    )
    return message, position


def _write_response_partition_v5(write: Write, message: OffsetFetchResponsePartition) -> None:
    write(_IQI.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    write_nullable_string(write, message.metadata)
    write(INT16.pack(message.error_code))


def _read_response_topic_v5(body: Buffer, position: int) -> tuple[OffsetFetchResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 20, _read_response_partition_v5)
    message = OffsetFetchResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v5(write: Write, message: OffsetFetchResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v5)


def _read_response_v5(body: Buffer, position: int) -> tuple[OffsetFetchResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v5)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    message = OffsetFetchResponse(throttle_time_ms=throttle_time_ms, topics=topics, error_code=error_code)
    return message, position


def _write_response_v5(write: Write, message: OffsetFetchResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v5)
    write(INT16.pack(message.error_code))


def _read_response_partition_v6(body: Buffer, position: int) -> tuple[OffsetFetchResponsePartition, int]:
    partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(body, position)
    position += 16
    metadata, position = read_compact_nullable_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponsePartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        metadata=metadata,
        error_code=error_code,
    )
    return message, position


def _write_response_partition_v6(write: Write, message: OffsetFetchResponsePartition) -> None:
    write(_IQI.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    write_compact_nullable_string(write, message.metadata)
    write(_HX.pack(message.error_code))


def _read_response_topic_v6(body: Buffer, position: int) -> tuple[OffsetFetchResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 20, _read_response_partition_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v6(write: Write, message: OffsetFetchResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v6)
    write(NO_TAGS)


def _read_response_v6(body: Buffer, position: int) -> tuple[OffsetFetchResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v6)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponse(throttle_time_ms=throttle_time_ms, topics=topics, error_code=error_code)
    return message, position


def _write_response_v6(write: Write, message: OffsetFetchResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v6)
    write(_HX.pack(message.error_code))


def _read_response_group_partition_v8(body: Buffer, position: int) -> tuple[OffsetFetchResponseGroupPartition, int]:
    partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(body, position)
    position += 16
    metadata, position = read_compact_nullable_string(body, position)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponseGroupPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        metadata=metadata,
        error_code=error_code,
    )
    return message, position


def _write_response_group_partition_v8(write: Write, message: OffsetFetchResponseGroupPartition) -> None:
    write(_IQI.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    write_compact_nullable_string(write, message.metadata)
    write(_HX.pack(message.error_code))


def _read_response_group_topic_v8(body: Buffer, position: int) -> tuple[OffsetFetchResponseGroupTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 20, _read_response_group_partition_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponseGroupTopic(name=name, partitions=partitions)
    return message, position


def _write_response_group_topic_v8(write: Write, message: OffsetFetchResponseGroupTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_group_partition_v8)
    write(NO_TAGS)


def _read_response_group_v8(body: Buffer, position: int) -> tuple[OffsetFetchResponseGroup, int]:
    group_id, position = read_compact_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_response_group_topic_v8)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=error_code)
    return message, position


def _write_response_group_v8(write: Write, message: OffsetFetchResponseGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_array(write, message.topics, _write_response_group_topic_v8)
    write(_HX.pack(message.error_code))


def _read_response_v8(body: Buffer, position: int) -> tuple[OffsetFetchResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_compact_array(body, position, 5, _read_response_group_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v8(write: Write, message: OffsetFetchResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.groups, _write_response_group_v8)
    write(NO_TAGS)


def _read_response_group_topic_v10(body: Buffer, position: int) -> tuple[OffsetFetchResponseGroupTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 20, _read_response_group_partition_v8)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponseGroupTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_response_group_topic_v10(write: Write, message: OffsetFetchResponseGroupTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_response_group_partition_v8)
    write(NO_TAGS)


def _read_response_group_v10(body: Buffer, position: int) -> tuple[OffsetFetchResponseGroup, int]:
    group_id, position = read_compact_string(body, position)
    topics, position = read_compact_array(body, position, 18, _read_response_group_topic_v10)
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=error_code)
    return message, position


def _write_response_group_v10(write: Write, message: OffsetFetchResponseGroup) -> None:
    write_compact_string(write, message.group_id)
    write_compact_array(write, message.topics, _write_response_group_topic_v10)
    write(_HX.pack(message.error_code))


def _read_response_v10(body: Buffer, position: int) -> tuple[OffsetFetchResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_compact_array(body, position, 5, _read_response_group_v10)
    position = skip_tags(body, position) if body[position] else position + 1
    message = OffsetFetchResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v10(write: Write, message: OffsetFetchResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.groups, _write_response_group_v10)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
    _read_request_v2,
    _read_request_v2,
    _read_request_v2,
    _read_request_v6,
    _read_request_v7,
    _read_request_v8,
    _read_request_v9,
    _read_request_v10,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
    _write_request_v2,
    _write_request_v2,
    _write_request_v2,
    _write_request_v6,
    _write_request_v7,
    _write_request_v8,
    _write_request_v9,
    _write_request_v10,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> OffsetFetchRequest:
    return decode(_REQUEST_READERS, "OffsetFetchRequest", buffer, position, end, version)


def encode_request(message: OffsetFetchRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "OffsetFetchRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
    _read_response_v3,
    _read_response_v3,
    _read_response_v5,
    _read_response_v6,
    _read_response_v6,
    _read_response_v8,
    _read_response_v8,
    _read_response_v10,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
    _write_response_v3,
    _write_response_v3,
    _write_response_v5,
    _write_response_v6,
    _write_response_v6,
    _write_response_v8,
    _write_response_v8,
    _write_response_v10,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> OffsetFetchResponse:
    return decode(_RESPONSE_READERS, "OffsetFetchResponse", buffer, position, end, version)


def encode_response(message: OffsetFetchResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "OffsetFetchResponse", message, version)


def begin_response(message: OffsetFetchResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "OffsetFetchResponse", message, version)
