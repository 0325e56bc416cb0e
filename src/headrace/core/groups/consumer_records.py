"""Records of KIP-848 groups in `__consumer_offsets`, in Kafka's own formats.

There is one kind of record for each part of the state that changes by itself: the group epoch, a member's subscription,
the target assignment of a member, the epoch of the target, and the current assignment of a member.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.core.coordination.machine import RecordRefused
from headrace.wire.primitives.layouts import INT8, INT16, INT32, Buffer
from headrace.wire.primitives.readers import (
    read_compact_array,
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    read_number,
    read_string,
    read_tag_count,
    read_unsigned_varint,
    read_uuid,
    skip_tags,
    take,
)
from headrace.wire.primitives.writers import (
    Write,
    write_compact_array,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_string,
    write_tags,
    write_uuid,
)

EPOCH_KEY, MEMBER_KEY, TARGET_EPOCH_KEY, TARGET_KEY, CURRENT_KEY = 3, 5, 6, 7, 8
KEYS = frozenset((EPOCH_KEY, MEMBER_KEY, TARGET_EPOCH_KEY, TARGET_KEY, CURRENT_KEY))
_MEMBER_KEYS = frozenset((MEMBER_KEY, TARGET_KEY, CURRENT_KEY))
_VALUE_VERSION = 0
_NO_TAGS = b"\x00"
_PRESENT = b"\x01"
"""Precedes a nullable structure that is not null."""

_CLASSIC_TAG = 0
_PROTOCOL_BYTES_MIN = 3
_TOPIC_BYTES_MIN = 18

TopicIdPartition = tuple[bytes, int]
Partitions = tuple[TopicIdPartition, ...]
"""Topic ids and partition numbers, in order."""


class ClassicMemberMetadata(NamedTuple):
    """The additional state of a classic member in a KIP-848 group that migrates between the protocols."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Protocol names in the member's order of preference, each with the member's metadata for it."""


class MemberSubscription(NamedTuple):
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicMemberMetadata | None = None

    def differs_in_topics(self, other: "MemberSubscription") -> bool:
        """Return whether the two subscriptions name different topics or regular expressions."""
        return (self.topics, self.regex) != (other.topics, other.regex)


class CurrentAssignment(NamedTuple):
    epoch: int
    previous_epoch: int
    state: int
    assigned: Partitions
    revoking: Partitions
    """Partitions that the member owns until it confirms that it has revoked them."""


class EpochRecord(NamedTuple):
    group: str
    epoch: int | None


class MemberRecord(NamedTuple):
    group: str
    member_id: str
    subscription: MemberSubscription | None


class TargetEpochRecord(NamedTuple):
    group: str
    epoch: int | None


class TargetRecord(NamedTuple):
    group: str
    member_id: str
    partitions: Partitions | None


class CurrentRecord(NamedTuple):
    group: str
    member_id: str
    current: CurrentAssignment | None


ConsumerRecord = EpochRecord | MemberRecord | TargetEpochRecord | TargetRecord | CurrentRecord

_KEY_OF: dict[type, int] = {
    EpochRecord: EPOCH_KEY,
    MemberRecord: MEMBER_KEY,
    TargetEpochRecord: TARGET_EPOCH_KEY,
    TargetRecord: TARGET_KEY,
    CurrentRecord: CURRENT_KEY,
}


