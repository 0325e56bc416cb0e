"""Records of `__consumer_offsets`, in Kafka's own formats, so that tools which read that topic understand them.

A key begins with its version, which identifies the kind of the record; a null value is a tombstone. The coordinator
reads every value version that Kafka has written, and writes the newest one that is not flexible.
"""

from typing import NamedTuple

from headrace.core.coordination.machine import RecordRefused
from headrace.core.groups import consumer_records
from headrace.core.groups.consumer_records import ConsumerRecord
from headrace.model.ids import NO_EPOCH, NO_TIMESTAMP
from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import INT16, INT32, INT64, Buffer
from headrace.wire.primitives.readers import (
    MALFORMED,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_number,
    read_string,
    required,
    skip_tags,
)
from headrace.wire.primitives.writers import write_bytes, write_nullable_string, write_string

OFFSET_KEY_VERSIONS = (0, 1)
GROUP_KEY_VERSION = 2
OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_WITH_EXPIRY_VERSION = 1
"""The only version with an expiry time, which clients before Kafka 2.1 may request."""

GROUP_VALUE_VERSION = 3
_FLEXIBLE_FROM = 4
_MEMBER_BYTES_MIN = 6


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int = NO_TIMESTAMP
    """Set by old clients only; otherwise the broker's retention applies."""


class OffsetRecord(NamedTuple):
    group: str
    topic: str
    partition: int
    committed: CommittedOffset | None
    """None for a tombstone, which deletes the offset."""


