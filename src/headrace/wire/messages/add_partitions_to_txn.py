"""AddPartitionsToTxn (24), versions 0 to 5.

Generated from wire/schemas/add_partitions_to_txn.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT32, INT64, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_array,
    read_compact_array,
    read_compact_numbers,
    read_compact_string,
    read_number,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_array,
    write_compact_array,
    write_compact_numbers,
    write_compact_string,
    write_numbers,
    write_string,
    write_tags,
)

API_KEY = 24
MIN_VERSION = 0
MAX_VERSION = 5
FLEXIBLE_FROM = 3

_IH = Struct(">ih")
_IHX = Struct(">ihx")
_QH = Struct(">qh")
_QHF = Struct(">qh?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnRequestTopic:
    name: str = ""
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnRequestTransaction:
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: tuple[AddPartitionsToTxnRequestTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnRequest:
    transactions: tuple[AddPartitionsToTxnRequestTransaction, ...] = ()
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: tuple[AddPartitionsToTxnRequestTopic, ...] = ()
    metadata_offset: int = -1
    leader_id: int = -1
    boot_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnResponsePartition:
    partition_index: int = 0
    partition_error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnResponseTopic:
    name: str = ""
    results_by_partition: tuple[AddPartitionsToTxnResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnResponseTransaction:
    transactional_id: str = ""
    topic_results: tuple[AddPartitionsToTxnResponseTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: tuple[AddPartitionsToTxnResponseTransaction, ...] = ()
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnResponseTopic, ...] = ()


def _read_request_topic_v0(body: Buffer, position: int) -> tuple[AddPartitionsToTxnRequestTopic, int]:
    name, position = read_string(body, position)
    partitions, position = read_numbers(body, position, INT32)
    message = AddPartitionsToTxnRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v0(write: Write, message: AddPartitionsToTxnRequestTopic) -> None:
    write_string(write, message.name)
    write_numbers(write, message.partitions, INT32)


def _read_request_v0(body: Buffer, position: int) -> tuple[AddPartitionsToTxnRequest, int]:
    v3_and_below_transactional_id, position = read_string(body, position)
    v3_and_below_producer_id, v3_and_below_producer_epoch = _QH.unpack_from(body, position)
    position += 10
    v3_and_below_topics, position = read_array(body, position, 6, _read_request_topic_v0)
    message = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=v3_and_below_transactional_id,
        v3_and_below_producer_id=v3_and_below_producer_id,
        v3_and_below_producer_epoch=v3_and_below_producer_epoch,
        v3_and_below_topics=v3_and_below_topics,
    )
    return message, position


def _write_request_v0(write: Write, message: AddPartitionsToTxnRequest) -> None:
    write_string(write, message.v3_and_below_transactional_id)
    write(_QH.pack(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch))
    write_array(write, message.v3_and_below_topics, _write_request_topic_v0)


def _read_request_topic_v3(body: Buffer, position: int) -> tuple[AddPartitionsToTxnRequestTopic, int]:
    name, position = read_compact_string(body, position)
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnRequestTopic(name=name, partitions=partitions)
    return message, position


def _write_request_topic_v3(write: Write, message: AddPartitionsToTxnRequestTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_request_v3(body: Buffer, position: int) -> tuple[AddPartitionsToTxnRequest, int]:
    v3_and_below_transactional_id, position = read_compact_string(body, position)
    v3_and_below_producer_id, v3_and_below_producer_epoch = _QH.unpack_from(body, position)
    position += 10
    v3_and_below_topics, position = read_compact_array(body, position, 3, _read_request_topic_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=v3_and_below_transactional_id,
        v3_and_below_producer_id=v3_and_below_producer_id,
        v3_and_below_producer_epoch=v3_and_below_producer_epoch,
        v3_and_below_topics=v3_and_below_topics,
    )
    return message, position


def _write_request_v3(write: Write, message: AddPartitionsToTxnRequest) -> None:
    write_compact_string(write, message.v3_and_below_transactional_id)
    write(_QH.pack(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch))
    write_compact_array(write, message.v3_and_below_topics, _write_request_topic_v3)
    write(NO_TAGS)


def _read_request_transaction_v4(body: Buffer, position: int) -> tuple[AddPartitionsToTxnRequestTransaction, int]:
    transactional_id, position = read_compact_string(body, position)
    producer_id, producer_epoch, verify_only = _QHF.unpack_from(body, position)
    position += 11
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnRequestTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=verify_only,
        topics=topics,
    )
    return message, position


def _write_request_transaction_v4(write: Write, message: AddPartitionsToTxnRequestTransaction) -> None:
    write_compact_string(write, message.transactional_id)
    write(_QHF.pack(message.producer_id, message.producer_epoch, message.verify_only))
    write_compact_array(write, message.topics, _write_request_topic_v3)
    write(NO_TAGS)


def _read_request_v4(body: Buffer, position: int) -> tuple[AddPartitionsToTxnRequest, int]:
    transactions, position = read_compact_array(body, position, 14, _read_request_transaction_v4)
    metadata_offset: int = -1
    leader_id: int = -1
    boot_id: str = ""
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 10000:
            metadata_offset, position = read_number(body, position, INT64)
        elif tag == 10001:
            leader_id, position = read_number(body, position, INT32)
        elif tag == 10002:
            boot_id, position = read_compact_string(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = AddPartitionsToTxnRequest(
        transactions=transactions,
        metadata_offset=metadata_offset,
        leader_id=leader_id,
        boot_id=boot_id,
    )
    return message, position


def _write_request_v4(write: Write, message: AddPartitionsToTxnRequest) -> None:
    write_compact_array(write, message.transactions, _write_request_transaction_v4)
    tagged: list[tuple[int, bytes]] = []
    if message.metadata_offset != -1:
        parts: list[Buffer] = []
        parts.append(INT64.pack(message.metadata_offset))
        tagged.append((10000, b"".join(parts)))
    if message.leader_id != -1:
        parts = []
        parts.append(INT32.pack(message.leader_id))
        tagged.append((10001, b"".join(parts)))
    if message.boot_id:
        parts = []
        write_compact_string(parts.append, message.boot_id)
        tagged.append((10002, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_partition_v0(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponsePartition, int]:
    partition_index, partition_error_code = _IH.unpack_from(body, position)
    position += 6
    message = AddPartitionsToTxnResponsePartition(
        partition_index=partition_index,
        partition_error_code=partition_error_code,
    )
    return message, position


def _write_response_partition_v0(write: Write, message: AddPartitionsToTxnResponsePartition) -> None:
    write(_IH.pack(message.partition_index, message.partition_error_code))


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponseTopic, int]:
    name, position = read_string(body, position)
    results_by_partition, position = read_array(body, position, 6, _read_response_partition_v0)
    message = AddPartitionsToTxnResponseTopic(name=name, results_by_partition=results_by_partition)
    return message, position


def _write_response_topic_v0(write: Write, message: AddPartitionsToTxnResponseTopic) -> None:
    write_string(write, message.name)
    write_array(write, message.results_by_partition, _write_response_partition_v0)


def _read_response_v0(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results_by_topic_v3_and_below, position = read_array(body, position, 6, _read_response_topic_v0)
    message = AddPartitionsToTxnResponse(
        throttle_time_ms=throttle_time_ms,
        results_by_topic_v3_and_below=results_by_topic_v3_and_below,
    )
    return message, position


def _write_response_v0(write: Write, message: AddPartitionsToTxnResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.results_by_topic_v3_and_below, _write_response_topic_v0)


def _read_response_partition_v3(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponsePartition, int]:
    partition_index, partition_error_code = _IH.unpack_from(body, position)
    position += 6
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnResponsePartition(
        partition_index=partition_index,
        partition_error_code=partition_error_code,
    )
    return message, position


def _write_response_partition_v3(write: Write, message: AddPartitionsToTxnResponsePartition) -> None:
    write(_IHX.pack(message.partition_index, message.partition_error_code))


def _read_response_topic_v3(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponseTopic, int]:
    name, position = read_compact_string(body, position)
    results_by_partition, position = read_compact_array(body, position, 7, _read_response_partition_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnResponseTopic(name=name, results_by_partition=results_by_partition)
    return message, position


def _write_response_topic_v3(write: Write, message: AddPartitionsToTxnResponseTopic) -> None:
    write_compact_string(write, message.name)
    write_compact_array(write, message.results_by_partition, _write_response_partition_v3)
    write(NO_TAGS)


def _read_response_v3(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    results_by_topic_v3_and_below, position = read_compact_array(body, position, 3, _read_response_topic_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnResponse(
        throttle_time_ms=throttle_time_ms,
        results_by_topic_v3_and_below=results_by_topic_v3_and_below,
    )
    return message, position


def _write_response_v3(write: Write, message: AddPartitionsToTxnResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.results_by_topic_v3_and_below, _write_response_topic_v3)
    write(NO_TAGS)


def _read_response_transaction_v4(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponseTransaction, int]:
    transactional_id, position = read_compact_string(body, position)
    topic_results, position = read_compact_array(body, position, 3, _read_response_topic_v3)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnResponseTransaction(transactional_id=transactional_id, topic_results=topic_results)
    return message, position


def _write_response_transaction_v4(write: Write, message: AddPartitionsToTxnResponseTransaction) -> None:
    write_compact_string(write, message.transactional_id)
    write_compact_array(write, message.topic_results, _write_response_topic_v3)
    write(NO_TAGS)


def _read_response_v4(body: Buffer, position: int) -> tuple[AddPartitionsToTxnResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    results_by_transaction, position = read_compact_array(body, position, 3, _read_response_transaction_v4)
    position = skip_tags(body, position) if body[position] else position + 1
    message = AddPartitionsToTxnResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        results_by_transaction=results_by_transaction,
    )
    return message, position


def _write_response_v4(write: Write, message: AddPartitionsToTxnResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.results_by_transaction, _write_response_transaction_v4)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v0,
    _read_request_v0,
    _read_request_v3,
    _read_request_v4,
    _read_request_v4,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v0,
    _write_request_v0,
    _write_request_v3,
    _write_request_v4,
    _write_request_v4,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> AddPartitionsToTxnRequest:
    return decode(_REQUEST_READERS, "AddPartitionsToTxnRequest", buffer, position, end, version)


def encode_request(message: AddPartitionsToTxnRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "AddPartitionsToTxnRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
    _read_response_v3,
    _read_response_v4,
    _read_response_v4,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
    _write_response_v3,
    _write_response_v4,
    _write_response_v4,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> AddPartitionsToTxnResponse:
    return decode(_RESPONSE_READERS, "AddPartitionsToTxnResponse", buffer, position, end, version)


def encode_response(message: AddPartitionsToTxnResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "AddPartitionsToTxnResponse", message, version)


def begin_response(message: AddPartitionsToTxnResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "AddPartitionsToTxnResponse", message, version)
