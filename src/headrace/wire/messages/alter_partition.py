"""AlterPartition (56), versions 2 to 3.

Generated from wire/schemas/alter_partition.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import read_compact_array, read_compact_numbers, skip_tags
from headrace.wire.primitives.writers import NO_TAGS, Write, uuid, write_compact_array, write_compact_numbers

API_KEY = 56
MIN_VERSION = 2
MAX_VERSION = 3
FLEXIBLE_FROM = 0

_BI = Struct(">bi")
_BIX = Struct(">bix")
_IH = Struct(">ih")
_IHII = Struct(">ihii")
_II = Struct(">ii")
_IQ = Struct(">iq")
_IQX = Struct(">iqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequestBrokerState:
    broker_id: int = 0
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequestPartition:
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: tuple[int, ...] = ()
    new_isr_with_epochs: tuple[AlterPartitionRequestBrokerState, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequestTopic:
    topic_id: bytes = ZERO_UUID
    partitions: tuple[AlterPartitionRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    broker_id: int = 0
    broker_epoch: int = -1
    topics: tuple[AlterPartitionRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponseTopic:
    topic_id: bytes = ZERO_UUID
    partitions: tuple[AlterPartitionResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: tuple[AlterPartitionResponseTopic, ...] = ()


def _read_request_partition_v2(body: Buffer, position: int) -> tuple[AlterPartitionRequestPartition, int]:
    partition_index, leader_epoch = _II.unpack_from(body, position)
    position += 8
    new_isr, position = read_compact_numbers(body, position, INT32)
    leader_recovery_state, partition_epoch = _BI.unpack_from(body, position)
    position += 5
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionRequestPartition(
        partition_index=partition_index,
        leader_epoch=leader_epoch,
        new_isr=new_isr,
        leader_recovery_state=leader_recovery_state,
        partition_epoch=partition_epoch,
    )
    return message, position


def _write_request_partition_v2(write: Write, message: AlterPartitionRequestPartition) -> None:
    write(_II.pack(message.partition_index, message.leader_epoch))
    write_compact_numbers(write, message.new_isr, INT32)
    write(_BIX.pack(message.leader_recovery_state, message.partition_epoch))


def _read_request_topic_v2(body: Buffer, position: int) -> tuple[AlterPartitionRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 15, _read_request_partition_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionRequestTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_topic_v2(write: Write, message: AlterPartitionRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_request_partition_v2)
    write(NO_TAGS)


def _read_request_v2(body: Buffer, position: int) -> tuple[AlterPartitionRequest, int]:
    broker_id, broker_epoch = _IQ.unpack_from(body, position)
    position += 12
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)
    return message, position


def _write_request_v2(write: Write, message: AlterPartitionRequest) -> None:
    write(_IQ.pack(message.broker_id, message.broker_epoch))
    write_compact_array(write, message.topics, _write_request_topic_v2)
    write(NO_TAGS)


def _read_request_broker_state_v3(body: Buffer, position: int) -> tuple[AlterPartitionRequestBrokerState, int]:
    broker_id, broker_epoch = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionRequestBrokerState(broker_id=broker_id, broker_epoch=broker_epoch)
    return message, position


def _write_request_broker_state_v3(write: Write, message: AlterPartitionRequestBrokerState) -> None:
    write(_IQX.pack(message.broker_id, message.broker_epoch))


def _read_request_partition_v3(body: Buffer, position: int) -> tuple[AlterPartitionRequestPartition, int]:
    partition_index, leader_epoch = _II.unpack_from(body, position)
    position += 8
    new_isr_with_epochs, position = read_compact_array(body, position, 13, _read_request_broker_state_v3)
    leader_recovery_state, partition_epoch = _BI.unpack_from(body, position)
    position += 5
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionRequestPartition(
        partition_index=partition_index,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=new_isr_with_epochs,
        leader_recovery_state=leader_recovery_state,
        partition_epoch=partition_epoch,
    )
    return message, position


def _write_request_partition_v3(write: Write, message: AlterPartitionRequestPartition) -> None:
    write(_II.pack(message.partition_index, message.leader_epoch))
    write_compact_array(write, message.new_isr_with_epochs, _write_request_broker_state_v3)
    write(_BIX.pack(message.leader_recovery_state, message.partition_epoch))


def _read_request_topic_v3(body: Buffer, position: int) -> tuple[AlterPartitionRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 15, _read_request_partition_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionRequestTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_topic_v3(write: Write, message: AlterPartitionRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_request_partition_v3)
    write(NO_TAGS)


def _read_request_v3(body: Buffer, position: int) -> tuple[AlterPartitionRequest, int]:
    broker_id, broker_epoch = _IQ.unpack_from(body, position)
    position += 12
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)
    return message, position


def _write_request_v3(write: Write, message: AlterPartitionRequest) -> None:
    write(_IQ.pack(message.broker_id, message.broker_epoch))
    write_compact_array(write, message.topics, _write_request_topic_v3)
    write(NO_TAGS)


def _read_response_partition_v2(body: Buffer, position: int) -> tuple[AlterPartitionResponsePartition, int]:
    partition_index, error_code, leader_id, leader_epoch = _IHII.unpack_from(body, position)
    position += 14
    isr, position = read_compact_numbers(body, position, INT32)
    leader_recovery_state, partition_epoch = _BI.unpack_from(body, position)
    position += 5
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        isr=isr,
        leader_recovery_state=leader_recovery_state,
        partition_epoch=partition_epoch,
    )
    return message, position


def _write_response_partition_v2(write: Write, message: AlterPartitionResponsePartition) -> None:
    write(_IHII.pack(message.partition_index, message.error_code, message.leader_id, message.leader_epoch))
    write_compact_numbers(write, message.isr, INT32)
    write(_BIX.pack(message.leader_recovery_state, message.partition_epoch))


def _read_response_topic_v2(body: Buffer, position: int) -> tuple[AlterPartitionResponseTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 21, _read_response_partition_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionResponseTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_response_topic_v2(write: Write, message: AlterPartitionResponseTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_response_partition_v2)
    write(NO_TAGS)


def _read_response_v2(body: Buffer, position: int) -> tuple[AlterPartitionResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    topics, position = read_compact_array(body, position, 18, _read_response_topic_v2)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AlterPartitionResponse(throttle_time_ms=throttle_time_ms, error_code=error_code, topics=topics)
    return message, position


def _write_response_v2(write: Write, message: AlterPartitionResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.topics, _write_response_topic_v2)
    write(NO_TAGS)


_REQUEST_READERS = (
    None,
    None,
    _read_request_v2,
    _read_request_v3,
)
_REQUEST_WRITERS = (
    None,
    None,
    _write_request_v2,
    _write_request_v3,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AlterPartitionRequest:
    return decode(_REQUEST_READERS, "AlterPartitionRequest", buffer, position, end, version)


def encode_request(message: AlterPartitionRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AlterPartitionRequest", message, version)


_RESPONSE_READERS = (
    None,
    None,
    _read_response_v2,
    _read_response_v2,
)
_RESPONSE_WRITERS = (
    None,
    None,
    _write_response_v2,
    _write_response_v2,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AlterPartitionResponse:
    return decode(_RESPONSE_READERS, "AlterPartitionResponse", buffer, position, end, version)


def encode_response(message: AlterPartitionResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AlterPartitionResponse", message, version)


def begin_response(message: AlterPartitionResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AlterPartitionResponse", message, version)
