"""TxnOffsetCommit (28), versions 0 to 5.

Generated from wire/schemas/txn_offset_commit.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
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
    write_array,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)

API_KEY = 28
MIN_VERSION = 0
MAX_VERSION = 5
FLEXIBLE_FROM = 3

_IH = Struct(">ih")
_IHX = Struct(">ihx")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_QH = Struct(">qh")
_QHI = Struct(">qhi")


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic:
    name: str = ""
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest:
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic:
    name: str = ""
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse:
    throttle_time_ms: int = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequestPartition, int]:
    partition_index, committed_offset = _IQ.unpack_from(body, position)
    position += 12
    committed_metadata, position = read_nullable_string(body, position)
    message = TxnOffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_metadata=committed_metadata,
    )
    return message, position


def _write_request_partition_v0(write: Write, message: TxnOffsetCommitRequestPartition) -> None:
    write(_IQ.pack(message.partition_index, message.committed_offset))
    write_nullable_string(write, message.committed_metadata)


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 14, _read_request_partition_v0)
    message = TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: TxnOffsetCommitRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequest, int]:
    transactional_id, position = read_string(body, position)
    group_id, position = read_string(body, position)
    producer_id, producer_epoch = _QH.unpack_from(body, position)
    position += 10
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        topics=topics,
    )
    return message, position


def _write_request_v0(write: Write, message: TxnOffsetCommitRequest) -> None:
    write_string(write, message.transactional_id)
    write_string(write, message.group_id)
    write(_QH.pack(message.producer_id, message.producer_epoch))
    write_array(write, message.topics, _write_request_topic_v0)


def _read_request_partition_v2(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequestPartition, int]:
    partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(body, position)
    position += 16
    committed_metadata, position = read_nullable_string(body, position)
    message = TxnOffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        committed_metadata=committed_metadata,
    )
    return message, position


def _write_request_partition_v2(write: Write, message: TxnOffsetCommitRequestPartition) -> None:
    write(_IQI.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    write_nullable_string(write, message.committed_metadata)


def _read_request_topic_v2(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 18, _read_request_partition_v2)
    message = TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v2(write: Write, message: TxnOffsetCommitRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v2)


def _read_request_v2(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequest, int]:
    transactional_id, position = read_string(body, position)
    group_id, position = read_string(body, position)
    producer_id, producer_epoch = _QH.unpack_from(body, position)
    position += 10
    topics, position = read_array(body, position, 6, _read_request_topic_v2)
    message = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        topics=topics,
    )
    return message, position


def _write_request_v2(write: Write, message: TxnOffsetCommitRequest) -> None:
    write_string(write, message.transactional_id)
    write_string(write, message.group_id)
    write(_QH.pack(message.producer_id, message.producer_epoch))
    write_array(write, message.topics, _write_request_topic_v2)


def _read_request_partition_v3(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequestPartition, int]:
    partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(body, position)
    position += 16
    committed_metadata, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = TxnOffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        committed_metadata=committed_metadata,
    )
    return message, position


def _write_request_partition_v3(write: Write, message: TxnOffsetCommitRequestPartition) -> None:
    write(_IQI.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    write_compact_nullable_string(write, message.committed_metadata)
    write(NO_TAGS)


def _read_request_topic_v3(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 18, _read_request_partition_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v3(write: Write, message: TxnOffsetCommitRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_request_partition_v3)
    write(NO_TAGS)


def _read_request_v3(body: Buffer, position: int) -> tuple[TxnOffsetCommitRequest, int]:
    transactional_id, position = read_compact_string(body, position)
    group_id, position = read_compact_string(body, position)
    producer_id, producer_epoch, generation_id = _QHI.unpack_from(body, position)
    position += 14
    member_id, position = read_compact_string(body, position)
    group_instance_id, position = read_compact_nullable_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=topics,
    )
    return message, position


def _write_request_v3(write: Write, message: TxnOffsetCommitRequest) -> None:
    write_compact_string(write, message.transactional_id)
    write_compact_string(write, message.group_id)
    write(_QHI.pack(message.producer_id, message.producer_epoch, message.generation_id))
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.group_instance_id)
    write_compact_array(write, message.topics, _write_request_topic_v3)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[TxnOffsetCommitResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    message = TxnOffsetCommitResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v0(write: Write, message: TxnOffsetCommitResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[TxnOffsetCommitResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 6, _read_response_partition_v0)
    message = TxnOffsetCommitResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: TxnOffsetCommitResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[TxnOffsetCommitResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = TxnOffsetCommitResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v0(write: Write, message: TxnOffsetCommitResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_partition_v3(body: Buffer, position: int) -> tuple[TxnOffsetCommitResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = TxnOffsetCommitResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v3(write: Write, message: TxnOffsetCommitResponsePartition) -> None:
    write(_IHX.pack(message.partition_index, message.error_code))


def _read_response_topic_v3(body: Buffer, position: int) -> tuple[TxnOffsetCommitResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 7, _read_response_partition_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = TxnOffsetCommitResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v3(write: Write, message: TxnOffsetCommitResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v3)
    write(NO_TAGS)


def _read_response_v3(body: Buffer, position: int) -> tuple[TxnOffsetCommitResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = TxnOffsetCommitResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v3(write: Write, message: TxnOffsetCommitResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v3)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
    _read_request_v3,
    _read_request_v3,
    _read_request_v3,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
    _write_request_v3,
    _write_request_v3,
    _write_request_v3,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> TxnOffsetCommitRequest:
    return decode(_REQUEST_READERS, "TxnOffsetCommitRequest", buffer, position, end, version)


def encode_request(message: TxnOffsetCommitRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "TxnOffsetCommitRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
    _read_response_v3,
    _read_response_v3,
    _read_response_v3,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
    _write_response_v3,
    _write_response_v3,
    _write_response_v3,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> TxnOffsetCommitResponse:
    return decode(_RESPONSE_READERS, "TxnOffsetCommitResponse", buffer, position, end, version)


def encode_response(message: TxnOffsetCommitResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "TxnOffsetCommitResponse", message, version)


def begin_response(message: TxnOffsetCommitResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "TxnOffsetCommitResponse", message, version)
