"""ListOffsets (2), versions 0 to 11.

Generated from wire/schemas/list_offsets.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, INT64, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_string,
    read_numbers,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_string,
    write_numbers,
    write_string,
)

API_KEY = 2
MIN_VERSION = 0
MAX_VERSION = 11
FLEXIBLE_FROM = 6

_IB = Struct(">ib")
_IH = Struct(">ih")
_IHQQ = Struct(">ihqq")
_IHQQI = Struct(">ihqqi")
_IHQQIX = Struct(">ihqqix")
_IIQ = Struct(">iiq")
_IIQX = Struct(">iiqx")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequestPartition:
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0
    max_num_offsets: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequestTopic:
    name: str = ""
    partitions: tuple[ListOffsetsRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    replica_id: int = 0
    isolation_level: int = 0
    topics: tuple[ListOffsetsRequestTopic, ...] = ()
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    old_style_offsets: tuple[int, ...] = ()
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponseTopic:
    name: str = ""
    partitions: tuple[ListOffsetsResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse:
    throttle_time_ms: int = 0
    topics: tuple[ListOffsetsResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[ListOffsetsRequestPartition, int]:
    partition_index, timestamp, max_num_offsets = _IQI.unpack_from(body, position)
    position += 16
    message = ListOffsetsRequestPartition(
        partition_index=partition_index,
        timestamp=timestamp,
        max_num_offsets=max_num_offsets,
    )
    return message, position


def _write_request_partition_v0(write: Write, message: ListOffsetsRequestPartition) -> None:
    write(_IQI.pack(message.partition_index, message.timestamp, message.max_num_offsets))


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[ListOffsetsRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 16, _read_request_partition_v0)
    message = ListOffsetsRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: ListOffsetsRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[ListOffsetsRequest, int]:
    (replica_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = ListOffsetsRequest(replica_id=replica_id, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: ListOffsetsRequest) -> None:
    write(INT32.pack(message.replica_id))
    write_array(write, message.topics, _write_request_topic_v0)


def _read_request_partition_v1(body: Buffer, position: int) -> tuple[ListOffsetsRequestPartition, int]:
    partition_index, timestamp = _IQ.unpack_from(body, position)
    position += 12
    message = ListOffsetsRequestPartition(partition_index=partition_index, timestamp=timestamp)
    return message, position


def _write_request_partition_v1(write: Write, message: ListOffsetsRequestPartition) -> None:
    write(_IQ.pack(message.partition_index, message.timestamp))


def _read_request_topic_v1(body: Buffer, position: int) -> tuple[ListOffsetsRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 12, _read_request_partition_v1)
    message = ListOffsetsRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v1(write: Write, message: ListOffsetsRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v1)


def _read_request_v1(body: Buffer, position: int) -> tuple[ListOffsetsRequest, int]:
    (replica_id,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_request_topic_v1)
    message = ListOffsetsRequest(replica_id=replica_id, topics=topics)
    return message, position


def _write_request_v1(write: Write, message: ListOffsetsRequest) -> None:
    write(INT32.pack(message.replica_id))
    write_array(write, message.topics, _write_request_topic_v1)


def _read_request_v2(body: Buffer, position: int) -> tuple[ListOffsetsRequest, int]:
    replica_id, isolation_level = _IB.unpack_from(body, position)
    position += 5
    topics, position = read_array(body, position, 6, _read_request_topic_v1)
    message = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics)
    return message, position


def _write_request_v2(write: Write, message: ListOffsetsRequest) -> None:
    write(_IB.pack(message.replica_id, message.isolation_level))
    write_array(write, message.topics, _write_request_topic_v1)


def _read_request_partition_v4(body: Buffer, position: int) -> tuple[ListOffsetsRequestPartition, int]:
    partition_index, current_leader_epoch, timestamp = _IIQ.unpack_from(body, position)
    position += 16
    message = ListOffsetsRequestPartition(
        partition_index=partition_index,
        current_leader_epoch=current_leader_epoch,
        timestamp=timestamp,
    )
    return message, position


def _write_request_partition_v4(write: Write, message: ListOffsetsRequestPartition) -> None:
    write(_IIQ.pack(message.partition_index, message.current_leader_epoch, message.timestamp))


def _read_request_topic_v4(body: Buffer, position: int) -> tuple[ListOffsetsRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 16, _read_request_partition_v4)
    message = ListOffsetsRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v4(write: Write, message: ListOffsetsRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v4)


def _read_request_v4(body: Buffer, position: int) -> tuple[ListOffsetsRequest, int]:
    replica_id, isolation_level = _IB.unpack_from(body, position)
    position += 5
    topics, position = read_array(body, position, 6, _read_request_topic_v4)
    message = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics)
    return message, position


def _write_request_v4(write: Write, message: ListOffsetsRequest) -> None:
    write(_IB.pack(message.replica_id, message.isolation_level))
    write_array(write, message.topics, _write_request_topic_v4)


def _read_request_partition_v6(body: Buffer, position: int) -> tuple[ListOffsetsRequestPartition, int]:
    partition_index, current_leader_epoch, timestamp = _IIQ.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListOffsetsRequestPartition(
        partition_index=partition_index,
        current_leader_epoch=current_leader_epoch,
        timestamp=timestamp,
    )
    return message, position


def _write_request_partition_v6(write: Write, message: ListOffsetsRequestPartition) -> None:
    write(_IIQX.pack(message.partition_index, message.current_leader_epoch, message.timestamp))


def _read_request_topic_v6(body: Buffer, position: int) -> tuple[ListOffsetsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 17, _read_request_partition_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListOffsetsRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v6(write: Write, message: ListOffsetsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_request_partition_v6)
    write(NO_TAGS)


def _read_request_v6(body: Buffer, position: int) -> tuple[ListOffsetsRequest, int]:
    replica_id, isolation_level = _IB.unpack_from(body, position)
    position += 5
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics)
    return message, position


def _write_request_v6(write: Write, message: ListOffsetsRequest) -> None:
    write(_IB.pack(message.replica_id, message.isolation_level))
    write_compact_array(write, message.topics, _write_request_topic_v6)
    write(NO_TAGS)


def _read_request_v10(body: Buffer, position: int) -> tuple[ListOffsetsRequest, int]:
    replica_id, isolation_level = _IB.unpack_from(body, position)
    position += 5
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v6)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=topics,
        timeout_ms=timeout_ms,
    )
    return message, position


def _write_request_v10(write: Write, message: ListOffsetsRequest) -> None:
    write(_IB.pack(message.replica_id, message.isolation_level))
    write_compact_array(write, message.topics, _write_request_topic_v6)
    write(_IX.pack(message.timeout_ms))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[ListOffsetsResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    old_style_offsets, position = read_numbers(body, position, INT64)
    message = ListOffsetsResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        old_style_offsets=old_style_offsets,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: ListOffsetsResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))
    write_numbers(write, message.old_style_offsets, INT64)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[ListOffsetsResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 10, _read_response_partition_v0)
    message = ListOffsetsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: ListOffsetsResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[ListOffsetsResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = ListOffsetsResponse(topics=topics)
    return message, position


def _write_response_v0(write: Write, message: ListOffsetsResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_partition_v1(body: Buffer, position: int) -> tuple[ListOffsetsResponsePartition, int]:
    partition_index, error_code, timestamp, offset = _IHQQ.unpack_from(body, position)
    position += 22
    message = ListOffsetsResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        timestamp=timestamp,
        offset=offset,
    )
    return message, position


def _write_response_partition_v1(write: Write, message: ListOffsetsResponsePartition) -> None:
    write(_IHQQ.pack(message.partition_index, message.error_code, message.timestamp, message.offset))


def _read_response_topic_v1(body: Buffer, position: int) -> tuple[ListOffsetsResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 22, _read_response_partition_v1)
    message = ListOffsetsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v1(write: Write, message: ListOffsetsResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v1)


def _read_response_v1(body: Buffer, position: int) -> tuple[ListOffsetsResponse, int]:
    topics, position = read_array(body, position, 6, _read_response_topic_v1)
    message = ListOffsetsResponse(topics=topics)
    return message, position


def _write_response_v1(write: Write, message: ListOffsetsResponse) -> None:
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_v2(body: Buffer, position: int) -> tuple[ListOffsetsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v1)
    message = ListOffsetsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v2(write: Write, message: ListOffsetsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v1)


def _read_response_partition_v4(body: Buffer, position: int) -> tuple[ListOffsetsResponsePartition, int]:
    partition_index, error_code, timestamp, offset, leader_epoch = _IHQQI.unpack_from(body, position)
    position += 26
    message = ListOffsetsResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )
    return message, position


def _write_response_partition_v4(write: Write, message: ListOffsetsResponsePartition) -> None:
    write(
        _IHQQI.pack(
            message.partition_index,
            message.error_code,
            message.timestamp,
            message.offset,
            message.leader_epoch,
        )
    )


def _read_response_topic_v4(body: Buffer, position: int) -> tuple[ListOffsetsResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 26, _read_response_partition_v4)
    message = ListOffsetsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v4(write: Write, message: ListOffsetsResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v4)


def _read_response_v4(body: Buffer, position: int) -> tuple[ListOffsetsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v4)
    message = ListOffsetsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v4(write: Write, message: ListOffsetsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v4)


def _read_response_partition_v6(body: Buffer, position: int) -> tuple[ListOffsetsResponsePartition, int]:
    partition_index, error_code, timestamp, offset, leader_epoch = _IHQQI.unpack_from(body, position)
    position += 26
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListOffsetsResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )
    return message, position


def _write_response_partition_v6(write: Write, message: ListOffsetsResponsePartition) -> None:
    write(
        _IHQQIX.pack(
            message.partition_index,
            message.error_code,
            message.timestamp,
            message.offset,
            message.leader_epoch,
        )
    )


def _read_response_topic_v6(body: Buffer, position: int) -> tuple[ListOffsetsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 27, _read_response_partition_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListOffsetsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v6(write: Write, message: ListOffsetsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v6)
    write(NO_TAGS)


def _read_response_v6(body: Buffer, position: int) -> tuple[ListOffsetsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v6)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListOffsetsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v6(write: Write, message: ListOffsetsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v6)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
    _read_request_v2,
    _read_request_v4,
    _read_request_v4,
    _read_request_v6,
    _read_request_v6,
    _read_request_v6,
    _read_request_v6,
    _read_request_v10,
    _read_request_v10,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
    _write_request_v2,
    _write_request_v4,
    _write_request_v4,
    _write_request_v6,
    _write_request_v6,
    _write_request_v6,
    _write_request_v6,
    _write_request_v10,
    _write_request_v10,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ListOffsetsRequest:
    return decode(_REQUEST_READERS, "ListOffsetsRequest", buffer, position, end, version)


def encode_request(message: ListOffsetsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ListOffsetsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
    _read_response_v2,
    _read_response_v4,
    _read_response_v4,
    _read_response_v6,
    _read_response_v6,
    _read_response_v6,
    _read_response_v6,
    _read_response_v6,
    _read_response_v6,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
    _write_response_v2,
    _write_response_v4,
    _write_response_v4,
    _write_response_v6,
    _write_response_v6,
    _write_response_v6,
    _write_response_v6,
    _write_response_v6,
    _write_response_v6,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ListOffsetsResponse:
    return decode(_RESPONSE_READERS, "ListOffsetsResponse", buffer, position, end, version)


def encode_response(message: ListOffsetsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ListOffsetsResponse", message, version)


def begin_response(message: ListOffsetsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ListOffsetsResponse", message, version)
