"""OffsetDelete (47), versions 0 to 0.

Generated from wire/schemas/offset_delete.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, Buffer
from headrace.wire.primitives.readers import read_array, read_string
from headrace.wire.primitives.writers import Write, write_array, write_string

API_KEY = 47
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 32767

_HI = Struct(">hi")
_IH = Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequest:
    group_id: str = ""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse:
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[OffsetDeleteRequestPartition, int]:
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    message = OffsetDeleteRequestPartition(partition_index=partition_index)
    return message, position


def _write_request_partition_v0(write: Write, message: OffsetDeleteRequestPartition) -> None:
    write(INT32.pack(message.partition_index))


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[OffsetDeleteRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 4, _read_request_partition_v0)
    message = OffsetDeleteRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: OffsetDeleteRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_request_partition_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[OffsetDeleteRequest, int]:
    group_id, position = read_string(body, position)
    topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = OffsetDeleteRequest(group_id=group_id, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: OffsetDeleteRequest) -> None:
    write_string(write, message.group_id)
    write_array(write, message.topics, _write_request_topic_v0)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[OffsetDeleteResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    message = OffsetDeleteResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v0(write: Write, message: OffsetDeleteResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[OffsetDeleteResponseTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_array(body, position, 6, _read_response_partition_v0)
    message = OffsetDeleteResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: OffsetDeleteResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partitions, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[OffsetDeleteResponse, int]:
    error_code, throttle_time_ms = _HI.unpack_from(body, position)
    position += 6
    topics, position = read_array(body, position, 6, _read_response_topic_v0)
    message = OffsetDeleteResponse(error_code=error_code, throttle_time_ms=throttle_time_ms, topics=topics)
    return message, position


def _write_response_v0(write: Write, message: OffsetDeleteResponse) -> None:
    write(_HI.pack(message.error_code, message.throttle_time_ms))
    write_array(write, message.topics, _write_response_topic_v0)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> OffsetDeleteRequest:
    return decode(_REQUEST_READERS, "OffsetDeleteRequest", buffer, position, end, version)


def encode_request(message: OffsetDeleteRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "OffsetDeleteRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> OffsetDeleteResponse:
    return decode(_RESPONSE_READERS, "OffsetDeleteResponse", buffer, position, end, version)


def encode_response(message: OffsetDeleteResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "OffsetDeleteResponse", message, version)


def begin_response(message: OffsetDeleteResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "OffsetDeleteResponse", message, version)
