"""Optimised codec of Fetch: the request as tuples, the response as a list in which ranges of files stay ranges.

`headrace.wire.messages.fetch` is the slower, clearer form of the same bytes; a test keeps the two equal.
"""

from collections.abc import Generator, Iterator, Sequence
from struct import Struct
from typing import NamedTuple, Protocol

from headrace.model.ids import NO_NODE
from headrace.wire.current_leaders import (
    NO_TAGGED_FIELDS,
    CurrentLeader,
    LeaderEndpoint,
    endpoint_fields,
    leader_fields,
)
from headrace.wire.errors import ProtocolError
from headrace.wire.scan import element_count, skip_tagged_fields, string_span, truncated, varint_bytes

FLEXIBLE_FROM = 12
TOPIC_IDS_FROM = 13
SESSIONS_FROM = 7
RACKS_FROM = 11
"""From this version on, a client may name its rack and learns of a nearer replica (KIP-392)."""

CURRENT_LEADER_FROM = 16
"""From this version on, an error may name the leader of the partition (KIP-951)."""

WantedPartition = tuple[int, int, int, int]
"""(partition, fetch offset, current leader epoch, most bytes)."""


class FetchRequest(NamedTuple):
    replica_id: int
    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[bytes, list[WantedPartition]]]
    forgotten: list[tuple[bytes, list[int]]]
    rack: bytes
    """The client's rack; empty if it has none (KIP-392)."""


_ALL_AT_ONCE = -1
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_HEAD_4 = Struct(">iiiib")
_HEAD_7 = Struct(">iiiibii")
_HEAD_15 = Struct(">iiibii")


def _partition_layout(version: int) -> tuple[Struct, int, int, int]:
    """(fixed fields, and the positions of the leader epoch (-1: none), the fetch offset and the byte limit among
    them).
    """
    if version < 5:
        return Struct(">iqi"), -1, 1, 2
    if version < 9:
        return Struct(">iqqi"), -1, 1, 3
    if version < 12:
        return Struct(">iiqqi"), 1, 2, 4
    return Struct(">iiqiqi"), 1, 2, 5


_PARTITION_LAYOUTS = tuple(_partition_layout(version) for version in range(19))


def scan_request(buffer: memoryview, position: int, end: int, version: int) -> FetchRequest:
    (request,) = scan_in_slices(buffer, position, end, version, partitions_per_slice=_ALL_AT_ONCE)
    assert request is not None
    return request


def scan_in_slices(
    buffer: memoryview, position: int, end: int, version: int, *, partitions_per_slice: int
) -> Iterator[FetchRequest | None]:
    """Scan a request with very many partitions: yields None after every slice, and the request at the end."""
    compact = version >= FLEXIBLE_FROM
    replica_id, session_id, session_epoch = -1, 0, -1
    head = _HEAD_15 if version >= 15 else _HEAD_7 if version >= SESSIONS_FROM else _HEAD_4
    if position + head.size > end:
        raise truncated()
    fields = head.unpack_from(buffer, position)
    position += head.size
    if version >= 15:
        wait_ms, bytes_min, bytes_max, isolation, session_id, session_epoch = fields
    elif version >= SESSIONS_FROM:
        replica_id, wait_ms, bytes_min, bytes_max, isolation, session_id, session_epoch = fields
    else:
        replica_id, wait_ms, bytes_min, bytes_max, isolation = fields
    topics: list[tuple[bytes, list[WantedPartition]]] = []
    position = yield from _scan_topics(buffer, position, end, version, compact, topics, partitions_per_slice)
    forgotten: list[tuple[bytes, list[int]]] = []
    if version >= SESSIONS_FROM:
        count, position = element_count(buffer, position, end, compact=compact, smallest=2)
        if count:
            position = yield from _scan_forgotten(
                buffer, position, end, version, compact, count, forgotten, partitions_per_slice
            )
    rack = b""
    if version >= RACKS_FROM:
        start, position = string_span(buffer, position, end, compact=compact)
        if 0 <= start < position:
            rack = bytes(buffer[start:position])
    if compact:
        skip_tagged_fields(buffer, position, end)
    yield FetchRequest(
        replica_id, wait_ms, bytes_min, bytes_max, isolation, session_id, session_epoch, topics, forgotten, rack
    )


