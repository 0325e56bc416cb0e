"""DescribeTransactions (65), versions 0 to 0.

Generated from wire/schemas/describe_transactions.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.readers import read_compact_array, read_compact_numbers, read_compact_string, skip_tags
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    write_compact_array,
    write_compact_numbers,
    write_compact_string,
)

API_KEY = 65
MIN_VERSION = 0
MAX_VERSION = 0
FLEXIBLE_FROM = 0

_IQQH = Struct(">iqqh")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsRequest:
    transactional_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsResponseTopic:
    topic: str = ""
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsResponseTransactionState:
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[DescribeTransactionsResponseTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsResponse:
    throttle_time_ms: int = 0
    transaction_states: tuple[DescribeTransactionsResponseTransactionState, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[DescribeTransactionsRequest, int]:
    transactional_ids, position = read_compact_array(body, position, 1, read_compact_string)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTransactionsRequest(transactional_ids=transactional_ids)
    return message, position


def _write_request_v0(write: Write, message: DescribeTransactionsRequest) -> None:
    write_compact_array(write, message.transactional_ids, write_compact_string)
    write(NO_TAGS)


def _read_response_topic_v0(body: Buffer, position: int) -> tuple[DescribeTransactionsResponseTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTransactionsResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v0(write: Write, message: DescribeTransactionsResponseTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_response_transaction_state_v0(
    body: Buffer, position: int
) -> tuple[DescribeTransactionsResponseTransactionState, int]:
    (error_code,) = INT16.unpack_from(body, position)
    position += 2
    transactional_id, position = read_compact_string(body, position)
    transaction_state, position = read_compact_string(body, position)
    transaction_timeout_ms, transaction_start_time_ms, producer_id, producer_epoch = _IQQH.unpack_from(body, position)
    position += 22
    topics, position = read_compact_array(body, position, 3, _read_response_topic_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTransactionsResponseTransactionState(
        error_code=error_code,
        transactional_id=transactional_id,
        transaction_state=transaction_state,
        transaction_timeout_ms=transaction_timeout_ms,
        transaction_start_time_ms=transaction_start_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        topics=topics,
    )
    return message, position


def _write_response_transaction_state_v0(write: Write, message: DescribeTransactionsResponseTransactionState) -> None:
    write(INT16.pack(message.error_code))
    write_compact_string(write, message.transactional_id)
    write_compact_string(write, message.transaction_state)
    write(
        _IQQH.pack(
            message.transaction_timeout_ms,
            message.transaction_start_time_ms,
            message.producer_id,
            message.producer_epoch,
        )
    )
    write_compact_array(write, message.topics, _write_response_topic_v0)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[DescribeTransactionsResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    transaction_states, position = read_compact_array(body, position, 28, _read_response_transaction_state_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = DescribeTransactionsResponse(throttle_time_ms=throttle_time_ms, transaction_states=transaction_states)
    return message, position


def _write_response_v0(write: Write, message: DescribeTransactionsResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_compact_array(write, message.transaction_states, _write_response_transaction_state_v0)
    write(NO_TAGS)


_REQUEST_READERS = (_read_request_v0,)
_REQUEST_WRITERS = (_write_request_v0,)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> DescribeTransactionsRequest:
    return decode(_REQUEST_READERS, "DescribeTransactionsRequest", buffer, position, end, version)


def encode_request(message: DescribeTransactionsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "DescribeTransactionsRequest", message, version)


_RESPONSE_READERS = (_read_response_v0,)
_RESPONSE_WRITERS = (_write_response_v0,)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> DescribeTransactionsResponse:
    return decode(_RESPONSE_READERS, "DescribeTransactionsResponse", buffer, position, end, version)


def encode_response(message: DescribeTransactionsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "DescribeTransactionsResponse", message, version)


def begin_response(message: DescribeTransactionsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "DescribeTransactionsResponse", message, version)
