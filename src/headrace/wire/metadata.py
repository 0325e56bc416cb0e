"""Build the Metadata response from cached pieces: a topic's bytes change only when the topic does.

A broker encodes each topic once per group of versions (`topic_layout`) and joins the pieces, so that a request for a
thousand topics costs about as much as copying their bytes. The bytes are those of `wire.messages.metadata`.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from headrace.model.ids import NO_TOPIC_ID, TopicId
from headrace.wire.errors import ProtocolError
from headrace.wire.messages.metadata import FLEXIBLE_FROM, MAX_VERSION, MetadataRequest, decode_request
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.writers import (
    NO_TAGS,
    unsigned_varint,
    uuid,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)
from headrace.wire.scan import element_count, skip_tagged_fields, string_span

NO_AUTHORIZED_OPERATIONS = -2_147_483_648
"""The bit field for a client that did not request it."""

PARTITION_LAYOUTS_MAX = 4096
"""Struct formats kept for partitions, one per combination of replica counts."""

_TOPIC_LAYOUTS = (0, 1, 1, 1, 1, 5, 5, 7, 8, 9, 10, 10, 10, 10)
"""By version: the first version whose topics have the same bytes."""
assert len(_TOPIC_LAYOUTS) == MAX_VERSION + 1

_TOPIC_IDS_FROM = 10
_ID_BYTES = 16
_INTERNAL = (b"\0", b"\1")


class RequestedTopic(NamedTuple):
    """A requested topic, by its name or its id."""

    topic_id: bytes
    name: str | None


class TopicsScan:
    """A request for many topics, read a slice at a time: thousands of names take longer than one turn may."""

    __slots__ = ("_body", "_position", "_version", "left")

    def __init__(self, body: bytes, version: int) -> None:
        self._body = memoryview(body)
        self._version = version
        flexible = _known(version) >= FLEXIBLE_FROM
        smallest = _ID_BYTES + 1 if version >= _TOPIC_IDS_FROM else 2
        self.left, self._position = element_count(self._body, 0, len(body), compact=flexible, smallest=smallest)
        """Topics that are still to be read; 0 at once for a request for none, or for all."""

    def take(self, count_max: int) -> list[RequestedTopic]:
        """Return the next topics; ProtocolError if there are fewer than declared."""
        body, position, end = self._body, self._position, len(self._body)
        flexible, by_id = self._version >= FLEXIBLE_FROM, self._version >= _TOPIC_IDS_FROM
        taken = []
        topic_id = NO_TOPIC_ID
        for _ in range(min(self.left, count_max)):
            if by_id:
                topic_id = TopicId(bytes(body[position : position + _ID_BYTES]))
                position += _ID_BYTES
            start, position = string_span(body, position, end, compact=flexible)
            if start < 0 and not by_id:
                raise ProtocolError("a topic without a name in a Metadata request")
            name = _text(body[start:position]) if start >= 0 else None
            if flexible:
                position = skip_tagged_fields(body, position, end)
            taken.append(RequestedTopic(topic_id, name))
        self._position = position
        self.left -= len(taken)
        return taken

    def rest(self) -> MetadataRequest:
        """Return what follows the topics, as a request for none."""
        assert not self.left, "the topics must be read first"
        none = b"\x01" if self._version >= FLEXIBLE_FROM else INT32.pack(0)
        body = none + self._body[self._position :]
        return decode_request(body, 0, len(body), self._version)


def _text(name: memoryview) -> str:
    try:
        return str(name, "utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a topic's name is not UTF-8: {error}") from None


class BrokerMetadata(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


class PartitionMetadata(NamedTuple):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    offline_replicas: Sequence[int]


class _PartitionLayout(NamedTuple):
    """The packing of partitions with certain numbers of replicas; the counts are arguments of `pack`."""

    pack: Struct
    replica_count: int | bytes
    isr_count: int | bytes
    offline_count: int | bytes


def topic_layout(version: int) -> int:
    """Return the cache key of a topic's bytes: versions with the same number share them."""
    return _TOPIC_LAYOUTS[_known(version)]


