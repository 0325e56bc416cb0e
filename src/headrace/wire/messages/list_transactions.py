"""ListTransactions (66), versions 0 to 2.

Generated from wire/schemas/list_transactions.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, encode
from headrace.wire.primitives.layouts import INT64, Buffer
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

API_KEY = 66
MIN_VERSION = 0
MAX_VERSION = 2
FLEXIBLE_FROM = 0

_IH = Struct(">ih")
_QX = Struct(">qx")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTransactionsRequest:
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTransactionsResponseTransactionState:
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTransactionsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[ListTransactionsResponseTransactionState, ...] = ()


def _read_request_v0(body: Buffer, position: int) -> tuple[ListTransactionsRequest, int]:
    state_filters, position = read_compact_array(body, position, 1, read_compact_string)
    producer_id_filters, position = read_compact_numbers(body, position, INT64)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListTransactionsRequest(state_filters=state_filters, producer_id_filters=producer_id_filters)
    return message, position


def _write_request_v0(write: Write, message: ListTransactionsRequest) -> None:
    write_compact_array(write, message.state_filters, write_compact_string)
    write_compact_numbers(write, message.producer_id_filters, INT64)
    write(NO_TAGS)


def _read_request_v1(body: Buffer, position: int) -> tuple[ListTransactionsRequest, int]:
    state_filters, position = read_compact_array(body, position, 1, read_compact_string)
    producer_id_filters, position = read_compact_numbers(body, position, INT64)
    (duration_filter,) = INT64.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListTransactionsRequest(
        state_filters=state_filters,
        producer_id_filters=producer_id_filters,
        duration_filter=duration_filter,
    )
    return message, position


def _write_request_v1(write: Write, message: ListTransactionsRequest) -> None:
    write_compact_array(write, message.state_filters, write_compact_string)
    write_compact_numbers(write, message.producer_id_filters, INT64)
    write(_QX.pack(message.duration_filter))


def _read_request_v2(body: Buffer, position: int) -> tuple[ListTransactionsRequest, int]:
    state_filters, position = read_compact_array(body, position, 1, read_compact_string)
    producer_id_filters, position = read_compact_numbers(body, position, INT64)
    (duration_filter,) = INT64.unpack_from(body, position)
    position += 8
    transactional_id_pattern, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListTransactionsRequest(
        state_filters=state_filters,
        producer_id_filters=producer_id_filters,
        duration_filter=duration_filter,
        transactional_id_pattern=transactional_id_pattern,
    )
    return message, position


def _write_request_v2(write: Write, message: ListTransactionsRequest) -> None:
    write_compact_array(write, message.state_filters, write_compact_string)
    write_compact_numbers(write, message.producer_id_filters, INT64)
    write(INT64.pack(message.duration_filter))
    write_compact_nullable_string(write, message.transactional_id_pattern)
    write(NO_TAGS)


def _read_response_transaction_state_v0(
    body: Buffer, position: int
) -> tuple[ListTransactionsResponseTransactionState, int]:
    transactional_id, position = read_compact_string(body, position)
    (producer_id,) = INT64.unpack_from(body, position)
    position += 8
    transaction_state, position = read_compact_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListTransactionsResponseTransactionState(
        transactional_id=transactional_id,
        producer_id=producer_id,
        transaction_state=transaction_state,
    )
    return message, position


def _write_response_transaction_state_v0(write: Write, message: ListTransactionsResponseTransactionState) -> None:
    write_compact_string(write, message.transactional_id)
    write(INT64.pack(message.producer_id))
    write_compact_string(write, message.transaction_state)
    write(NO_TAGS)


def _read_response_v0(body: Buffer, position: int) -> tuple[ListTransactionsResponse, int]:
    throttle_time_ms, error_code = _IH.unpack_from(body, position)
    position += 6
    unknown_state_filters, position = read_compact_array(body, position, 1, read_compact_string)
    transaction_states, position = read_compact_array(body, position, 11, _read_response_transaction_state_v0)
    position = skip_tags(body, position) if body[position] else position + 1
    message = ListTransactionsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        unknown_state_filters=unknown_state_filters,
        transaction_states=transaction_states,
    )
    return message, position


def _write_response_v0(write: Write, message: ListTransactionsResponse) -> None:
    write(_IH.pack(message.throttle_time_ms, message.error_code))
    write_compact_array(write, message.unknown_state_filters, write_compact_string)
    write_compact_array(write, message.transaction_states, _write_response_transaction_state_v0)
    write(NO_TAGS)


_REQUEST_READERS = (
    _read_request_v0,
    _read_request_v1,
    _read_request_v2,
)
_REQUEST_WRITERS = (
    _write_request_v0,
    _write_request_v1,
    _write_request_v2,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> ListTransactionsRequest:
    return decode(_REQUEST_READERS, "ListTransactionsRequest", buffer, position, end, version)


def encode_request(message: ListTransactionsRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "ListTransactionsRequest", message, version)


_RESPONSE_READERS = (
    _read_response_v0,
    _read_response_v0,
    _read_response_v0,
)
_RESPONSE_WRITERS = (
    _write_response_v0,
    _write_response_v0,
    _write_response_v0,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ListTransactionsResponse:
    return decode(_RESPONSE_READERS, "ListTransactionsResponse", buffer, position, end, version)


def encode_response(message: ListTransactionsResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "ListTransactionsResponse", message, version)


def begin_response(message: ListTransactionsResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "ListTransactionsResponse", message, version)
