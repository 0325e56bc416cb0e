"""Codec of Fetch between brokers: positions of a follower, and the records that it lacks.

It is version 17 of the same API as in `wire/fetch.py`, with the fields that only followers use: the replica and its
broker epoch (KIP-903), the epoch of the last record of its log, and where that log leaves the leader's. Records in a
response are views of the buffer that was received into. `wire/messages/fetch.py` is the slower form of the same bytes;
a test keeps the two equal.

As in a fetch session (KIP-227), a request names only the partitions whose position has changed since the one before,
and those to forget. There is one session per connection, so it needs no id: its epoch is that of the request.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from headrace.wire.errors import ProtocolError
from headrace.wire.fetch import RangeOfFile
from headrace.wire.primitives.layouts import Buffer
from headrace.wire.scan import (
    bytes_span,
    element_count,
    skip_tagged_fields,
    string_span,
    truncated,
    unsigned_varint,
    varint_bytes,
)

VERSION = 17

_HEAD = Struct(">iiibii")
_POSITION = Struct(">iiqiqi")
_POSITION_BYTES_MIN = _POSITION.size + 1
_RESPONSE_HEAD = Struct(">ihi")
_RESULT = Struct(">ihqqq")
_RESULT_BYTES_MIN = _RESULT.size + 7
_ABORTED_BYTES = 17
_FRAME_HEAD = Struct(">ii")
_INT32 = Struct(">i")
_EPOCH_END = Struct(">iq")
_CURRENT_LEADER = Struct(">ii")
_REPLICA_STATE = Struct(">iq")
_TOPIC_ID_BYTES = 16
_TOPIC_BYTES_MIN = _TOPIC_ID_BYTES + 2

_REPLICA_STATE_TAG = 1
_DIVERGING_EPOCH_TAG = 0
_NO_TAGGED_FIELDS = b"\x00"
_NO_RACK = b"\x01"
_SESSION_ID = 0
NEW_SESSION = 0
"""The epoch of a request that begins a session: the leader forgets what an earlier one named."""
NO_SESSION = -1
"""The epoch of a request outside the session, which names nothing and has the waiting one answered now."""
_UNUSED_BODY = b"\x00\xff\xff\xff\xff"
"""No aborted transactions, because a follower wants all records, and no other replica to read from."""


class FollowerPosition(NamedTuple):
    """Where a follower is in one partition."""

    partition: int
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start: int
    bytes_max: int


class ReplicaFetchRequest(NamedTuple):
    replica_id: int
    broker_epoch: int
    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    session_epoch: int
    topics: Sequence[tuple[bytes, Sequence[FollowerPosition]]]
    """By topic id."""
    forgotten: Sequence[tuple[bytes, Sequence[int]]]
    """Partitions that leave the session, by topic id; those that are also in `topics` come back into it."""


class EpochEnd(NamedTuple):
    """The largest epoch of the leader's log that is not above the follower's last one, and its end."""

    epoch: int
    end_offset: int


class ReplicaResult(NamedTuple):
    """One partition of a response; `records` are None, a slice of a file to send, or bytes received."""

    partition: int
    error: int
    high_watermark: int
    log_start: int
    diverging: EpochEnd | None
    records: RangeOfFile | memoryview | None


class ReplicaFetchResponse(NamedTuple):
    error: int
    topics: Sequence[tuple[bytes, Sequence[ReplicaResult]]]


# Requests


def encode_request(request: ReplicaFetchRequest, version: int) -> bytes:
    assert version == VERSION
    pieces = [
        _HEAD.pack(request.wait_ms_max, request.bytes_min, request.bytes_max, 0, _SESSION_ID, request.session_epoch),
        varint_bytes(len(request.topics) + 1),
    ]
    pack = _POSITION.pack
    for topic_id, positions in request.topics:
        pieces.append(topic_id)
        pieces.append(varint_bytes(len(positions) + 1))
        for position in positions:
            pieces.append(pack(*position))
            pieces.append(_NO_TAGGED_FIELDS)
        pieces.append(_NO_TAGGED_FIELDS)
    pieces.append(varint_bytes(len(request.forgotten) + 1))
    for topic_id, partitions in request.forgotten:
        pieces.append(topic_id)
        pieces.append(varint_bytes(len(partitions) + 1))
        pieces.extend(map(_INT32.pack, partitions))
        pieces.append(_NO_TAGGED_FIELDS)
    pieces.append(_NO_RACK)
    state = _REPLICA_STATE.pack(request.replica_id, request.broker_epoch) + _NO_TAGGED_FIELDS
    pieces.append(varint_bytes(1) + varint_bytes(_REPLICA_STATE_TAG) + varint_bytes(len(state)) + state)
    return b"".join(pieces)


def decode_request(buffer: memoryview, position: int, end: int, version: int) -> ReplicaFetchRequest:
    assert version == VERSION
    if position + _HEAD.size > end:
        raise truncated()
    wait_ms, bytes_min, bytes_max, _isolation, _session, session_epoch = _HEAD.unpack_from(buffer, position)
    topics: list[tuple[bytes, list[FollowerPosition]]] = []
    count, position = element_count(buffer, position + _HEAD.size, end, compact=True, smallest=_TOPIC_BYTES_MIN)
    for _ in range(count):
        topic_id, position = _topic_id(buffer, position, end)
        positions: list[FollowerPosition] = []
        partitions, position = element_count(buffer, position, end, compact=True, smallest=_POSITION_BYTES_MIN)
        for _ in range(partitions):
            if position + _POSITION.size > end:
                raise truncated()
            positions.append(FollowerPosition._make(_POSITION.unpack_from(buffer, position)))
            position = skip_tagged_fields(buffer, position + _POSITION.size, end)
        position = skip_tagged_fields(buffer, position, end)
        topics.append((topic_id, positions))
    forgotten, position = _forgotten(buffer, position, end)
    _, position = string_span(buffer, position, end, compact=True)
    replica_id, broker_epoch = _replica_state(buffer, position, end)
    return ReplicaFetchRequest(
        replica_id, broker_epoch, wait_ms, bytes_min, bytes_max, session_epoch, topics, forgotten
    )


def _forgotten(buffer: memoryview, position: int, end: int) -> tuple[list[tuple[bytes, list[int]]], int]:
    topics: list[tuple[bytes, list[int]]] = []
    count, position = element_count(buffer, position, end, compact=True, smallest=_TOPIC_BYTES_MIN)
    for _ in range(count):
        topic_id, position = _topic_id(buffer, position, end)
        partitions, position = element_count(buffer, position, end, compact=True, smallest=_INT32.size)
        after = position + partitions * _INT32.size
        if after > end:
            raise truncated()
        topics.append((topic_id, [index for (index,) in _INT32.iter_unpack(buffer[position:after])]))
        position = skip_tagged_fields(buffer, after, end)
    return topics, position


def _topic_id(buffer: Buffer, position: int, end: int) -> tuple[bytes, int]:
    after = position + _TOPIC_ID_BYTES
    if after > end:
        raise truncated()
    return bytes(buffer[position:after]), after


def _replica_state(buffer: memoryview, position: int, end: int) -> tuple[int, int]:
    for tag, start, after in _tagged_fields(buffer, position, end):
        if tag == _REPLICA_STATE_TAG:
            if start + _REPLICA_STATE.size > after:
                raise truncated()
            replica_id, broker_epoch = _REPLICA_STATE.unpack_from(buffer, start)
            return replica_id, broker_epoch
    raise ProtocolError("a follower's fetch does not name the follower")


def _tagged_fields(buffer: memoryview, position: int, end: int) -> list[tuple[int, int, int]]:
    """Return tag, start and end of each tagged field."""
    found = []
    count, position = unsigned_varint(buffer, position, end)
    for _ in range(count):  # each takes two bytes at least, so this ends with the buffer
        tag, position = unsigned_varint(buffer, position, end)
        size, position = unsigned_varint(buffer, position, end)
        if position + size > end:
            raise truncated()
        found.append((tag, position, position + size))
        position += size
    return found


# Responses


def encode_response(correlation_id: int, response: ReplicaFetchResponse) -> list[bytes | RangeOfFile]:
    """Encode the whole frame: runs of bytes, with slices of files between them."""
    pieces = [
        _NO_TAGGED_FIELDS,  # of the header
        _RESPONSE_HEAD.pack(0, response.error, 0),
        varint_bytes(len(response.topics) + 1),
    ]
    parts: list[bytes | RangeOfFile] = [b""]  # placeholder for the frame's head, until the size is known
    size = _INT32.size
    for topic_id, results in response.topics:
        pieces.append(topic_id)
        pieces.append(varint_bytes(len(results) + 1))
        for result in results:
            records = result.records
            assert not isinstance(records, memoryview), "a leader sends slices of files"
            length = 0 if records is None else records.length
            pieces.append(
                _RESULT.pack(
                    result.partition, result.error, result.high_watermark, result.high_watermark, result.log_start
                )
            )
            pieces.append(_UNUSED_BODY)
            pieces.append(varint_bytes(length + 1))
            if records is not None:
                run = b"".join(pieces)
                size += len(run) + length
                parts.append(run)
                parts.append(records)
                pieces.clear()
            pieces.append(_diverging_field(result.diverging))
        pieces.append(_NO_TAGGED_FIELDS)
    pieces.append(_NO_TAGGED_FIELDS)
    run = b"".join(pieces)
    parts.append(run)
    parts[0] = _FRAME_HEAD.pack(size + len(run), correlation_id)
    return parts


def _diverging_field(diverging: EpochEnd | None) -> bytes:
    if diverging is None:
        return _NO_TAGGED_FIELDS
    content = _EPOCH_END.pack(*diverging) + _NO_TAGGED_FIELDS
    return varint_bytes(1) + varint_bytes(_DIVERGING_EPOCH_TAG) + varint_bytes(len(content)) + content


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> ReplicaFetchResponse:
    """Decode a response; the records in it are views of `buffer`."""
    assert version == VERSION
    view = memoryview(buffer)
    if position + _RESPONSE_HEAD.size > end:
        raise truncated()
    _throttle_ms, error, _session = _RESPONSE_HEAD.unpack_from(view, position)
    topics: list[tuple[bytes, list[ReplicaResult]]] = []
    count, position = element_count(view, position + _RESPONSE_HEAD.size, end, compact=True, smallest=_TOPIC_BYTES_MIN)
    for _ in range(count):
        topic_id, position = _topic_id(view, position, end)
        results: list[ReplicaResult] = []
        partitions, position = element_count(view, position, end, compact=True, smallest=_RESULT_BYTES_MIN)
        for _ in range(partitions):
            result, position = _result(view, position, end)
            results.append(result)
        position = skip_tagged_fields(view, position, end)
        topics.append((topic_id, results))
    return ReplicaFetchResponse(error, topics)


def _result(view: memoryview, position: int, end: int) -> tuple[ReplicaResult, int]:
    if position + _RESULT.size > end:
        raise truncated()
    partition, error, high_watermark, _stable, log_start = _RESULT.unpack_from(view, position)
    aborted, position = element_count(view, position + _RESULT.size, end, compact=True, smallest=_ABORTED_BYTES)
    if aborted:
        raise ProtocolError("a leader's response to a follower lists aborted transactions")
    position += _INT32.size  # the preferred replica
    start, position = bytes_span(view, position, end, compact=True)
    records = None if start < 0 or start == position else view[start:position]
    diverging = None
    if position < end and view[position]:
        for tag, at, after in _tagged_fields(view, position, end):
            if tag == _DIVERGING_EPOCH_TAG:
                if at + _EPOCH_END.size > after:
                    raise truncated()
                diverging = EpochEnd._make(_EPOCH_END.unpack_from(view, at))
    position = skip_tagged_fields(view, position, end)
    return ReplicaResult(partition, error, high_watermark, log_start, diverging, records), position


class ReplicaFetchCodec:
    """Encodes requests and decodes responses for the follower's connection."""

    def encode_request(self, message: Any, version: int) -> bytes:
        return encode_request(message, version)

    def decode_response(self, buffer: Buffer, position: int, end: int, version: int) -> ReplicaFetchResponse:
        return decode_response(buffer, position, end, version)
