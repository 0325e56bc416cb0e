"""The state of an owner of batch commits, and its record in `__transaction_state`.

The key has a version of its own, far above Kafka's: Kafka's readers skip keys of unknown versions.
"""

from typing import NamedTuple

from headrace.core.coordination.machine import RecordRefused
from headrace.wire.primitives.layouts import INT16, INT32, INT64, Buffer
from headrace.wire.primitives.readers import read_array, read_number, read_string
from headrace.wire.primitives.writers import Write, write_array, write_string

OWNER_KEY_VERSION = 10_000
_VALUE_VERSION = 2
_REPEATS_FROM = 1
"""The first version that has the repeated write."""
_UPTIME_FROM = 2
_RUN_BYTES_MIN = 2
_WRITER_BYTES = 14

NOTHING_COMMITTED = -1


class CommittedWriter(NamedTuple):
    """A writer that a commit named."""

    slot: int
    producer_id: int
    producer_epoch: int


class Owner(NamedTuple):
    """A writer of batches, such as the sink of a Spark query: its newest run and its last committed batch."""

    run: str
    older_runs: tuple[str, ...]
    """Runs that are fenced, the newest last."""
    committed_batch_id: int
    committed_run: str
    committed_writers: tuple[CommittedWriter, ...]
    updated_at_ms: int
    repeated_write: str = ""
    """The write of the newest run that repeated the committed batch of an earlier run; its other writes are refused."""
    updated_uptime_ms: int = 0
    """The coordinator's uptime at `updated_at_ms`; 0 in records of releases without it."""


class OwnerRecord(NamedTuple):
    name: str
    owner: Owner | None
    """None removes the owner."""


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
    write_array(write, owner.committed_writers, _write_writer)
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
        raise RecordRefused(f"an owner record has the unknown version {version}")
    run, position = read_string(value, position)
    older_runs, position = read_array(value, position, _RUN_BYTES_MIN, read_string)
    committed_batch_id, position = read_number(value, position, INT64)
    committed_run, position = read_string(value, position)
    writers, position = read_array(value, position, _WRITER_BYTES, _read_writer)
    updated_at_ms, position = read_number(value, position, INT64)
    owner = Owner(run, older_runs, committed_batch_id, committed_run, writers, updated_at_ms)
    if version >= _REPEATS_FROM:
        repeated_write, position = read_string(value, position)
        owner = owner._replace(repeated_write=repeated_write)
    if version >= _UPTIME_FROM:
        owner = owner._replace(updated_uptime_ms=read_number(value, position, INT64)[0])
    return OwnerRecord(name, owner)


def _write_writer(write: Write, writer: CommittedWriter) -> None:
    write(INT32.pack(writer.slot))
    write(INT64.pack(writer.producer_id))
    write(INT16.pack(writer.producer_epoch))


def _read_writer(value: Buffer, position: int) -> tuple[CommittedWriter, int]:
    slot, position = read_number(value, position, INT32)
    producer_id, position = read_number(value, position, INT64)
    producer_epoch, position = read_number(value, position, INT16)
    return CommittedWriter(slot, producer_id, producer_epoch), position
