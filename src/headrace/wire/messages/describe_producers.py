"""DescribeProducers (61), versions 0 to 0.

Generated from wire/schemas/describe_producers.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)

API_KEY = 61
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_QIIQIQ = Struct(">qiiqiq")
_QIIQIQX = Struct(">qiiqiqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersRequestTopic:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersRequest:
    topics: tuple[DescribeProducersRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersResponseActiveProducer:
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: tuple[DescribeProducersResponseActiveProducer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersResponseTopic:
    name: str = ""
    partitions: tuple[DescribeProducersResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersResponse:
    throttle_time_ms: int = 0
    topics: tuple[DescribeProducersResponseTopic, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[DescribeProducersRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partition_indexes, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeProducersRequestTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_topic_v0(write: Write, message: DescribeProducersRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_numbers(write, message.partition_indexes, INT32)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeProducersRequest, int]:
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeProducersRequest(topics=topics)
    return message, position


def _write_request_v0(write: Write, message: DescribeProducersRequest) -> None:
    write_compact_array(write, message.topics, _write_request_topic_v0)
    write(NO_TAGS)


def _read_response_active_producer_v0(
    body: Buffer, position: int
) -> tuple[DescribeProducersResponseActiveProducer, int]:
    (
        producer_id,
        producer_epoch,
        last_sequence,
        last_timestamp,
        coordinator_epoch,
        current_txn_start_offset,
    ) = _QIIQIQ.unpack_from(body, position)
    position += 36
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeProducersResponseActiveProducer(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        last_sequence=last_sequence,
        last_timestamp=last_timestamp,
        coordinator_epoch=coordinator_epoch,
        current_txn_start_offset=current_txn_start_offset,
    )
    return message, position


def _write_response_active_producer_v0(write: Write, message: DescribeProducersResponseActiveProducer) -> None:
    write(
        _QIIQIQX.pack(
            message.producer_id,
            message.producer_epoch,
            message.last_sequence,
            message.last_timestamp,
            message.coordinator_epoch,
            message.current_txn_start_offset,
        )
    )


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[DescribeProducersResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    active_producers, position = read_compact_array(body, position, 37, _read_response_active_producer_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeProducersResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
        active_producers=active_producers,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: DescribeProducersResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.active_producers, _write_response_active_producer_v0)
    write(NO_TAGS)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[DescribeProducersResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 9, _read_response_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeProducersResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: DescribeProducersResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeProducersResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeProducersResponse(throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v0(write: Write, message: DescribeProducersResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeProducersRequest:
    return decode(_REQUEST_READERS, "DescribeProducersRequest", buffer, position, end, version)


def encode_request(message: DescribeProducersRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeProducersRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeProducersResponse:
    return decode(_RESPONSE_READERS, "DescribeProducersResponse", buffer, position, end, version)


def encode_response(message: DescribeProducersResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeProducersResponse", message, version)


def begin_response(message: DescribeProducersResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeProducersResponse", message, version)
