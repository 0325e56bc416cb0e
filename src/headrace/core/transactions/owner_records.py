"""What is known of an owner of epochs, and its record in `__transaction_state`.

The key has a version of its own, far from Kafka's: its readers pass over keys whose version they do not know.
"""

from typing import NamedTuple

from headrace.core.coordination.machine import RecordRefused
from headrace.wire.primitives.layouts import INT16, INT32, INT64, Buffer
from headrace.wire.primitives.readers import read_array, read_number, read_string
from headrace.wire.primitives.writers import Write, write_array, write_string

OWNER_KEY_VERSION = 10_000
_VALUE_VERSION = 2
_REPEATS_FROM = 1
"""The version from which on the repeated write is told."""
_UPTIME_FROM = 2
_RUN_BYTES_MIN = 2
_MEMBER_BYTES = 14

NOTHING_COMMITTED = -1


class CommittedMember(NamedTuple):
    """A member as the commit named it."""

    slot: int
    producer_id: int
    producer_epoch: int


class Owner(NamedTuple):
    """A sink of a query, say: its newest run, and the last of its batches that is in."""

    run: str
    older_runs: tuple[str, ...]
    """They can write no more; the newest last."""
    committed_batch_id: int
    committed_run: str
    committed_members: tuple[CommittedMember, ...]
    updated_at_ms: int
    repeated_write: str = ""
    """The write of the newest run that found the batch committed by an earlier one; no other of that run may."""
    updated_uptime_ms: int = 0
    """The coordinator's uptime at `updated_at_ms`; 0 in records of releases that did not write it."""


class OwnerRecord(NamedTuple):
    name: str
    owner: Owner | None
    """None forgets it."""


def encode_owner(record: OwnerRecord) -> tuple[bytes, bytes | None]:
    key: list[Buffer] = [INT16.pack(OWNER_KEY_VERSION)]
    write_string(key.append, record.name)
    owner = record.owner
    if owner is None:
        return b"".join(key), None
    value: list[Buffer] = [INT16.pack(_VALUE_VERSION)]
    write = value.append
    write_string(write, owner.run)
    write_array(write, owner.older_runs, write_string)
    write(INT64.pack(owner.committed_batch_id))
    write_string(write, owner.committed_run)
    write_array(write, owner.committed_members, _write_member)
    write(INT64.pack(owner.updated_at_ms))
    write_string(write, owner.repeated_write)
    write(INT64.pack(owner.updated_uptime_ms))
    return b"".join(key), b"".join(value)


def decode_owner(key: bytes, position: int, value: bytes | None) -> OwnerRecord:
    name, _ = read_string(key, position)
    if value is None:
        return OwnerRecord(name, None)
    version, position = read_number(value, 0, INT16)
    if not 0 <= version <= _VALUE_VERSION:
        raise RecordRefused(f"an owner's record of the unknown version {version}")
    run, position = read_string(value, position)
    older_runs, position = read_array(value, position, _RUN_BYTES_MIN, read_string)
    committed_batch_id, position = read_number(value, position, INT64)
    committed_run, position = read_string(value, position)
    members, position = read_array(value, position, _MEMBER_BYTES, _read_member)
    updated_at_ms, position = read_number(value, position, INT64)
    owner = Owner(run, older_runs, committed_batch_id, committed_run, members, updated_at_ms)
    if version >= _REPEATS_FROM:
        repeated_write, position = read_string(value, position)
        owner = owner._replace(repeated_write=repeated_write)
    if version >= _UPTIME_FROM:
        owner = owner._replace(updated_uptime_ms=read_number(value, position, INT64)[0])
    return OwnerRecord(name, owner)


def _write_member(write: Write, member: CommittedMember) -> None:
    write(INT32.pack(member.slot))
    write(INT64.pack(member.producer_id))
    write(INT16.pack(member.producer_epoch))


def _read_member(value: Buffer, position: int) -> tuple[CommittedMember, int]:
    slot, position = read_number(value, position, INT32)
    producer_id, position = read_number(value, position, INT64)
    producer_epoch, position = read_number(value, position, INT16)
    return CommittedMember(slot, producer_id, producer_epoch), position
