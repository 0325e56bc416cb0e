"""Optimised codec of Produce: decodes a request to tuples of offsets into its frame, and packs a response in one call.

`headrace.wire.messages.produce` is the slower, clearer form of the same bytes; a test keeps the two equal.
"""

from collections.abc import Mapping, Sequence
from struct import Struct
from types import MappingProxyType

from headrace.wire.current_leaders import (
    NO_TAGGED_FIELDS,
    CurrentLeader,
    LeaderEndpoint,
    endpoint_fields,
    leader_fields,
)
from headrace.wire.errors import ProtocolError
from headrace.wire.scan import (
    bytes_span,
    element_count,
    skip_tagged_fields,
    string_span,
    truncated,
    varint_bytes,
)

FLEXIBLE_FROM = 9
CURRENT_LEADER_FROM = 10
"""From this version on, an error may name the leader of the partition (KIP-951)."""
TOPIC_IDS_FROM = 13
TRANSACTIONAL_ID_FROM = 3
ADD_TO_TRANSACTION_FROM = 12
"""From this version on, writing to a partition adds it to the transaction (KIP-890)."""

RECORD_SETS_MAX = 20_000
"""Topics and record sets of one request: they may be empty, so a frame could otherwise name millions."""

_ACKS_AND_TIMEOUT = Struct(">hi")
_PARTITION_INDEX = Struct(">i")
_FRAME_HEAD = Struct(">ii")
_INT32 = Struct(">i")
_INT16 = Struct(">h")

PartitionSpan = tuple[int, int, int]
"""(partition, start, end) of one record set in the frame; start is -1 if there is none."""

TopicSpans = tuple[bytes, list[PartitionSpan]]
"""(topic name, or from version 13 its id; its record sets)."""


def scan_request(
    buffer: memoryview, position: int, end: int, version: int
) -> tuple[bytes | None, int, int, list[TopicSpans]]:
    """Return (transactional id, acks, timeout in ms, topics); only the names are copied."""
    compact = version >= FLEXIBLE_FROM
    transactional_id: bytes | None = None
    if version >= TRANSACTIONAL_ID_FROM:
        start, position = string_span(buffer, position, end, compact=compact)
        if start >= 0:
            transactional_id = bytes(buffer[start:position])
    if position + 6 > end:
        raise truncated()
    acks, timeout_ms = _ACKS_AND_TIMEOUT.unpack_from(buffer, position)
    topic_count, position = element_count(buffer, position + 6, end, compact=compact, smallest=2)
    topics: list[TopicSpans] = []
    record_sets = topic_count
    for _ in range(topic_count):
        _bounded(record_sets)
        topic, position = _scan_topic(buffer, position, end, version, compact)
        topics.append(topic)
        record_sets += len(topic[1])
    if compact:
        skip_tagged_fields(buffer, position, end)
    return transactional_id, acks, timeout_ms, topics


def _scan_topic(buffer: memoryview, position: int, end: int, version: int, compact: bool) -> tuple[TopicSpans, int]:
    if version >= TOPIC_IDS_FROM:
        start, position = position, position + 16
        if position > end:
            raise truncated()
    else:
        start, position = string_span(buffer, position, end, compact=compact)
        if start < 0:
            raise ProtocolError("a null topic name in a Produce request")
    topic = bytes(buffer[start:position])
    count, position = element_count(buffer, position, end, compact=compact, smallest=5)
    _bounded(count)
    partitions: list[PartitionSpan] = []
    for _ in range(count):
        if position + 4 > end:
            raise truncated()
        (partition,) = _PARTITION_INDEX.unpack_from(buffer, position)
        start, position = bytes_span(buffer, position + 4, end, compact=compact)
        partitions.append((partition, start, position))
        if compact:
            position = skip_tagged_fields(buffer, position, end)
    if compact:
        position = skip_tagged_fields(buffer, position, end)
    return (topic, partitions), position


def _bounded(record_sets: int) -> None:
    if record_sets > RECORD_SETS_MAX:
        raise ProtocolError(
            f"a Produce request of {record_sets} topics and record sets; at most {RECORD_SETS_MAX} are allowed"
        )


PartitionResult = tuple[int, int, int, int, int]
"""(partition, error, base offset, append time, log start offset)."""

_ERROR_AND_OFFSET = Struct(">hq")
_ERROR_AT = 4
_RESULT_BYTES = 26
"""Error, base offset, append time and log start offset."""

REFUSED_RECORDS = b"records of a compacted topic need a key"
_NOTHING_REFUSED: Mapping[int, Sequence[int]] = MappingProxyType({})
_NO_LEADERS: Mapping[int, CurrentLeader] = MappingProxyType({})
_LEADER_TAG = 0
_EMPTY_SUFFIX = b""
_OLD_SUFFIX = b"\x00\x00\x00\x00\xff\xff"  # no record errors, no message
_FLEXIBLE_SUFFIX = b"\x01\x00\x00"  # the same two and no tagged fields


