"""ConsumerGroupHeartbeat (68), versions 0 to 1.

Generated from wire/schemas/consumer_group_heartbeat.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    read_nullable_struct,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_struct,
)

API_KEY = 68
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_II = Struct(">ii")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequestTopicPartitions:
    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequest:
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponseTopicPartitions:
    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponseAssignment:
    topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = None


def _read_request_topic_partitions_v0(
    body: Buffer, position: int
) -> tuple[ConsumerGroupHeartbeatRequestTopicPartitions, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_topic_partitions_v0(write: Write, message: ConsumerGroupHeartbeatRequestTopicPartitions) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_request_v0(body: Buffer, position: int) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    group_id, position = read_compact_string(body, position)
    member_id, position = read_compact_string(body, position)
    (member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    instance_id, position = read_compact_nullable_string(body, position)
    rack_id, position = read_compact_nullable_string(body, position)
    (rebalance_timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    subscribed_topic_names, position = read_compact_nullable_array(body, position, 1, read_compact_string)
    server_assignor, position = read_compact_nullable_string(body, position)
    topic_partitions, position = read_compact_nullable_array(body, position, 18, _read_request_topic_partitions_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        instance_id=instance_id,
        rack_id=rack_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=subscribed_topic_names,
        server_assignor=server_assignor,
        topic_partitions=topic_partitions,
    )
    return message, position


def _write_request_v0(write: Write, message: ConsumerGroupHeartbeatRequest) -> None:
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.member_id)
    write(INT32.pack(message.member_epoch))
    write_compact_nullable_string(write, message.instance_id)
    write_compact_nullable_string(write, message.rack_id)
    write(INT32.pack(message.rebalance_timeout_ms))
    write_compact_nullable_array(write, message.subscribed_topic_names, write_compact_string)
    write_compact_nullable_string(write, message.server_assignor)
    write_compact_nullable_array(write, message.topic_partitions, _write_request_topic_partitions_v0)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    group_id, position = read_compact_string(body, position)
    member_id, position = read_compact_string(body, position)
    (member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    instance_id, position = read_compact_nullable_string(body, position)
    rack_id, position = read_compact_nullable_string(body, position)
    (rebalance_timeout_ms,) = INT32.unpack_from(body, position)
    position += 4
    subscribed_topic_names, position = read_compact_nullable_array(body, position, 1, read_compact_string)
    subscribed_topic_regex, position = read_compact_nullable_string(body, position)
    server_assignor, position = read_compact_nullable_string(body, position)
    topic_partitions, position = read_compact_nullable_array(body, position, 18, _read_request_topic_partitions_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        instance_id=instance_id,
        rack_id=rack_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=subscribed_topic_names,
        subscribed_topic_regex=subscribed_topic_regex,
        server_assignor=server_assignor,
        topic_partitions=topic_partitions,
    )
    return message, position


def _write_request_v1(write: Write, message: ConsumerGroupHeartbeatRequest) -> None:
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.member_id)
    write(INT32.pack(message.member_epoch))
    write_compact_nullable_string(write, message.instance_id)
    write_compact_nullable_string(write, message.rack_id)
    write(INT32.pack(message.rebalance_timeout_ms))
    write_compact_nullable_array(write, message.subscribed_topic_names, write_compact_string)
    write_compact_nullable_string(write, message.subscribed_topic_regex)
    write_compact_nullable_string(write, message.server_assignor)
    write_compact_nullable_array(write, message.topic_partitions, _write_request_topic_partitions_v0)
    write(NO_TAGS)


def _read_response_topic_partitions_v0(
    body: Buffer, position: int
) -> tuple[ConsumerGroupHeartbeatResponseTopicPartitions, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_response_topic_partitions_v0(write: Write, message: ConsumerGroupHeartbeatResponseTopicPartitions) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_response_assignment_v0(body: Buffer, position: int) -> tuple[ConsumerGroupHeartbeatResponseAssignment, int]:
    topic_partitions, position = read_compact_array(body, position, 18, _read_response_topic_partitions_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupHeartbeatResponseAssignment(topic_partitions=topic_partitions)
    return message, position


def _write_response_assignment_v0(write: Write, message: ConsumerGroupHeartbeatResponseAssignment) -> None:
    write_compact_array(write, message.topic_partitions, _write_response_topic_partitions_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ConsumerGroupHeartbeatResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    error_message, position = read_compact_nullable_string(body, position)
    member_id, position = read_compact_nullable_string(body, position)
    member_epoch, heartbeat_interval_ms = _II.unpack_from(body, position)
    position += 8
    assignment, position = read_nullable_struct(body, position, _read_response_assignment_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupHeartbeatResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=assignment,
    )
    return message, position


def _write_response_v0(write: Write, message: ConsumerGroupHeartbeatResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_nullable_string(write, message.member_id)
    write(_II.pack(message.member_epoch, message.heartbeat_interval_ms))
    write_nullable_struct(write, message.assignment, _write_response_assignment_v0)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ConsumerGroupHeartbeatRequest:
    return decode(_REQUEST_READERS, "ConsumerGroupHeartbeatRequest", buffer, position, end, version)


def encode_request(message: ConsumerGroupHeartbeatRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ConsumerGroupHeartbeatRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ConsumerGroupHeartbeatResponse:
    return decode(_RESPONSE_READERS, "ConsumerGroupHeartbeatResponse", buffer, position, end, version)


def encode_response(message: ConsumerGroupHeartbeatResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ConsumerGroupHeartbeatResponse", message, version)


def begin_response(message: ConsumerGroupHeartbeatResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ConsumerGroupHeartbeatResponse", message, version)