def _scan_topic_key(buffer: memoryview, position: int, end: int, version: int, compact: bool) -> tuple[bytes, int]:
    if version >= TOPIC_IDS_FROM:
        start, position = position, position + 16
        if position > end:
            raise truncated()
    else:
        start, position = string_span(buffer, position, end, compact=compact)
        if start < 0:
            raise ProtocolError("a null topic name in a Fetch request")
    return bytes(buffer[start:position]), position


def _scan_topics(
    buffer: memoryview,
    position: int,
    end: int,
    version: int,
    compact: bool,
    topics: list[tuple[bytes, list[WantedPartition]]],
    per_slice: int,
) -> Generator[None, None, int]:
    """Add topics to `topics`; return the position after them. A topic counts as a partition, for topics without any."""
    layout, epoch_place, offset_place, bytes_place = _PARTITION_LAYOUTS[version]
    size = layout.size
    left = per_slice
    topic_count, position = element_count(buffer, position, end, compact=compact, smallest=2)
    for _ in range(topic_count):
        key, position = _scan_topic_key(buffer, position, end, version, compact)
        count, position = element_count(buffer, position, end, compact=compact, smallest=size)
        wanted: list[WantedPartition] = []
        for _ in range(count):
            if position + size > end:
                raise truncated()
            fields = layout.unpack_from(buffer, position)
            position += size
            epoch = fields[epoch_place] if epoch_place >= 0 else -1
            wanted.append((fields[0], fields[offset_place], epoch, fields[bytes_place]))
            if compact:
                position = skip_tagged_fields(buffer, position, end)
            left -= 1
            if not left:
                left = per_slice
                yield
        if compact:
            position = skip_tagged_fields(buffer, position, end)
        topics.append((key, wanted))
        left -= 1
        if not left:
            left = per_slice
            yield
    return position


def _scan_forgotten(
    buffer: memoryview,
    position: int,
    end: int,
    version: int,
    compact: bool,
    topic_count: int,
    forgotten: list[tuple[bytes, list[int]]],
    per_slice: int,
) -> Generator[None, None, int]:
    left = per_slice
    for _ in range(topic_count):
        key, position = _scan_topic_key(buffer, position, end, version, compact)
        count, position = element_count(buffer, position, end, compact=compact, smallest=4)
        forgotten.append((key, list(Struct(f">{count}i").unpack_from(buffer, position))))
        position += 4 * count
        if compact:
            position = skip_tagged_fields(buffer, position, end)
        left -= 1
        if not left:
            left = per_slice
            yield
    return position


class RangeOfFile(Protocol):
    """Interface of records that are still in a file."""

    @property
    def length(self) -> int: ...


class PartitionData(NamedTuple):
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[tuple[int, int]] | None
    """(producer id, first offset) of aborted transactions in the records; None below read_committed."""

    records: bytes | RangeOfFile | None
    current_leader: CurrentLeader | None = None
    """The broker that leads the partition, with an error that says that this one does not."""

    preferred_read_replica: int = NO_NODE
    """The broker that the client should read from."""


_FIXED_4 = Struct(">ihqq")
_FIXED_5 = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_FRAME_HEAD = Struct(">ii")
_RESPONSE_HEAD = Struct(">ihi")
_LEADER_TAG = 1


def encode_response(
    version: int,
    correlation_id: int,
    *,
    throttle_time_ms: int,
    error: int,
    session_id: int,
    topics: Sequence[tuple[bytes, Sequence[PartitionData]]],
    endpoints: Sequence[LeaderEndpoint] = (),
) -> list[bytes | RangeOfFile]:
    """Encode the whole frame: runs of bytes, with ranges of files between them."""
    (parts,) = encode_in_slices(
        version,
        correlation_id,
        throttle_time_ms=throttle_time_ms,
        error=error,
        session_id=session_id,
        topics=topics,
        endpoints=endpoints,
        partitions_per_slice=_ALL_AT_ONCE,
    )
    assert parts is not None
    return parts


