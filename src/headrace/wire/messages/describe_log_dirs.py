"""DescribeLogDirs (35), versions 0 to 4.

Generated from wire/schemas/describe_log_dirs.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_array,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_numbers,
    read_compact_string,
    read_nullable_array,
    read_numbers,
    read_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_numbers,
    write_compact_string,
    write_nullable_array,
    write_numbers,
    write_string,
)

API_KEY = 35
MIN_VERSION = 0
MAX_VERSION = 4
FLEXIBLE_FROM = 2

_IH = Struct(">ih")
_IQQF = Struct(">iqq?")
_IQQFX = Struct(">iqq?x")
_QQ = Struct(">qq")
_QQX = Struct(">qqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequestTopic:
    topic: str = ""
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest:
    topics: tuple[DescribeLogDirsRequestTopic, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponsePartition:
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponseTopic:
    name: str = ""
    partitions: tuple[DescribeLogDirsResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponseResult:
    error_code: int = 0
    log_dir: str = ""
    topics: tuple[DescribeLogDirsResponseTopic, ...] = ()
    total_bytes: int = -1
    usable_bytes: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    results: tuple[DescribeLogDirsResponseResult, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[DescribeLogDirsRequestTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_numbers(body, position, INT32)
    message = DescribeLogDirsRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: DescribeLogDirsRequestTopic) -> None:
    write_string(write, message.topic)
    write_numbers(write, message.partitions, INT32)


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeLogDirsRequest, int]:
    topics, position = read_nullable_array(body, position, 6, _read_request_topic_v0)
    message = DescribeLogDirsRequest(topics=topics)
    return message, position


def _write_request_v0(write: Write, message: DescribeLogDirsRequest) -> None:
    write_nullable_array(write, message.topics, _write_request_topic_v0)


def _read_request_topic_v2(body: Buffer, position: int) -> tuple[DescribeLogDirsRequestTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v2(write: Write, message: DescribeLogDirsRequestTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[DescribeLogDirsRequest, int]:
    topics, position = read_compact_nullable_array(body, position, 3, _read_request_topic_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsRequest(topics=topics)
    return message, position


def _write_request_v2(write: Write, message: DescribeLogDirsRequest) -> None:
    write_compact_nullable_array(write, message.topics, _write_request_topic_v2)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[DescribeLogDirsResponsePartition, int]:
    partition_index, partition_size, offset_lag, is_future_key = _IQQF.unpack_from(body, position)
    position += 21
    message = DescribeLogDirsResponsePartition(
        partition_index=partition_index,
        partition_size=partition_size,
        offset_lag=offset_lag,
        is_future_key=is_future_key,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: DescribeLogDirsResponsePartition) -> None:
    write(_IQQF.pack(message.partition_index, message.partition_size, message.offset_lag, message.is_future_key))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[DescribeLogDirsResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 21, _read_response_partition_v0)
    message = DescribeLogDirsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: DescribeLogDirsResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_result_v0(body: Buffer, position: int) -> tuple[DescribeLogDirsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    log_dir, position = read_string(body, position)
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = DescribeLogDirsResponseResult(error_code=error_code, log_dir=log_dir, topics=topics)
    return message, position


def _write_response_result_v0(write: Write, message: DescribeLogDirsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_string(write, message.log_dir)
    write_array(write, message.topics, _write_response_topic_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeLogDirsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_array(body, position, 8, _read_response_result_v0)
    message = DescribeLogDirsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v0(write: Write, message: DescribeLogDirsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results, _write_response_result_v0)


def _read_response_partition_v2(body: Buffer, position: int) -> tuple[DescribeLogDirsResponsePartition, int]:
    partition_index, partition_size, offset_lag, is_future_key = _IQQF.unpack_from(body, position)
    position += 21
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsResponsePartition(
        partition_index=partition_index,
        partition_size=partition_size,
        offset_lag=offset_lag,
        is_future_key=is_future_key,
    )
    return message, position


def _write_response_partition_v2(write: Write, message: DescribeLogDirsResponsePartition) -> None:
    write(_IQQFX.pack(message.partition_index, message.partition_size, message.offset_lag, message.is_future_key))


def _read_response_topic_v2(body: Buffer, position: int) -> tuple[DescribeLogDirsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 22, _read_response_partition_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v2(write: Write, message: DescribeLogDirsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v2)
    write(NO_TAGS)


def _read_response_result_v2(body: Buffer, position: int) -> tuple[DescribeLogDirsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    log_dir, position = read_compact_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsResponseResult(error_code=error_code, log_dir=log_dir, topics=topics)
    return message, position


def _write_response_result_v2(write: Write, message: DescribeLogDirsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, message.log_dir)
    write_compact_array(write, message.topics, _write_response_topic_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[DescribeLogDirsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results, position = read_compact_array(body, position, 5, _read_response_result_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsResponse(throttle_time_ms=throttle_time_ms, results=results)
    return message, position


def _write_response_v2(write: Write, message: DescribeLogDirsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.results, _write_response_result_v2)
    write(NO_TAGS)


def _read_response_v3(body: Buffer, position: int) -> tuple[DescribeLogDirsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    results, position = read_compact_array(body, position, 5, _read_response_result_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, results=results)
    return message, position


def _write_response_v3(write: Write, message: DescribeLogDirsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.results, _write_response_result_v2)
    write(NO_TAGS)


def _read_response_result_v4(body: Buffer, position: int) -> tuple[DescribeLogDirsResponseResult, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    log_dir, position = read_compact_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v2)
    total_bytes, usable_bytes = _QQ.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsResponseResult(
        error_code=error_code,
        log_dir=log_dir,
        topics=topics,
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
    return message, position


def _write_response_result_v4(write: Write, message: DescribeLogDirsResponseResult) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, message.log_dir)
    write_compact_array(write, message.topics, _write_response_topic_v2)
    write(_QQX.pack(message.total_bytes, message.usable_bytes))


def _read_response_v4(body: Buffer, position: int) -> tuple[DescribeLogDirsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    results, position = read_compact_array(body, position, 21, _read_response_result_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeLogDirsResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, results=results)
    return message, position


def _write_response_v4(write: Write, message: DescribeLogDirsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.results, _write_response_result_v4)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v2,
    _read_request_v2,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v2,
    _write_request_v2,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeLogDirsRequest:
    return decode(_REQUEST_READERS, "DescribeLogDirsRequest", buffer, position, end, version)


def encode_request(message: DescribeLogDirsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeLogDirsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v2,
    _read_response_v3,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v2,
    _write_response_v3,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeLogDirsResponse:
    return decode(_RESPONSE_READERS, "DescribeLogDirsResponse", buffer, position, end, version)


def encode_response(message: DescribeLogDirsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeLogDirsResponse", message, version)


def begin_response(message: DescribeLogDirsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeLogDirsResponse", message, version)