def encode(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    key: list[Buffer] = [INT16.pack(_KEY_OF[type(record)])]
    write_string(key.append, record.group)
    if isinstance(record, MemberRecord | TargetRecord | CurrentRecord):
        write_string(key.append, record.member_id)
    if record[-1] is None:
        return b"".join(key), None
    value: list[Buffer] = [INT16.pack(_VALUE_VERSION)]
    write = value.append
    if isinstance(record, MemberRecord):
        assert record.subscription is not None
        _write_subscription(write, record.subscription)
        return b"".join(key), b"".join(value)
    if isinstance(record, EpochRecord | TargetEpochRecord):
        assert record.epoch is not None
        write(INT32.pack(record.epoch))
    elif isinstance(record, TargetRecord):
        _write_partitions(write, record.partitions or ())
    else:
        assert record.current is not None
        write(INT32.pack(record.current.epoch))
        write(INT32.pack(record.current.previous_epoch))
        write(INT8.pack(record.current.state))
        _write_partitions(write, record.current.assigned)
        _write_partitions(write, record.current.revoking)
    write(_NO_TAGS)
    return b"".join(key), b"".join(value)


def _write_subscription(write: Write, subscription: MemberSubscription) -> None:
    write_compact_nullable_string(write, subscription.instance_id)
    write_compact_nullable_string(write, subscription.rack_id)
    write_compact_string(write, subscription.client_id)
    write_compact_string(write, subscription.client_host)
    write_compact_array(write, subscription.topics, write_compact_string)
    write_compact_nullable_string(write, subscription.regex)
    write(INT32.pack(subscription.rebalance_timeout_ms))
    write_compact_nullable_string(write, subscription.assignor)
    classic: list[Buffer] = [_PRESENT]
    if subscription.classic is not None:
        _write_classic(classic.append, subscription.classic)
    write_tags(write, [] if subscription.classic is None else [(_CLASSIC_TAG, b"".join(classic))])


def _write_classic(write: Write, classic: ClassicMemberMetadata) -> None:
    write(INT32.pack(classic.session_timeout_ms))
    write_compact_array(write, classic.protocols, _write_protocol)
    write(_NO_TAGS)


def _write_protocol(write: Write, protocol: tuple[str, bytes]) -> None:
    write_compact_string(write, protocol[0])
    write_compact_bytes(write, protocol[1])
    write(_NO_TAGS)


def _write_partitions(write: Write, partitions: Partitions) -> None:
    write_compact_array(write, tuple(by_topic(partitions).items()), _write_topic)


def _write_topic(write: Write, topic: tuple[bytes, list[int]]) -> None:
    write_uuid(write, topic[0])
    write_compact_numbers(write, topic[1], INT32)
    write(_NO_TAGS)


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[bytes, list[int]]:
    grouped: dict[bytes, list[int]] = {}
    for topic_id, partition in partitions:
        grouped.setdefault(topic_id, []).append(partition)
    return grouped


def decode(kind: int, key: bytes, position: int, value: bytes | None) -> ConsumerRecord:
    """Decode a record; `position` is the end of the kind in the key."""
    group, position = read_string(key, position)
    member_id = read_string(key, position)[0] if kind in _MEMBER_KEYS else ""
    if value is not None:
        version, start = read_number(value, 0, INT16)
        if version != _VALUE_VERSION:
            raise RecordRefused(f"the value of a consumer group record has the unknown version {version}")
    if kind == EPOCH_KEY:
        return EpochRecord(group, None if value is None else read_number(value, start, INT32)[0])
    if kind == TARGET_EPOCH_KEY:
        return TargetEpochRecord(group, None if value is None else read_number(value, start, INT32)[0])
    if kind == MEMBER_KEY:
        return MemberRecord(group, member_id, None if value is None else _read_subscription(value, start))
    if kind == TARGET_KEY:
        return TargetRecord(group, member_id, None if value is None else _read_partitions(value, start)[0])
    return CurrentRecord(group, member_id, None if value is None else _read_current(value, start))


def _read_subscription(value: bytes, position: int) -> MemberSubscription:
    instance_id, position = read_compact_nullable_string(value, position)
    rack_id, position = read_compact_nullable_string(value, position)
    client_id, position = read_compact_string(value, position)
    client_host, position = read_compact_string(value, position)
    topics, position = read_compact_array(value, position, 1, read_compact_string)
    regex, position = read_compact_nullable_string(value, position)
    rebalance_timeout_ms, position = read_number(value, position, INT32)
    assignor, position = read_compact_nullable_string(value, position)
    return MemberSubscription(
        instance_id,
        rack_id,
        client_id,
        client_host,
        topics,
        regex,
        rebalance_timeout_ms,
        assignor,
        _read_tagged(value, position),
    )


def _read_tagged(value: bytes, position: int) -> ClassicMemberMetadata | None:
    """Read the tagged fields, which may be as large as the metadata of a member, unlike those of a request."""
    count, position = read_tag_count(value, position)
    classic = None
    for _ in range(count):
        tag, position = read_unsigned_varint(value, position)
        size, start = read_unsigned_varint(value, position)
        position = take(value, start, size)
        if tag == _CLASSIC_TAG and value[start : start + 1] == _PRESENT:
            classic = _read_classic(value, start + 1)
    return classic


def _read_classic(value: bytes, position: int) -> ClassicMemberMetadata:
    session_timeout_ms, position = read_number(value, position, INT32)
    protocols, position = read_compact_array(value, position, _PROTOCOL_BYTES_MIN, _read_protocol)
    return ClassicMemberMetadata(session_timeout_ms, protocols)


def _read_protocol(value: Buffer, position: int) -> tuple[tuple[str, bytes], int]:
    name, position = read_compact_string(value, position)
    metadata, position = read_compact_bytes(value, position)
    return (name, bytes(metadata)), skip_tags(value, position)


def _read_current(value: bytes, position: int) -> CurrentAssignment:
    epoch, position = read_number(value, position, INT32)
    previous_epoch, position = read_number(value, position, INT32)
    state, position = read_number(value, position, INT8)
    assigned, position = _read_partitions(value, position)
    revoking, position = _read_partitions(value, position)
    return CurrentAssignment(epoch, previous_epoch, state, assigned, revoking)


def _read_partitions(value: bytes, position: int) -> tuple[Partitions, int]:
    topics, position = read_compact_array(value, position, _TOPIC_BYTES_MIN, _read_topic)
    return tuple((topic_id, partition) for topic_id, partitions in topics for partition in partitions), position


def _read_topic(value: Buffer, position: int) -> tuple[tuple[bytes, tuple[int, ...]], int]:
    topic_id, position = read_uuid(value, position)
    partitions, position = read_compact_numbers(value, position, INT32)
    return (topic_id, partitions), skip_tags(value, position)
