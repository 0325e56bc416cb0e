"""ConsumerGroupDescribe (69), versions 0 to 1.

Generated from wire/schemas/consumer_group_describe.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import BOOL, INT8, INT16, INT32, UUID, ZERO_UUID, Buffer
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
    uuid,
    write_compact_array,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)

API_KEY = 69
MIN_VERSION = 0
MAX_VERSION = 1
FLEXIBLE_FROM = 0

_BX = Struct(">bx")
_FX = Struct(">?x")
_II = Struct(">ii")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeRequest:
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponseTopicPartitions:
    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponseAssignment:
    topic_partitions: tuple[ConsumerGroupDescribeResponseTopicPartitions, ...] = ()


_DEFAULT_ConsumerGroupDescribeResponseAssignment = ConsumerGroupDescribeResponseAssignment()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponseMember:
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: ConsumerGroupDescribeResponseAssignment = _DEFAULT_ConsumerGroupDescribeResponseAssignment
    target_assignment: ConsumerGroupDescribeResponseAssignment = _DEFAULT_ConsumerGroupDescribeResponseAssignment
    member_type: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponseGroup:
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[ConsumerGroupDescribeResponseMember, ...] = ()
    authorized_operations: int = -2147483648


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponse:
    throttle_time_ms: int = 0
    groups: tuple[ConsumerGroupDescribeResponseGroup, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeRequest, int]:
    group_ids, position = read_compact_array(body, position, 1, read_compact_string)
    (include_authorized_operations,) = BOOL.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeRequest(
        group_ids=group_ids,
        include_authorized_operations=include_authorized_operations,
    )
    return message, position


def _write_request_v0(write: Write, message: ConsumerGroupDescribeRequest) -> None:
    write_compact_array(write, message.group_ids, write_compact_string)
    write(_FX.pack(message.include_authorized_operations))


def _read_response_topic_partitions_v0(
    body: Buffer, position: int
) -> tuple[ConsumerGroupDescribeResponseTopicPartitions, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    topic_name, position = read_compact_string(body, position)
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponseTopicPartitions(
        topic_id=topic_id,
        topic_name=topic_name,
        partitions=partitions,
    )
    return message, position


def _write_response_topic_partitions_v0(write: Write, message: ConsumerGroupDescribeResponseTopicPartitions) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_string(write, message.topic_name)
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_response_assignment_v0(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeResponseAssignment, int]:
    topic_partitions, position = read_compact_array(body, position, 19, _read_response_topic_partitions_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponseAssignment(topic_partitions=topic_partitions)
    return message, position


def _write_response_assignment_v0(write: Write, message: ConsumerGroupDescribeResponseAssignment) -> None:
    write_compact_array(write, message.topic_partitions, _write_response_topic_partitions_v0)
    write(NO_TAGS)


def _read_response_member_v0(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeResponseMember, int]:
    member_id, position = read_compact_string(body, position)
    instance_id, position = read_compact_nullable_string(body, position)
    rack_id, position = read_compact_nullable_string(body, position)
    (member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    client_id, position = read_compact_string(body, position)
    client_host, position = read_compact_string(body, position)
    subscribed_topic_names, position = read_compact_array(body, position, 1, read_compact_string)
    subscribed_topic_regex, position = read_compact_nullable_string(body, position)
    assignment, position = _read_response_assignment_v0(body, position)
    target_assignment, position = _read_response_assignment_v0(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponseMember(
        member_id=member_id,
        instance_id=instance_id,
        rack_id=rack_id,
        member_epoch=member_epoch,
        client_id=client_id,
        client_host=client_host,
        subscribed_topic_names=subscribed_topic_names,
        subscribed_topic_regex=subscribed_topic_regex,
        assignment=assignment,
        target_assignment=target_assignment,
    )
    return message, position


def _write_response_member_v0(write: Write, message: ConsumerGroupDescribeResponseMember) -> None:
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.instance_id)
    write_compact_nullable_string(write, message.rack_id)
    write(INT32.pack(message.member_epoch))
    write_compact_string(write, message.client_id)
    write_compact_string(write, message.client_host)
    write_compact_array(write, message.subscribed_topic_names, write_compact_string)
    write_compact_nullable_string(write, message.subscribed_topic_regex)
    _write_response_assignment_v0(write, message.assignment)
    _write_response_assignment_v0(write, message.target_assignment)
    write(NO_TAGS)


def _read_response_group_v0(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeResponseGroup, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    group_id, position = read_compact_string(body, position)
    group_state, position = read_compact_string(body, position)
    group_epoch, assignment_epoch = _II.unpack_from(body, position)
    position += 8
    assignor_name, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 16, _read_response_member_v0)
    (authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponseGroup(
        error_code=error_code,
        error_message=error_message,
        group_id=group_id,
        group_state=group_state,
        group_epoch=group_epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=assignor_name,
        members=members,
        authorized_operations=authorized_operations,
    )
    return message, position


def _write_response_group_v0(write: Write, message: ConsumerGroupDescribeResponseGroup) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.group_state)
    write(_II.pack(message.group_epoch, message.assignment_epoch))
    write_compact_string(write, message.assignor_name)
    write_compact_array(write, message.members, _write_response_member_v0)
    write(_IX.pack(message.authorized_operations))


def _read_response_v0(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_compact_array(body, position, 20, _read_response_group_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v0(write: Write, message: ConsumerGroupDescribeResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.groups, _write_response_group_v0)
    write(NO_TAGS)


def _read_response_member_v1(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeResponseMember, int]:
    member_id, position = read_compact_string(body, position)
    instance_id, position = read_compact_nullable_string(body, position)
    rack_id, position = read_compact_nullable_string(body, position)
    (member_epoch,) = INT32.unpack_from(body, position)
    position += 4
    client_id, position = read_compact_string(body, position)
    client_host, position = read_compact_string(body, position)
    subscribed_topic_names, position = read_compact_array(body, position, 1, read_compact_string)
    subscribed_topic_regex, position = read_compact_nullable_string(body, position)
    assignment, position = _read_response_assignment_v0(body, position)
    target_assignment, position = _read_response_assignment_v0(body, position)
    (member_type,) = INT8.unpack_from(body, position)
    position += 1
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponseMember(
        member_id=member_id,
        instance_id=instance_id,
        rack_id=rack_id,
        member_epoch=member_epoch,
        client_id=client_id,
        client_host=client_host,
        subscribed_topic_names=subscribed_topic_names,
        subscribed_topic_regex=subscribed_topic_regex,
        assignment=assignment,
        target_assignment=target_assignment,
        member_type=member_type,
    )
    return message, position


def _write_response_member_v1(write: Write, message: ConsumerGroupDescribeResponseMember) -> None:
    write_compact_string(write, message.member_id)
    write_compact_nullable_string(write, message.instance_id)
    write_compact_nullable_string(write, message.rack_id)
    write(INT32.pack(message.member_epoch))
    write_compact_string(write, message.client_id)
    write_compact_string(write, message.client_host)
    write_compact_array(write, message.subscribed_topic_names, write_compact_string)
    write_compact_nullable_string(write, message.subscribed_topic_regex)
    _write_response_assignment_v0(write, message.assignment)
    _write_response_assignment_v0(write, message.target_assignment)
    write(_BX.pack(message.member_type))


def _read_response_group_v1(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeResponseGroup, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    error_message, position = read_compact_nullable_string(body, position)
    group_id, position = read_compact_string(body, position)
    group_state, position = read_compact_string(body, position)
    group_epoch, assignment_epoch = _II.unpack_from(body, position)
    position += 8
    assignor_name, position = read_compact_string(body, position)
    members, position = read_compact_array(body, position, 17, _read_response_member_v1)
    (authorized_operations,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponseGroup(
        error_code=error_code,
        error_message=error_message,
        group_id=group_id,
        group_state=group_state,
        group_epoch=group_epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=assignor_name,
        members=members,
        authorized_operations=authorized_operations,
    )
    return message, position


def _write_response_group_v1(write: Write, message: ConsumerGroupDescribeResponseGroup) -> None:
    write(INT16.pack(message.error_code))
    write_compact_nullable_string(write, message.error_message)
    write_compact_string(write, message.group_id)
    write_compact_string(write, message.group_state)
    write(_II.pack(message.group_epoch, message.assignment_epoch))
    write_compact_string(write, message.assignor_name)
    write_compact_array(write, message.members, _write_response_member_v1)
    write(_IX.pack(message.authorized_operations))


def _read_response_v1(body: Buffer, position: int) -> tuple[ConsumerGroupDescribeResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    groups, position = read_compact_array(body, position, 20, _read_response_group_v1)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ConsumerGroupDescribeResponse(throttle_time_ms=throttle_time_ms, groups=groups)
    return message, position


def _write_response_v1(write: Write, message: ConsumerGroupDescribeResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.groups, _write_response_group_v1)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ConsumerGroupDescribeRequest:
    return decode(_REQUEST_READERS, "ConsumerGroupDescribeRequest", buffer, position, end, version)


def encode_request(message: ConsumerGroupDescribeRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ConsumerGroupDescribeRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ConsumerGroupDescribeResponse:
    return decode(_RESPONSE_READERS, "ConsumerGroupDescribeResponse", buffer, position, end, version)


def encode_response(message: ConsumerGroupDescribeResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ConsumerGroupDescribeResponse", message, version)


def begin_response(message: ConsumerGroupDescribeResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ConsumerGroupDescribeResponse", message, version)
