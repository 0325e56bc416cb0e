"""Kafka's consumer protocol, as far as others than consumers look at it: subscriptions and assignments."""

from headrace.model.ids import TopicPartition
from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.reading import MALFORMED, read_array, read_number, read_numbers, read_string

CONSUMER_PROTOCOL_TYPE = "consumer"
_TOPIC_BYTES_MIN = 2
_ASSIGNED_TOPIC_BYTES_MIN = 6


def subscribed_topics(subscription: bytes) -> tuple[str, ...] | None:
    """The names in a consumer's subscription, or None if it is no such thing."""
    try:
        version, position = read_number(subscription, 0, INT16)
        if version < 0:
            return None
        return read_array(subscription, position, _TOPIC_BYTES_MIN, read_string)[0]
    except (ProtocolError, *MALFORMED):
        return None


def assigned_partitions(assignment: bytes) -> tuple[TopicPartition, ...] | None:
    """The partitions in a consumer's assignment, or None if it is no such thing."""
    try:
        version, position = read_number(assignment, 0, INT16)
        if version < 0:
            return None
        topics, _ = read_array(assignment, position, _ASSIGNED_TOPIC_BYTES_MIN, _read_assigned_topic)
    except (ProtocolError, *MALFORMED):
        return None
    return tuple(TopicPartition(name, partition) for name, partitions in topics for partition in partitions)


def _read_assigned_topic(assignment: Buffer, position: int) -> tuple[tuple[str, tuple[int, ...]], int]:
    name, position = read_string(assignment, position)
    partitions, position = read_numbers(assignment, position, INT32)
    return (name, partitions), position