def encode_in_slices(
    version: int,
    correlation_id: int,
    *,
    throttle_time_ms: int,
    error: int,
    session_id: int,
    topics: Sequence[tuple[bytes, Sequence[PartitionData]]],
    endpoints: Sequence[LeaderEndpoint] = (),
    partitions_per_slice: int,
) -> Iterator[list[bytes | RangeOfFile] | None]:
    """Encode a response with very many partitions: yields None after every slice, and the frame at the end."""
    left = partitions_per_slice
    compact = version >= FLEXIBLE_FROM
    pieces: list[bytes] = []
    parts: list[bytes | RangeOfFile] = [b""]  # placeholder for the frame's head, until the size is known
    if compact:
        pieces.append(b"\x00")
    if version >= SESSIONS_FROM:
        pieces.append(_RESPONSE_HEAD.pack(throttle_time_ms, error, session_id))
    else:
        pieces.append(_INT32.pack(throttle_time_ms))
    pieces.append(varint_bytes(len(topics) + 1) if compact else _INT32.pack(len(topics)))
    size = 4
    for topic, partitions in topics:
        pieces.append(_topic_head(version, compact, topic, len(partitions)))
        for data in partitions:
            records = data.records
            pieces.append(_partition_head(version, compact, data))
            if isinstance(records, bytes):
                pieces.append(records)
            elif records is not None:
                run = b"".join(pieces)
                size += len(run) + records.length
                parts.append(run)
                parts.append(records)
                pieces.clear()
            if compact:
                pieces.append(_leader_fields(version, data) if data.error else b"\x00")
            left -= 1
            if not left:
                left = partitions_per_slice
                yield None
        if compact:
            pieces.append(b"\x00")
    if compact:
        pieces.append(endpoint_fields(endpoints) if endpoints and version >= CURRENT_LEADER_FROM else NO_TAGGED_FIELDS)
    run = b"".join(pieces)
    parts.append(run)
    parts[0] = _FRAME_HEAD.pack(size + len(run), correlation_id)
    yield parts


def _leader_fields(version: int, data: PartitionData) -> bytes:
    """Encode the tagged fields of a partition that failed."""
    leader = data.current_leader if version >= CURRENT_LEADER_FROM else None
    return NO_TAGGED_FIELDS if leader is None else leader_fields(_LEADER_TAG, leader)


def _topic_head(version: int, compact: bool, topic: bytes, partition_count: int) -> bytes:
    if version >= TOPIC_IDS_FROM:
        return topic + varint_bytes(partition_count + 1)
    if compact:
        return varint_bytes(len(topic) + 1) + topic + varint_bytes(partition_count + 1)
    return _INT16.pack(len(topic)) + topic + _INT32.pack(partition_count)


def _partition_head(version: int, compact: bool, data: PartitionData) -> bytes:
    """Encode one partition up to its records, including their length."""
    if version < 5:
        fixed = _FIXED_4.pack(*data[:4])
    else:
        fixed = _FIXED_5.pack(*data[:5])
    records = data.records
    length = 0 if records is None else len(records) if isinstance(records, bytes) else records.length
    aborted = data.aborted
    preferred = _INT32.pack(data.preferred_read_replica) if version >= RACKS_FROM else b""
    if compact:
        if aborted is None:
            middle = b"\x00"
        else:
            middle = varint_bytes(len(aborted) + 1) + b"".join([_ABORTED.pack(*entry) + b"\x00" for entry in aborted])
        return fixed + middle + preferred + varint_bytes(length + 1)
    if aborted is None:
        middle = b"\xff\xff\xff\xff"
    else:
        middle = _INT32.pack(len(aborted)) + b"".join([_ABORTED.pack(*entry) for entry in aborted])
    return fixed + middle + preferred + _INT32.pack(length)
