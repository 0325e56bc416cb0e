"""Subscriptions and assignments in the format of Kafka's consumer protocol, as the coordinator and tools parse them."""

from collections.abc import Iterable
from typing import NamedTuple

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
from headrace.wire.primitives.writers import Write, write_array, write_nullable_bytes, write_numbers, write_string

CONSUMER_PROTOCOL_TYPE = "consumer"
NEWEST_VERSION = 3
_TOPIC_BYTES_MIN = 2
_ASSIGNED_TOPIC_BYTES_MIN = 6
_OWNED_FROM = 1
_RACK_FROM = 3


class ConsumerSubscription(NamedTuple):
    version: int
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """The partitions that a cooperative member still owns; an eager member revokes all before it joins."""
    rack_id: str | None = None


def read_subscription(subscription: bytes) -> ConsumerSubscription | None:
    """Parse a subscription; None if it is malformed. Unknown fields of newer versions are ignored."""
    try:
        version, position = read_number(subscription, 0, INT16)
        if version < 0:
            return None
        topics, position = read_array(subscription, position, _TOPIC_BYTES_MIN, read_string)
        found = ConsumerSubscription(version, topics)
        if version < _OWNED_FROM:
            return found
        _, position = read_nullable_bytes(subscription, position)
        parts, position = read_array(subscription, position, _ASSIGNED_TOPIC_BYTES_MIN, _read_assigned_topic)
        found = found._replace(owned=_partitions(parts))
        if version < _RACK_FROM:
            return found
        _, position = read_number(subscription, position, INT32)
        rack_id, _ = read_nullable_string(subscription, position)
        return found._replace(rack_id=rack_id)
    except (ProtocolError, *MALFORMED):
        return None


def subscribed_topics(subscription: bytes) -> tuple[str, ...] | None:
    """Return the topics of a subscription, or None if it is malformed; fields after the topics are not parsed."""
    try:
        version, position = read_number(subscription, 0, INT16)
        if version < 0:
            return None
        return read_array(subscription, position, _TOPIC_BYTES_MIN, read_string)[0]
    except (ProtocolError, *MALFORMED):
        return None


def assigned_partitions(assignment: bytes) -> tuple[TopicPartition, ...] | None:
    """Return the partitions of an assignment, or None if it is malformed."""
    try:
        version, position = read_number(assignment, 0, INT16)
        if version < 0:
            return None
        topics, _ = read_array(assignment, position, _ASSIGNED_TOPIC_BYTES_MIN, _read_assigned_topic)
    except (ProtocolError, *MALFORMED):
        return None
    return _partitions(topics)


def assignment_of(partitions: Iterable[tuple[str, int]], version: int) -> bytes:
    """Encode an assignment in the version of the member's subscription."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    assignment: list[Buffer] = [INT16.pack(min(version, NEWEST_VERSION))]
    write_array(assignment.append, tuple(topics.items()), _write_assigned_topic)
    write_nullable_bytes(assignment.append, None)
    return b"".join(assignment)


def _write_assigned_topic(write: Write, topic: tuple[str, list[int]]) -> None:
    write_string(write, topic[0])
    write_numbers(write, topic[1], INT32)


def _read_assigned_topic(assignment: Buffer, position: int) -> tuple[tuple[str, tuple[int, ...]], int]:
    name, position = read_string(assignment, position)
    partitions, position = read_numbers(assignment, position, INT32)
    return (name, partitions), position


def _partitions(topics: Iterable[tuple[str, tuple[int, ...]]]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(name, partition) for name, partitions in topics for partition in partitions)
