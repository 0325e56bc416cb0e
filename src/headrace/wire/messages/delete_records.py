"""DeleteRecords (21), versions 0 to 2.

Generated from wire/schemas/delete_records.py by `python -m headrace.wire.generator`.
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

API_KEY = 21
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 2

_IQ = Struct(">iq")
_IQH = Struct(">iqh")
_IQHX = Struct(">iqhx")
_IQX = Struct(">iqx")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequestPartition:
    partition_index: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequestTopic:
    name: str = ""
    partitions: tuple[DeleteRecordsRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequest:
    topics: tuple[DeleteRecordsRequestTopic, ...] = ()
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponsePartition:
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponseTopic:
    name: str = ""
    partitions: tuple[DeleteRecordsResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponse:
    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[DeleteRecordsRequestPartition, int]:
    partition_index, offset = _IQ.unpack_from(body, position)
    position += 12
    message = DeleteRecordsRequestPartition(partition_index=partition_index, offset=offset)
    return message, position


def _write_request_partition_v0(write: Write, message: DeleteRecordsRequestPartition) -> None:
    write(_IQ.pack(message.partition_index, message.offset))


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[DeleteRecordsRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 12, _read_request_partition_v0)
    message = DeleteRecordsRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: DeleteRecordsRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[DeleteRecordsRequest, int]:
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)
    return message, position


def _write_request_v0(write: Write, message: DeleteRecordsRequest) -> None:
    write_array(write, message.topics, _write_request_topic_v0)
    write(INT32.pack(message.timeout_ms))


def _read_request_partition_v2(body: Buffer, position: int) -> tuple[DeleteRecordsRequestPartition, int]:
    partition_index, offset = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteRecordsRequestPartition(partition_index=partition_index, offset=offset)
    return message, position


def _write_request_partition_v2(write: Write, message: DeleteRecordsRequestPartition) -> None:
    write(_IQX.pack(message.partition_index, message.offset))


def _read_request_topic_v2(body: Buffer, position: int) -> tuple[DeleteRecordsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 13, _read_request_partition_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteRecordsRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v2(write: Write, message: DeleteRecordsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_request_partition_v2)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[DeleteRecordsRequest, int]:
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v2)
    (timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)
    return message, position


def _write_request_v2(write: Write, message: DeleteRecordsRequest) -> None:
    write_compact_array(write, message.topics, _write_request_topic_v2)
    write(_IX.pack(message.timeout_ms))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[DeleteRecordsResponsePartition, int]:
    partition_index, low_watermark, error_code = _IQH.unpack_from(body, position)
    position += 14
    message = DeleteRecordsResponsePartition(
        partition_index=partition_index,
        low_watermark=low_watermark,
        error_code=error_code,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: DeleteRecordsResponsePartition) -> None:
    write(_IQH.pack(message.partition_index, message.low_watermark, message.error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[DeleteRecordsResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 14, _read_response_partition_v0)
    message = DeleteRecordsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: DeleteRecordsResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[DeleteRecordsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = DeleteRecordsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v0(write: Write, message: DeleteRecordsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_partition_v2(body: Buffer, position: int) -> tuple[DeleteRecordsResponsePartition, int]:
    partition_index, low_watermark, error_code = _IQH.unpack_from(body, position)
    position += 14
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteRecordsResponsePartition(
        partition_index=partition_index,
        low_watermark=low_watermark,
        error_code=error_code,
    )
    return message, position


def _write_response_partition_v2(write: Write, message: DeleteRecordsResponsePartition) -> None:
    write(_IQHX.pack(message.partition_index, message.low_watermark, message.error_code))


def _read_response_topic_v2(body: Buffer, position: int) -> tuple[DeleteRecordsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 15, _read_response_partition_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteRecordsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v2(write: Write, message: DeleteRecordsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[DeleteRecordsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DeleteRecordsResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v2(write: Write, message: DeleteRecordsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v2)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DeleteRecordsRequest:
    return decode(_REQUEST_READERS, "DeleteRecordsRequest", buffer, position, end, version)


def encode_request(message: DeleteRecordsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DeleteRecordsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DeleteRecordsResponse:
    return decode(_RESPONSE_READERS, "DeleteRecordsResponse", buffer, position, end, version)


def encode_response(message: DeleteRecordsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DeleteRecordsResponse", message, version)


def begin_response(message: DeleteRecordsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DeleteRecordsResponse", message, version)
