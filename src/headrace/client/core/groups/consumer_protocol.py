"""Encode and decode subscriptions and assignments, which members of a classic group exchange through the coordinator.

Version 2 is written (3 with a rack); of newer versions the known part is read, as the protocol requires.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.client.core.admin.routing import by_topic
from headrace.core.groups.subscriptions import assigned_partitions
from headrace.model.ids import TopicPartition
from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    MALFORMED,
    read_array,
    read_nullable_bytes,
    read_nullable_string,
    read_number,
    read_numbers,
    read_string,
)
from headrace.wire.primitives.writers import write_nullable_string, write_string

NO_GENERATION = -1
_OWNED_FROM, _GENERATION_FROM, _RACK_FROM = 1, 2, 3
_TOPIC_BYTES_MIN = 2
_OWNED_BYTES_MIN = 6
_NO_USER_BYTES = b"\xff\xff\xff\xff"


class ConsumerProtocolSubscription(NamedTuple):
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None


def encode_subscription(subscription: ConsumerProtocolSubscription) -> bytes:
    parts: list[Buffer] = []
    write = parts.append
    write(INT16.pack(_RACK_FROM if subscription.rack is not None else _GENERATION_FROM))
    write(INT32.pack(len(subscription.topics)))
    for topic in subscription.topics:
        write_string(write, topic)
    write(_NO_USER_BYTES)
    write(_partitions(subscription.owned))
    write(INT32.pack(subscription.generation))
    if subscription.rack is not None:
        write_nullable_string(write, subscription.rack)
    return b"".join(parts)


def decode_subscription(encoded: bytes) -> ConsumerProtocolSubscription:
    """Decode a subscription; an undecodable one counts as empty: its sender gets no partitions, and the others get
    theirs.
    """
    owned: tuple[TopicPartition, ...] = ()
    generation, rack = NO_GENERATION, None
    try:
        version, position = read_number(encoded, 0, INT16)
        topics, position = read_array(encoded, position, _TOPIC_BYTES_MIN, read_string)
        _user, position = read_nullable_bytes(encoded, position)
        if version >= _OWNED_FROM:
            found, position = read_array(encoded, position, _OWNED_BYTES_MIN, _read_owned)
            owned = tuple(TopicPartition(name, each) for name, partitions in found for each in partitions)
        if version >= _GENERATION_FROM:
            generation, position = read_number(encoded, position, INT32)
        if version >= _RACK_FROM:
            rack, position = read_nullable_string(encoded, position)
    except (ProtocolError, *MALFORMED):
        return ConsumerProtocolSubscription(())
    return ConsumerProtocolSubscription(topics, owned, generation, rack)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return INT16.pack(_GENERATION_FROM) + _partitions(partitions) + _NO_USER_BYTES


def decode_assignment(encoded: bytes) -> tuple[TopicPartition, ...]:
    """Decode an assignment; empty where the leader sent none, as for a member that it does not know."""
    return (assigned_partitions(encoded) if encoded else ()) or ()


def _partitions(partitions: Iterable[TopicPartition]) -> bytes:
    topics = by_topic(sorted(partitions))
    parts: list[Buffer] = [INT32.pack(len(topics))]
    for topic, indexes in topics.items():
        write_string(parts.append, topic)
        parts.append(INT32.pack(len(indexes)))
        parts.extend(INT32.pack(index) for index in indexes)
    return b"".join(parts)


def _read_owned(encoded: Buffer, position: int) -> tuple[tuple[str, tuple[int, ...]], int]:
    name, position = read_string(encoded, position)
    partitions, position = read_numbers(encoded, position, INT32)
    return (name, partitions), position
