"""DescribeQuorum (55), versions 0 to 2.

Generated from wire/schemas/describe_quorum.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, UINT16, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_string,
)

API_KEY = 55
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_IHIIQ = Struct(">ihiiq")
_IIQ = Struct(">iiq")
_IQ = Struct(">iq")
_IQQQ = Struct(">iqqq")
_IQQQX = Struct(">iqqqx")
_IQX = Struct(">iqx")
_ITQQQ = Struct(">i16sqqq")
_ITQQQX = Struct(">i16sqqqx")
_IX = Struct(">ix")
_UX = Struct(">Hx")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequestPartition:
    partition_index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequestTopic:
    topic_name: str = ""
    partitions: tuple[DescribeQuorumRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequest:
    topics: tuple[DescribeQuorumRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponseReplica:
    replica_id: int = 0
    replica_directory_id: bytes = ZERO_UUID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: tuple[DescribeQuorumResponseReplica, ...] = ()
    observers: tuple[DescribeQuorumResponseReplica, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponseTopic:
    topic_name: str = ""
    partitions: tuple[DescribeQuorumResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponseListener:
    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponseNode:
    node_id: int = 0
    listeners: tuple[DescribeQuorumResponseListener, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponse:
    error_code: int = 0
    error_message: str | None = ""
    topics: tuple[DescribeQuorumResponseTopic, ...] = ()
    nodes: tuple[DescribeQuorumResponseNode, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[DescribeQuorumRequestPartition, int]:
    (partition_index,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumRequestPartition(partition_index=partition_index)
    return message, position


def _write_request_partition_v0(write: Write, message: DescribeQuorumRequestPartition) -> None:
    write(_IX.pack(message.partition_index))


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[DescribeQuorumRequestTopic, int]:
    topic_name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 5, _read_request_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumRequestTopic(topic_name=topic_name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: DescribeQuorumRequestTopic) -> None:
    write_compact_string(write, message.topic_name)
    write_compact_array(write, message.partitions, _write_request_partition_v0)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeQuorumRequest, int]:
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumRequest(topics=topics)
    return message, position


def _write_request_v0(write: Write, message: DescribeQuorumRequest) -> None:
    write_compact_array(write, message.topics, _write_request_topic_v0)
    write(NO_TAGS)


def _read_response_replica_v0(body: Buffer, position: int) -> tuple[DescribeQuorumResponseReplica, int]:
    replica_id, log_end_offset = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseReplica(replica_id=replica_id, log_end_offset=log_end_offset)
    return message, position


def _write_response_replica_v0(write: Write, message: DescribeQuorumResponseReplica) -> None:
    write(_IQX.pack(message.replica_id, message.log_end_offset))


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[DescribeQuorumResponsePartition, int]:
    partition_index, error_code, leader_id, leader_epoch, high_watermark = _IHIIQ.unpack_from(body, position)
    position += 22
    current_voters, position = read_compact_array(body, position, 13, _read_response_replica_v0)
    observers, position = read_compact_array(body, position, 13, _read_response_replica_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        high_watermark=high_watermark,
        current_voters=current_voters,
        observers=observers,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: DescribeQuorumResponsePartition) -> None:
    write(
        _IHIIQ.pack(
            message.partition_index,
            message.error_code,
            message.leader_id,
            message.leader_epoch,
            message.high_watermark,
        )
    )
    write_compact_array(write, message.current_voters, _write_response_replica_v0)
    write_compact_array(write, message.observers, _write_response_replica_v0)
    write(NO_TAGS)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[DescribeQuorumResponseTopic, int]:
    topic_name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 25, _read_response_partition_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseTopic(topic_name=topic_name, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: DescribeQuorumResponseTopic) -> None:
    write_compact_string(write, message.topic_name)
    write_compact_array(write, message.partitions, _write_response_partition_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeQuorumResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponse(error_code=error_code, topics=topics)
    return message, position


def _write_response_v0(write: Write, message: DescribeQuorumResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write(NO_TAGS)


def _read_response_replica_v1(body: Buffer, position: int) -> tuple[DescribeQuorumResponseReplica, int]:
    replica_id, log_end_offset, last_fetch_timestamp, last_caught_up_timestamp = _IQQQ.unpack_from(body, position)
    position += 28
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseReplica(
        replica_id=replica_id,
        log_end_offset=log_end_offset,
        last_fetch_timestamp=last_fetch_timestamp,
        last_caught_up_timestamp=last_caught_up_timestamp,
    )
    return message, position


def _write_response_replica_v1(write: Write, message: DescribeQuorumResponseReplica) -> None:
    write(
        _IQQQX.pack(
            message.replica_id,
            message.log_end_offset,
            message.last_fetch_timestamp,
            message.last_caught_up_timestamp,
        )
    )


def _read_response_partition_v1(body: Buffer, position: int) -> tuple[DescribeQuorumResponsePartition, int]:
    partition_index, error_code, leader_id, leader_epoch, high_watermark = _IHIIQ.unpack_from(body, position)
    position += 22
    current_voters, position = read_compact_array(body, position, 29, _read_response_replica_v1)
    observers, position = read_compact_array(body, position, 29, _read_response_replica_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        high_watermark=high_watermark,
        current_voters=current_voters,
        observers=observers,
    )
    return message, position


def _write_response_partition_v1(write: Write, message: DescribeQuorumResponsePartition) -> None:
    write(
        _IHIIQ.pack(
            message.partition_index,
            message.error_code,
            message.leader_id,
            message.leader_epoch,
            message.high_watermark,
        )
    )
    write_compact_array(write, message.current_voters, _write_response_replica_v1)
    write_compact_array(write, message.observers, _write_response_replica_v1)
    write(NO_TAGS)


def _read_response_topic_v1(body: Buffer, position: int) -> tuple[DescribeQuorumResponseTopic, int]:
    topic_name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 25, _read_response_partition_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseTopic(topic_name=topic_name, partitions=partitions)
    return message, position


def _write_response_topic_v1(write: Write, message: DescribeQuorumResponseTopic) -> None:
    write_compact_string(write, message.topic_name)
    write_compact_array(write, message.partitions, _write_response_partition_v1)
    write(NO_TAGS)


def _read_response_v1(body: Buffer, position: int) -> tuple[DescribeQuorumResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponse(error_code=error_code, topics=topics)
    return message, position


def _write_response_v1(write: Write, message: DescribeQuorumResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_array(write, message.topics, _write_response_topic_v1)
    write(NO_TAGS)


def _read_response_replica_v2(body: Buffer, position: int) -> tuple[DescribeQuorumResponseReplica, int]:
    (
        replica_id,
        replica_directory_id,
        log_end_offset,
        last_fetch_timestamp,
        last_caught_up_timestamp,
    ) = _ITQQQ.unpack_from(body, position)
    position += 44
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseReplica(
        replica_id=replica_id,
        replica_directory_id=replica_directory_id,
        log_end_offset=log_end_offset,
        last_fetch_timestamp=last_fetch_timestamp,
        last_caught_up_timestamp=last_caught_up_timestamp,
    )
    return message, position


def _write_response_replica_v2(write: Write, message: DescribeQuorumResponseReplica) -> None:
    write(
        _ITQQQX.pack(
            message.replica_id,
            uuid(message.replica_directory_id),
            message.log_end_offset,
            message.last_fetch_timestamp,
            message.last_caught_up_timestamp,
        )
    )


def _read_response_partition_v2(body: Buffer, position: int) -> tuple[DescribeQuorumResponsePartition, int]:
    partition_index, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    leader_id, leader_epoch, high_watermark = _IIQ.unpack_from(body, position)
    position += 16
    current_voters, position = read_compact_array(body, position, 45, _read_response_replica_v2)
    observers, position = read_compact_array(body, position, 45, _read_response_replica_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        high_watermark=high_watermark,
        current_voters=current_voters,
        observers=observers,
    )
    return message, position


def _write_response_partition_v2(write: Write, message: DescribeQuorumResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write(_IIQ.pack(message.leader_id, message.leader_epoch, message.high_watermark))
    write_compact_array(write, message.current_voters, _write_response_replica_v2)
    write_compact_array(write, message.observers, _write_response_replica_v2)
    write(NO_TAGS)


def _read_response_topic_v2(body: Buffer, position: int) -> tuple[DescribeQuorumResponseTopic, int]:
    topic_name, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 26, _read_response_partition_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseTopic(topic_name=topic_name, partitions=partitions)
    return message, position


def _write_response_topic_v2(write: Write, message: DescribeQuorumResponseTopic) -> None:
    write_compact_string(write, message.topic_name)
    write_compact_array(write, message.partitions, _write_response_partition_v2)
    write(NO_TAGS)


def _read_response_listener_v2(body: Buffer, position: int) -> tuple[DescribeQuorumResponseListener, int]:
    name, position = read_compact_string(body, position)
    host, position = read_compact_string(body, position)
    (port,) = UINT16.unpack_from(body, position)
    position += 2
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseListener(name=name, host=host, port=port)
    return message, position


def _write_response_listener_v2(write: Write, message: DescribeQuorumResponseListener) -> None:
    write_compact_string(write, message.name)
    write_compact_string(write, message.host)
    write(_UX.pack(message.port))


def _read_response_node_v2(body: Buffer, position: int) -> tuple[DescribeQuorumResponseNode, int]:
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    listeners, position = read_compact_array(body, position, 5, _read_response_listener_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponseNode(node_id=node_id, listeners=listeners)
    return message, position


def _write_response_node_v2(write: Write, message: DescribeQuorumResponseNode) -> None:
    write(INT32.pack(message.node_id))
    write_compact_array(write, message.listeners, _write_response_listener_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[DescribeQuorumResponse, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v2)
    nodes, position = read_compact_array(body, position, 6, _read_response_node_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeQuorumResponse(error_code=error_code, error_message=error_message, topics=topics, nodes=nodes)
    return message, position


def _write_response_v2(write: Write, message: DescribeQuorumResponse) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_array(write, message.topics, _write_response_topic_v2)
    write_compact_array(write, message.nodes, _write_response_node_v2)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeQuorumRequest:
    return decode(_REQUEST_READERS, "DescribeQuorumRequest", buffer, position, end, version)


def encode_request(message: DescribeQuorumRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeQuorumRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeQuorumResponse:
    return decode(_RESPONSE_READERS, "DescribeQuorumResponse", buffer, position, end, version)


def encode_response(message: DescribeQuorumResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeQuorumResponse", message, version)


def begin_response(message: DescribeQuorumResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeQuorumResponse", message, version)