def encode_topic(
    version: int,
    *,
    error_code: int,
    name: str | None,
    topic_id: bytes,
    is_internal: bool,
    partitions: Sequence[PartitionMetadata],
    authorized_operations: int = NO_AUTHORIZED_OPERATIONS,
) -> bytes:
    """Encode one topic. The name may be null from version 12 on, where a topic can be requested by id."""
    flexible = _known(version) >= FLEXIBLE_FROM
    parts: list[Buffer] = [INT16.pack(error_code)]
    if name is None and version < 12:
        raise ProtocolError(f"Metadata version {version} needs the topic's name")
    (write_compact_nullable_string if flexible else write_nullable_string)(parts.append, name)
    if version >= 10:
        parts.append(uuid(topic_id))
    if version >= 1:
        parts.append(_INTERNAL[is_internal])
    parts.append(unsigned_varint(len(partitions) + 1) if flexible else INT32.pack(len(partitions)))
    parts += _partitions(version, partitions)
    if version >= 8:
        parts.append(INT32.pack(authorized_operations))
    if flexible:
        parts.append(NO_TAGS)
    return b"".join(parts)


def _partitions(version: int, partitions: Sequence[PartitionMetadata]) -> list[bytes]:
    flexible, with_epoch, with_offline = version >= FLEXIBLE_FROM, version >= 7, version >= 5
    encoded = []
    for error, index, leader, epoch, replicas, isr, offline in partitions:
        layout = _partition_layout(flexible, with_epoch, with_offline, len(replicas), len(isr), len(offline))
        head = (error, index, leader, epoch) if with_epoch else (error, index, leader)
        tail = (layout.offline_count, *offline) if with_offline else ()
        encoded.append(layout.pack.pack(*head, layout.replica_count, *replicas, layout.isr_count, *isr, *tail))
    return encoded


@lru_cache(maxsize=PARTITION_LAYOUTS_MAX)
def _partition_layout(
    flexible: bool, with_epoch: bool, with_offline: bool, replicas: int, isr: int, offline: int
) -> _PartitionLayout:
    def count(items: int) -> int | bytes:
        return unsigned_varint(items + 1) if flexible else items

    def array_format(items: int) -> str:
        counter = f"{len(unsigned_varint(items + 1))}s" if flexible else "i"
        return f"{counter}{items}i"

    format_ = ">hiii" if with_epoch else ">hii"
    format_ += array_format(replicas) + array_format(isr)
    if with_offline:
        format_ += array_format(offline)
    if flexible:
        format_ += "x"
    return _PartitionLayout(Struct(format_), count(replicas), count(isr), count(offline))


def encode_response(
    version: int,
    *,
    throttle_time_ms: int,
    brokers: Sequence[BrokerMetadata],
    cluster_id: str | None,
    controller_id: int,
    topics: Sequence[bytes],
    cluster_authorized_operations: int = NO_AUTHORIZED_OPERATIONS,
    error_code: int = 0,
) -> bytes:
    """Encode the whole response; `topics` are results of `encode_topic` for this version's layout."""
    flexible = _known(version) >= FLEXIBLE_FROM
    parts: list[Buffer] = []
    if version >= 3:
        parts.append(INT32.pack(throttle_time_ms))
    _append_brokers(parts, version, brokers)
    if version >= 2:
        (write_compact_nullable_string if flexible else write_nullable_string)(parts.append, cluster_id)
    if version >= 1:
        parts.append(INT32.pack(controller_id))
    parts.append(unsigned_varint(len(topics) + 1) if flexible else INT32.pack(len(topics)))
    parts += topics
    if 8 <= version <= 10:
        parts.append(INT32.pack(cluster_authorized_operations))
    if version >= 13:
        parts.append(INT16.pack(error_code))
    if flexible:
        parts.append(NO_TAGS)
    return b"".join(parts)


def _append_brokers(parts: list[Buffer], version: int, brokers: Sequence[BrokerMetadata]) -> None:
    flexible = version >= FLEXIBLE_FROM
    parts.append(unsigned_varint(len(brokers) + 1) if flexible else INT32.pack(len(brokers)))
    for broker in brokers:
        parts.append(INT32.pack(broker.node_id))
        (write_compact_string if flexible else write_string)(parts.append, broker.host)
        parts.append(INT32.pack(broker.port))
        if version >= 1:
            (write_compact_nullable_string if flexible else write_nullable_string)(parts.append, broker.rack)
        if flexible:
            parts.append(NO_TAGS)


def _known(version: int) -> int:
    if not 0 <= version <= MAX_VERSION:
        raise ProtocolError(f"MetadataResponse has no version {version}")
    return version
