"""Produce (0), versions 0 to 13.

Generated from wire/schemas/produce.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, decode_view, encode
from headrace.wire.primitives.layouts import INT32, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_array,
    read_compact_array,
    read_compact_nullable_records,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_records,
    read_nullable_string,
    read_string,
    read_tag,
    read_tag_count,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_array,
    write_compact_array,
    write_compact_nullable_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_bytes,
    write_nullable_string,
    write_string,
    write_tags,
)

API_KEY = 0
MIN_VERSION = 0
MAX_VERSION = 13
FLEXIBLE_FROM = 9

_HI = Struct(">hi")
_IHQ = Struct(">ihq")
_IHQQ = Struct(">ihqq")
_IHQQQ = Struct(">ihqqq")
_II = Struct(">ii")
_IIX = Struct(">iix")
_IX = Struct(">ix")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequestPartition:
    index: int = 0
    records: Buffer | None = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequestTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_data: tuple[ProduceRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest:
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: tuple[ProduceRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponseRecordError:
    batch_index: int = 0
    batch_index_error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponseCurrentLeader:
    leader_id: int = -1
    leader_epoch: int = -1


_DEFAULT_ProduceResponseCurrentLeader = ProduceResponseCurrentLeader()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponsePartition:
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[ProduceResponseRecordError, ...] = ()
    error_message: str | None = None
    current_leader: ProduceResponseCurrentLeader = _DEFAULT_ProduceResponseCurrentLeader


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponseTopic:
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_responses: tuple[ProduceResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponseNodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse:
    responses: tuple[ProduceResponseTopic, ...] = ()
    throttle_time_ms: int = 0
    node_endpoints: tuple[ProduceResponseNodeEndpoint, ...] = ()


def _read_request_partition_v0(body: Buffer, position: int) -> tuple[ProduceRequestPartition, int]:
    (index,) = INT32.unpack_from(body, position)
    position += 4
    records, position = read_nullable_records(body, position)
    message = ProduceRequestPartition(index=index, records=records)
    return message, position


def _write_request_partition_v0(write: Write, message: ProduceRequestPartition) -> None:
    write(INT32.pack(message.index))
    write_nullable_bytes(write, message.records)


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[ProduceRequestTopic, int]:
    name, position = read_string(body, position)
    partition_data, position = read_array(body, position, 8, _read_request_partition_v0)
    message = ProduceRequestTopic(name=name, partition_data=partition_data)
    return message, position


def _write_request_topic_v0(write: Write, message: ProduceRequestTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partition_data, _write_request_partition_v0)


def _read_request_v0(body: Buffer, position: int) -> tuple[ProduceRequest, int]:
    acks, timeout_ms = _HI.unpack_from(body, position)
    position += 6
    topic_data, position = read_array(body, position, 6, _read_request_topic_v0)
    message = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topic_data)
    return message, position


def _write_request_v0(write: Write, message: ProduceRequest) -> None:
    write(_HI.pack(message.acks, message.timeout_ms))
    write_array(write, message.topic_data, _write_request_topic_v0)


def _read_request_v3(body: Buffer, position: int) -> tuple[ProduceRequest, int]:
    transactional_id, position = read_nullable_string(body, position)
    acks, timeout_ms = _HI.unpack_from(body, position)
    position += 6
    topic_data, position = read_array(body, position, 6, _read_request_topic_v0)
    message = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topic_data)
    return message, position


def _write_request_v3(write: Write, message: ProduceRequest) -> None:
    write_nullable_string(write, message.transactional_id)
    write(_HI.pack(message.acks, message.timeout_ms))
    write_array(write, message.topic_data, _write_request_topic_v0)


def _read_request_partition_v9(body: Buffer, position: int) -> tuple[ProduceRequestPartition, int]:
    (index,) = INT32.unpack_from(body, position)
    position += 4
    records, position = read_compact_nullable_records(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceRequestPartition(index=index, records=records)
    return message, position


def _write_request_partition_v9(write: Write, message: ProduceRequestPartition) -> None:
    write(INT32.pack(message.index))
    write_compact_nullable_bytes(write, message.records)
    write(NO_TAGS)


def _read_request_topic_v9(body: Buffer, position: int) -> tuple[ProduceRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partition_data, position = read_compact_array(body, position, 6, _read_request_partition_v9)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceRequestTopic(name=name, partition_data=partition_data)
    return message, position


def _write_request_topic_v9(write: Write, message: ProduceRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partition_data, _write_request_partition_v9)
    write(NO_TAGS)


def _read_request_v9(body: Buffer, position: int) -> tuple[ProduceRequest, int]:
    transactional_id, position = read_compact_nullable_string(body, position)
    acks, timeout_ms = _HI.unpack_from(body, position)
    position += 6
    topic_data, position = read_compact_array(body, position, 3, _read_request_topic_v9)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topic_data)
    return message, position


def _write_request_v9(write: Write, message: ProduceRequest) -> None:
    write_compact_nullable_string(write, message.transactional_id)
    write(_HI.pack(message.acks, message.timeout_ms))
    write_compact_array(write, message.topic_data, _write_request_topic_v9)
    write(NO_TAGS)


def _read_request_topic_v13(body: Buffer, position: int) -> tuple[ProduceRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partition_data, position = read_compact_array(body, position, 6, _read_request_partition_v9)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceRequestTopic(topic_id=topic_id, partition_data=partition_data)
    return message, position


def _write_request_topic_v13(write: Write, message: ProduceRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partition_data, _write_request_partition_v9)
    write(NO_TAGS)


def _read_request_v13(body: Buffer, position: int) -> tuple[ProduceRequest, int]:
    transactional_id, position = read_compact_nullable_string(body, position)
    acks, timeout_ms = _HI.unpack_from(body, position)
    position += 6
    topic_data, position = read_compact_array(body, position, 18, _read_request_topic_v13)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topic_data)
    return message, position


def _write_request_v13(write: Write, message: ProduceRequest) -> None:
    write_compact_nullable_string(write, message.transactional_id)
    write(_HI.pack(message.acks, message.timeout_ms))
    write_compact_array(write, message.topic_data, _write_request_topic_v13)
    write(NO_TAGS)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[ProduceResponsePartition, int]:
    index, error_code, base_offset = _IHQ.unpack_from(body, position)
    position += 14
    message = ProduceResponsePartition(index=index, error_code=error_code, base_offset=base_offset)
    return message, position


def _write_response_partition_v0(write: Write, message: ProduceResponsePartition) -> None:
    write(_IHQ.pack(message.index, message.error_code, message.base_offset))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[ProduceResponseTopic, int]:
    name, position = read_string(body, position)
    partition_responses, position = read_array(body, position, 14, _read_response_partition_v0)
    message = ProduceResponseTopic(name=name, partition_responses=partition_responses)
    return message, position


def _write_response_topic_v0(write: Write, message: ProduceResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partition_responses, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_array(body, position, 6, _read_response_topic_v0)
    message = ProduceResponse(responses=responses)
    return message, position


def _write_response_v0(write: Write, message: ProduceResponse) -> None:
    write_array(write, message.responses, _write_response_topic_v0)


def _read_response_v1(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_array(body, position, 6, _read_response_topic_v0)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = ProduceResponse(responses=responses, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v1(write: Write, message: ProduceResponse) -> None:
    write_array(write, message.responses, _write_response_topic_v0)
    write(INT32.pack(message.throttle_time_ms))


def _read_response_partition_v2(body: Buffer, position: int) -> tuple[ProduceResponsePartition, int]:
    index, error_code, base_offset, log_append_time_ms = _IHQQ.unpack_from(body, position)
    position += 22
    message = ProduceResponsePartition(
        index=index,
        error_code=error_code,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
    )
    return message, position


def _write_response_partition_v2(write: Write, message: ProduceResponsePartition) -> None:
    write(_IHQQ.pack(message.index, message.error_code, message.base_offset, message.log_append_time_ms))


def _read_response_topic_v2(body: Buffer, position: int) -> tuple[ProduceResponseTopic, int]:
    name, position = read_string(body, position)
    partition_responses, position = read_array(body, position, 22, _read_response_partition_v2)
    message = ProduceResponseTopic(name=name, partition_responses=partition_responses)
    return message, position


def _write_response_topic_v2(write: Write, message: ProduceResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partition_responses, _write_response_partition_v2)


def _read_response_v2(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_array(body, position, 6, _read_response_topic_v2)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = ProduceResponse(responses=responses, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v2(write: Write, message: ProduceResponse) -> None:
    write_array(write, message.responses, _write_response_topic_v2)
    write(INT32.pack(message.throttle_time_ms))


def _read_response_partition_v5(body: Buffer, position: int) -> tuple[ProduceResponsePartition, int]:
    index, error_code, base_offset, log_append_time_ms, log_start_offset = _IHQQQ.unpack_from(body, position)
    position += 30
    message = ProduceResponsePartition(
        index=index,
        error_code=error_code,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
    )
    return message, position


def _write_response_partition_v5(write: Write, message: ProduceResponsePartition) -> None:
    write(
        _IHQQQ.pack(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
        )
    )


def _read_response_topic_v5(body: Buffer, position: int) -> tuple[ProduceResponseTopic, int]:
    name, position = read_string(body, position)
    partition_responses, position = read_array(body, position, 30, _read_response_partition_v5)
    message = ProduceResponseTopic(name=name, partition_responses=partition_responses)
    return message, position


def _write_response_topic_v5(write: Write, message: ProduceResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partition_responses, _write_response_partition_v5)


def _read_response_v5(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_array(body, position, 6, _read_response_topic_v5)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = ProduceResponse(responses=responses, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v5(write: Write, message: ProduceResponse) -> None:
    write_array(write, message.responses, _write_response_topic_v5)
    write(INT32.pack(message.throttle_time_ms))


def _read_response_record_error_v8(body: Buffer, position: int) -> tuple[ProduceResponseRecordError, int]:
    (batch_index,) = INT32.unpack_from(body, position)
    position += 4
    batch_index_error_message, position = read_nullable_string(body, position)
    message = ProduceResponseRecordError(batch_index=batch_index, batch_index_error_message=batch_index_error_message)
    return message, position


def _write_response_record_error_v8(write: Write, message: ProduceResponseRecordError) -> None:
    write(INT32.pack(message.batch_index))
    write_nullable_string(write, message.batch_index_error_message)


def _read_response_partition_v8(body: Buffer, position: int) -> tuple[ProduceResponsePartition, int]:
    index, error_code, base_offset, log_append_time_ms, log_start_offset = _IHQQQ.unpack_from(body, position)
    position += 30
    record_errors, position = read_array(body, position, 6, _read_response_record_error_v8)
    error_message, position = read_nullable_string(body, position)
    message = ProduceResponsePartition(
        index=index,
        error_code=error_code,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
        record_errors=record_errors,
        error_message=error_message,
    )
    return message, position


def _write_response_partition_v8(write: Write, message: ProduceResponsePartition) -> None:
    write(
        _IHQQQ.pack(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
        )
    )
    write_array(write, message.record_errors, _write_response_record_error_v8)
    write_nullable_string(write, message.error_message)


def _read_response_topic_v8(body: Buffer, position: int) -> tuple[ProduceResponseTopic, int]:
    name, position = read_string(body, position)
    partition_responses, position = read_array(body, position, 36, _read_response_partition_v8)
    message = ProduceResponseTopic(name=name, partition_responses=partition_responses)
    return message, position


def _write_response_topic_v8(write: Write, message: ProduceResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.partition_responses, _write_response_partition_v8)


def _read_response_v8(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_array(body, position, 6, _read_response_topic_v8)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    message = ProduceResponse(responses=responses, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v8(write: Write, message: ProduceResponse) -> None:
    write_array(write, message.responses, _write_response_topic_v8)
    write(INT32.pack(message.throttle_time_ms))


def _read_response_record_error_v9(body: Buffer, position: int) -> tuple[ProduceResponseRecordError, int]:
    (batch_index,) = INT32.unpack_from(body, position)
    position += 4
    batch_index_error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponseRecordError(batch_index=batch_index, batch_index_error_message=batch_index_error_message)
    return message, position


def _write_response_record_error_v9(write: Write, message: ProduceResponseRecordError) -> None:
    write(INT32.pack(message.batch_index))
    write_compact_nullable_string(write, message.batch_index_error_message)
    write(NO_TAGS)


def _read_response_partition_v9(body: Buffer, position: int) -> tuple[ProduceResponsePartition, int]:
    index, error_code, base_offset, log_append_time_ms, log_start_offset = _IHQQQ.unpack_from(body, position)
    position += 30
    record_errors, position = read_compact_array(body, position, 6, _read_response_record_error_v9)
    error_message, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponsePartition(
        index=index,
        error_code=error_code,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
        record_errors=record_errors,
        error_message=error_message,
    )
    return message, position


def _write_response_partition_v9(write: Write, message: ProduceResponsePartition) -> None:
    write(
        _IHQQQ.pack(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
        )
    )
    write_compact_array(write, message.record_errors, _write_response_record_error_v9)
    write_compact_nullable_string(write, message.error_message)
    write(NO_TAGS)


def _read_response_topic_v9(body: Buffer, position: int) -> tuple[ProduceResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partition_responses, position = read_compact_array(body, position, 33, _read_response_partition_v9)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponseTopic(name=name, partition_responses=partition_responses)
    return message, position


def _write_response_topic_v9(write: Write, message: ProduceResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partition_responses, _write_response_partition_v9)
    write(NO_TAGS)


def _read_response_v9(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_compact_array(body, position, 3, _read_response_topic_v9)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponse(responses=responses, throttle_time_ms=throttle_time_ms)
    return message, position


def _write_response_v9(write: Write, message: ProduceResponse) -> None:
    write_compact_array(write, message.responses, _write_response_topic_v9)
    write(_IX.pack(message.throttle_time_ms))


def _read_response_current_leader_v10(body: Buffer, position: int) -> tuple[ProduceResponseCurrentLeader, int]:
    leader_id, leader_epoch = _II.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponseCurrentLeader(leader_id=leader_id, leader_epoch=leader_epoch)
    return message, position


def _write_response_current_leader_v10(write: Write, message: ProduceResponseCurrentLeader) -> None:
    write(_IIX.pack(message.leader_id, message.leader_epoch))


def _read_response_partition_v10(body: Buffer, position: int) -> tuple[ProduceResponsePartition, int]:
    index, error_code, base_offset, log_append_time_ms, log_start_offset = _IHQQQ.unpack_from(body, position)
    position += 30
    record_errors, position = read_compact_array(body, position, 6, _read_response_record_error_v9)
    error_message, position = read_compact_nullable_string(body, position)
    current_leader = _DEFAULT_ProduceResponseCurrentLeader
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            current_leader, position = _read_response_current_leader_v10(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = ProduceResponsePartition(
        index=index,
        error_code=error_code,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
        record_errors=record_errors,
        error_message=error_message,
        current_leader=current_leader,
    )
    return message, position


def _write_response_partition_v10(write: Write, message: ProduceResponsePartition) -> None:
    write(
        _IHQQQ.pack(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
        )
    )
    write_compact_array(write, message.record_errors, _write_response_record_error_v9)
    write_compact_nullable_string(write, message.error_message)
    tagged: list[tuple[int, bytes]] = []
    if message.current_leader != _DEFAULT_ProduceResponseCurrentLeader:
        parts: list[Buffer] = []
        _write_response_current_leader_v10(parts.append, message.current_leader)
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_topic_v10(body: Buffer, position: int) -> tuple[ProduceResponseTopic, int]:
    name, position = read_compact_string(body, position)
    partition_responses, position = read_compact_array(body, position, 33, _read_response_partition_v10)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponseTopic(name=name, partition_responses=partition_responses)
    return message, position


def _write_response_topic_v10(write: Write, message: ProduceResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.partition_responses, _write_response_partition_v10)
    write(NO_TAGS)


def _read_response_node_endpoint_v10(body: Buffer, position: int) -> tuple[ProduceResponseNodeEndpoint, int]:
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_compact_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    rack, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponseNodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
    return message, position


def _write_response_node_endpoint_v10(write: Write, message: ProduceResponseNodeEndpoint) -> None:
    write(INT32.pack(message.node_id))
    write_compact_string(write, message.host)
    write(INT32.pack(message.port))
    write_compact_nullable_string(write, message.rack)
    write(NO_TAGS)


def _read_response_v10(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_compact_array(body, position, 3, _read_response_topic_v10)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    node_endpoints: tuple[ProduceResponseNodeEndpoint, ...] = ()
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            node_endpoints, position = read_compact_array(body, position, 11, _read_response_node_endpoint_v10)
        else:
            position = stop
        end_tag(position, stop)
    message = ProduceResponse(responses=responses, throttle_time_ms=throttle_time_ms, node_endpoints=node_endpoints)
    return message, position


def _write_response_v10(write: Write, message: ProduceResponse) -> None:
    write_compact_array(write, message.responses, _write_response_topic_v10)
    write(INT32.pack(message.throttle_time_ms))
    tagged: list[tuple[int, bytes]] = []
    if message.node_endpoints:
        parts: list[Buffer] = []
        write_compact_array(parts.append, message.node_endpoints, _write_response_node_endpoint_v10)
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_topic_v13(body: Buffer, position: int) -> tuple[ProduceResponseTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partition_responses, position = read_compact_array(body, position, 33, _read_response_partition_v10)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ProduceResponseTopic(topic_id=topic_id, partition_responses=partition_responses)
    return message, position


def _write_response_topic_v13(write: Write, message: ProduceResponseTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partition_responses, _write_response_partition_v10)
    write(NO_TAGS)


def _read_response_v13(body: Buffer, position: int) -> tuple[ProduceResponse, int]:
    responses, position = read_compact_array(body, position, 18, _read_response_topic_v13)
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    node_endpoints: tuple[ProduceResponseNodeEndpoint, ...] = ()
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            node_endpoints, position = read_compact_array(body, position, 11, _read_response_node_endpoint_v10)
        else:
            position = stop
        end_tag(position, stop)
    message = ProduceResponse(responses=responses, throttle_time_ms=throttle_time_ms, node_endpoints=node_endpoints)
    return message, position


def _write_response_v13(write: Write, message: ProduceResponse) -> None:
    write_compact_array(write, message.responses, _write_response_topic_v13)
    write(INT32.pack(message.throttle_time_ms))
    tagged: list[tuple[int, bytes]] = []
    if message.node_endpoints:
        parts: list[Buffer] = []
        write_compact_array(parts.append, message.node_endpoints, _write_response_node_endpoint_v10)
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v3,
    _read_request_v3,
    _read_request_v3,
    _read_request_v3,
    _read_request_v3,
    _read_request_v9,
    _read_request_v9,
    _read_request_v9,
    _read_request_v9,
    _read_request_v13,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v3,
    _write_request_v3,
    _write_request_v3,
    _write_request_v3,
    _write_request_v3,
    _write_request_v9,
    _write_request_v9,
    _write_request_v9,
    _write_request_v9,
    _write_request_v13,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ProduceRequest:
    return decode_view(_REQUEST_READERS, "ProduceRequest", buffer, position, end, version)


def encode_request(message: ProduceRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ProduceRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v1,
    _read_response_v2,
    _read_response_v2,
    _read_response_v2,
    _read_response_v5,
    _read_response_v5,
    _read_response_v5,
    _read_response_v8,
    _read_response_v9,
    _read_response_v10,
    _read_response_v10,
    _read_response_v10,
    _read_response_v13,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v1,
    _write_response_v2,
    _write_response_v2,
    _write_response_v2,
    _write_response_v5,
    _write_response_v5,
    _write_response_v5,
    _write_response_v8,
    _write_response_v9,
    _write_response_v10,
    _write_response_v10,
    _write_response_v10,
    _write_response_v13,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ProduceResponse:
    return decode(_RESPONSE_READERS, "ProduceResponse", buffer, position, end, version)


def encode_response(message: ProduceResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ProduceResponse", message, version)


def begin_response(message: ProduceResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ProduceResponse", message, version)