class MemberMetadata(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    """The metadata of the member for the elected protocol."""
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A completed generation of a classic group; an empty group has no members."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    since_ms: int
    members: tuple[MemberMetadata, ...]


class GroupRecord(NamedTuple):
    group: str
    metadata: GroupMetadata | None
    """None for a tombstone, which deletes the group."""


Record = OffsetRecord | GroupRecord | ConsumerRecord


class GroupRecords:
    """Encodes and decodes the records of `__consumer_offsets`."""

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        if isinstance(record, OffsetRecord):
            return _offset_key(record), None if record.committed is None else _offset_value(record.committed)
        if not isinstance(record, GroupRecord):
            return consumer_records.encode(record)
        key: list[Buffer] = [INT16.pack(GROUP_KEY_VERSION)]
        write_string(key.append, record.group)
        return b"".join(key), None if record.metadata is None else _group_value(record.metadata)

    def decode(self, key: bytes, value: bytes | None) -> Record | None:
        try:
            version, position = read_number(key, 0, INT16)
            if version in OFFSET_KEY_VERSIONS:
                group, position = read_string(key, position)
                topic, position = read_string(key, position)
                partition, _ = read_number(key, position, INT32)
                return OffsetRecord(group, topic, partition, None if value is None else _read_offset(value))
            if version == GROUP_KEY_VERSION:
                group, _ = read_string(key, position)
                return GroupRecord(group, None if value is None else _read_group(value))
            if version in consumer_records.KEYS:
                return consumer_records.decode(version, key, position, value)
        except (ProtocolError, *MALFORMED) as wrong:
            raise RecordRefused(f"a group record cannot be parsed: {wrong}") from None
        return None  # a kind of record that another release wrote and will need again


def _offset_key(record: OffsetRecord) -> bytes:
    key: list[Buffer] = [INT16.pack(OFFSET_KEY_VERSIONS[-1])]
    write_string(key.append, record.group)
    write_string(key.append, record.topic)
    key.append(INT32.pack(record.partition))
    return b"".join(key)


def _offset_value(committed: CommittedOffset) -> bytes:
    expires = committed.expires_at_ms != NO_TIMESTAMP
    value: list[Buffer] = [INT16.pack(OFFSET_VALUE_WITH_EXPIRY_VERSION if expires else OFFSET_VALUE_VERSION)]
    value.append(INT64.pack(committed.offset))
    if not expires:
        value.append(INT32.pack(committed.leader_epoch))
    write_string(value.append, committed.metadata)
    value.append(INT64.pack(committed.committed_at_ms))
    if expires:
        value.append(INT64.pack(committed.expires_at_ms))
    return b"".join(value)


def _read_offset(value: bytes) -> CommittedOffset:
    version, position = read_number(value, 0, INT16)
    if not 0 <= version <= _FLEXIBLE_FROM:
        raise RecordRefused(f"a committed offset has the unknown version {version}")
    offset, position = read_number(value, position, INT64)
    leader_epoch, expires_at_ms = int(NO_EPOCH), NO_TIMESTAMP
    if version >= OFFSET_VALUE_VERSION:
        leader_epoch, position = read_number(value, position, INT32)
    metadata, position = (read_compact_string if version >= _FLEXIBLE_FROM else read_string)(value, position)
    committed_at_ms, position = read_number(value, position, INT64)
    if version == OFFSET_VALUE_WITH_EXPIRY_VERSION:
        expires_at_ms, position = read_number(value, position, INT64)
    return CommittedOffset(offset, leader_epoch, metadata, committed_at_ms, expires_at_ms)


def _group_value(metadata: GroupMetadata) -> bytes:
    value: list[Buffer] = [INT16.pack(GROUP_VALUE_VERSION)]
    write = value.append
    write_string(write, metadata.protocol_type)
    write(INT32.pack(metadata.generation))
    write_nullable_string(write, metadata.protocol)
    write_nullable_string(write, metadata.leader)
    write(INT64.pack(metadata.since_ms))
    write(INT32.pack(len(metadata.members)))
    for member in metadata.members:
        write_string(write, member.member_id)
        write_nullable_string(write, member.instance_id)
        write_string(write, member.client_id)
        write_string(write, member.client_host)
        write(INT32.pack(member.rebalance_timeout_ms))
        write(INT32.pack(member.session_timeout_ms))
        write_bytes(write, member.subscription)
        write_bytes(write, member.assignment)
    return b"".join(value)


def _read_group(value: bytes) -> GroupMetadata:
    version, position = read_number(value, 0, INT16)
    if not 0 <= version <= _FLEXIBLE_FROM:
        raise RecordRefused(f"group metadata has the unknown version {version}")
    flexible = version >= _FLEXIBLE_FROM
    text = read_compact_string if flexible else read_string
    optional_text = read_compact_nullable_string if flexible else read_nullable_string
    since_ms = NO_TIMESTAMP
    protocol_type, position = text(value, position)
    generation, position = read_number(value, position, INT32)
    protocol, position = optional_text(value, position)
    leader, position = optional_text(value, position)
    if version >= 2:
        since_ms, position = read_number(value, position, INT64)
    count, position = (read_compact_count if flexible else read_count)(value, position, _MEMBER_BYTES_MIN)
    members = []
    for _ in range(required(count)):
        member, position = _read_member(value, position, version)
        members.append(member)
    return GroupMetadata(protocol_type, generation, protocol, leader, since_ms, tuple(members))


def _read_member(value: bytes, position: int, version: int) -> tuple[MemberMetadata, int]:
    flexible = version >= _FLEXIBLE_FROM
    text = read_compact_string if flexible else read_string
    content = read_compact_bytes if flexible else read_bytes
    instance_id: str | None = None
    member_id, position = text(value, position)
    if version >= 3:
        instance_id, position = (read_compact_nullable_string if flexible else read_nullable_string)(value, position)
    client_id, position = text(value, position)
    client_host, position = text(value, position)
    rebalance_timeout_ms = -1
    if version >= 1:
        rebalance_timeout_ms, position = read_number(value, position, INT32)
    session_timeout_ms, position = read_number(value, position, INT32)
    if version < 1:
        rebalance_timeout_ms = session_timeout_ms
    subscription, position = content(value, position)
    assignment, position = content(value, position)
    if flexible:
        position = skip_tags(value, position)
    return (
        MemberMetadata(
            member_id,
            instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms,
            session_timeout_ms,
            subscription,
            assignment,
        ),
        position,
    )