def _partition_layout(version: int) -> tuple[Struct, int, bytes]:
    """(the fixed fields, the number of fields of a PartitionResult among them, the bytes after them)."""
    if version < 2:
        return Struct(">ihq"), 3, _EMPTY_SUFFIX
    if version < 5:
        return Struct(">ihqq"), 4, _EMPTY_SUFFIX
    if version < 8:
        return Struct(">ihqqq"), 5, _EMPTY_SUFFIX
    return Struct(">ihqqq"), 5, _OLD_SUFFIX if version < FLEXIBLE_FROM else _FLEXIBLE_SUFFIX


def _refusal_suffix(version: int, places: Sequence[int]) -> bytes:
    """Encode the rejected records and the reason (KIP-467): without it a client considers every record of the batch
    bad.
    """
    if version < FLEXIBLE_FROM:
        errors = b"".join(_INT32.pack(place) + b"\xff\xff" for place in places)
        return _INT32.pack(len(places)) + errors + _INT16.pack(len(REFUSED_RECORDS)) + REFUSED_RECORDS
    errors = b"".join(_INT32.pack(place) + b"\x00\x00" for place in places)
    return varint_bytes(len(places) + 1) + errors + varint_bytes(len(REFUSED_RECORDS) + 1) + REFUSED_RECORDS + b"\x00"


_LAYOUTS = tuple(_partition_layout(version) for version in range(14))


def encode_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[bytes, Sequence[PartitionResult]]],
    throttle_time_ms: int,
    refused_records: Mapping[int, Sequence[int]] = _NOTHING_REFUSED,
    leaders: Mapping[int, CurrentLeader] = _NO_LEADERS,
    endpoints: Sequence[LeaderEndpoint] = (),
) -> tuple[bytes, list[int]]:
    """Return (the whole frame, the positions of the partitions' error codes, in order) so that a response can be
    patched.

    `refused_records` has the positions of rejected records, by the number of the partition in this response. `leaders`
    and `endpoints` say where partitions are led that this broker does not lead; older versions leave them out.
    """
    layout, taken, suffix = _LAYOUTS[version]
    compact = version >= FLEXIBLE_FROM
    pieces = [b"\x00", varint_bytes(len(topics) + 1)] if compact else [_INT32.pack(len(topics))]
    at = 8 + sum(map(len, pieces))
    errors_at: list[int] = []
    for topic, partitions in topics:
        if version >= TOPIC_IDS_FROM:
            head = topic + varint_bytes(len(partitions) + 1)
        elif compact:
            head = varint_bytes(len(topic) + 1) + topic + varint_bytes(len(partitions) + 1)
        else:
            head = _INT16.pack(len(topic)) + topic + _INT32.pack(len(partitions))
        pieces.append(head)
        at += len(head)
        for result in partitions:
            blamed = refused_records.get(len(errors_at))
            ending = _refusal_suffix(version, blamed) if blamed and suffix else suffix
            if leaders and version >= CURRENT_LEADER_FROM and len(errors_at) in leaders:
                ending = ending[:-1] + leader_fields(_LEADER_TAG, leaders[len(errors_at)])
            pieces.append(layout.pack(*result[:taken]) + ending)
            errors_at.append(at + _ERROR_AT)
            at += layout.size + len(ending)
        if compact:
            pieces.append(b"\x00")
            at += 1
    if version >= 1:
        pieces.append(_INT32.pack(throttle_time_ms))
    if compact:
        pieces.append(endpoint_fields(endpoints) if endpoints and version >= CURRENT_LEADER_FROM else NO_TAGGED_FIELDS)
    body = b"".join(pieces)
    return _FRAME_HEAD.pack(len(body) + 4, correlation_id) + body, errors_at


def single_partition_layout(version: int, topic: bytes, partition: int) -> tuple[Struct, bytes, bytes] | None:
    """Return (layout, prefix, suffix) of a response for one partition, so that one `pack` builds the frame.

    The layout packs: size, correlation id, prefix, error, base offset, append time, log start offset, suffix. None for
    versions with fewer fields.
    """
    if version < 5:
        return None
    frame, errors_at = encode_response(version, 0, [(topic, [(partition, 0, 0, 0, 0)])], 0)
    prefix = frame[_FRAME_HEAD.size : errors_at[0]]
    suffix = frame[errors_at[0] + _RESULT_BYTES :]
    return Struct(f">ii{len(prefix)}shqqq{len(suffix)}s"), prefix, suffix


def with_throttle_time(version: int, suffix: bytes, throttle_time_ms: int) -> bytes:
    """Return the suffix of `single_partition_layout` with another throttle time."""
    end = len(suffix) - len(NO_TAGGED_FIELDS) * (version >= FLEXIBLE_FROM)
    return b"".join((suffix[: end - _INT32.size], _INT32.pack(throttle_time_ms), suffix[end:]))


def with_error(frame: bytes | bytearray, error_at: int, error: int) -> bytearray:
    """Return the encoded response with an error for the partition at `error_at`."""
    mended = frame if isinstance(frame, bytearray) else bytearray(frame)
    _ERROR_AND_OFFSET.pack_into(mended, error_at, error, -1)
    return mended
