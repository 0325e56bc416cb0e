"""SyncPartitions (32023), versions 0 to 0.

Generated from wire/schemas/sync_partitions.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, INT64, Buffer
from headrace.wire.primitives.readers import read_compact_array, read_compact_numbers, read_compact_string, skip_tags
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_numbers,
    write_compact_string,
)

API_KEY = 32023
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_IHX = Struct(">ihx")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPartitionsRequestTopic:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPartitionsRequest:
    metadata_offset: int = 0
    topics: tuple[SyncPartitionsRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPartitionsResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPartitionsResponseTopic:
    name: str = ""
    partitions: tuple[SyncPartitionsResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPartitionsResponse:
    boot_id: str = ""
    topics: tuple[SyncPartitionsResponseTopic, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[SyncPartitionsRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partition_indexes, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncPartitionsRequestTopic(name=name, partition_indexes=partition_indexes)
    return message, position


def _write_request_topic_v0(write: Write, message: SyncPartitionsRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_numbers(write, message.partition_indexes, INT32)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[SyncPartitionsRequest, int]:
    (metadata_offset,) = INT64.unpack_from(body, position)
    position += 8
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncPartitionsRequest(metadata_offset=metadata_offset, topics=topics)
    return message, position


def _write_request_v0(write: Write, message: SyncPartitionsRequest) -> None:
    write(INT64.pack(message.metadata_offset))
    write_compact_array(write, message.topics, _write_request_topic_v0)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[SyncPartitionsResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncPartitionsResponsePartition(partition_index=partition_index, error_code=error_code)
    return message, position


def _write_response_partition_v0(write: Write, message: SyncPartitionsResponsePartition) -> None:
    write(_IHX.pack(message.partition_index, message.error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[SyncPartitionsResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 7, _read_response_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncPartitionsResponseTopic(name=name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: SyncPartitionsResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[SyncPartitionsResponse, int]:
    boot_id, position = read_compact_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = SyncPartitionsResponse(boot_id=boot_id, topics=topics)
    return message, position


def _write_response_v0(write: Write, message: SyncPartitionsResponse) -> None:
    write_compact_string(write, message.boot_id)
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> SyncPartitionsRequest:
    return decode(_REQUEST_READERS, "SyncPartitionsRequest", buffer, position, end, version)


def encode_request(message: SyncPartitionsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "SyncPartitionsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> SyncPartitionsResponse:
    return decode(_RESPONSE_READERS, "SyncPartitionsResponse", buffer, position, end, version)


def encode_response(message: SyncPartitionsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "SyncPartitionsResponse", message, version)


def begin_response(message: SyncPartitionsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "SyncPartitionsResponse", message, version)
