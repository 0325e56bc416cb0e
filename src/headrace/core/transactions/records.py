"""The records of `__transaction_state`, in Kafka's formats, so that Kafka's tools can read the topic.

A key holds the transactional id; a null value is a tombstone. Both versions of the value are read. The written version
depends on transaction.version: the flexible one from level 1 on. Headrace's own fields are tags, and its own records
have key versions that Kafka's readers skip.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.core.coordination.machine import RecordRefused
from headrace.core.transactions.owner_records import OWNER_KEY_VERSION, OwnerRecord, decode_owner, encode_owner
from headrace.core.transactions.states import NUMBERED_STATES, STATE_NUMBERS, TransactionState
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from headrace.wire.errors import ProtocolError
from headrace.wire.primitives.layouts import INT8, INT16, INT32, INT64, Buffer
from headrace.wire.primitives.readers import (
    MALFORMED,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_numbers,
    read_compact_string,
    read_nullable_array,
    read_number,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    Write,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_numbers,
    write_compact_string,
    write_nullable_array,
    write_numbers,
    write_string,
    write_tags,
)

KEY_VERSION = 0
UPTIME_KEY_VERSION = 10_001
"""Kafka's readers skip keys of unknown versions."""
_UPTIME_VALUE_VERSION = 0
PLAIN_VALUE_VERSION = 0
FLEXIBLE_VALUE_VERSION = 1

_PREVIOUS_PRODUCER_ID_TAG = 0
_NEXT_PRODUCER_ID_TAG = 1
_CLIENT_VERSION_TAG = 2
_LAST_EPOCH_TAG = 10_000
"""The first of Headrace's own tags, far above Kafka's: readers skip unknown tags."""

_WRITER_TAG = 10_001
_UPTIME_TAG = 10_002
_METADATA_OFFSET_TAG = 10_004
_BOOTS_TAG = 10_005

_TOPIC_BYTES_MIN = 2
_BOOT_BYTES_MIN = 5

NO_BATCH = -1

Partition = tuple[str, int]
Partitions = frozenset[Partition]


class Borrower(NamedTuple):
    """The borrower of an id of a pool: one attempt of one task, for one batch of one run."""

    run: str
    batch_id: int
    task_attempt_id: int


class LeaderBoot(NamedTuple):
    """A broker that leads partitions, and the boot of its operating system."""

    node_id: int
    boot_id: str


IN_POOL = Borrower("", NO_BATCH, NO_BATCH)
"""Marks an id of a pool that no writer has borrowed."""


class TransactionMetadata(NamedTuple):
    """The state of a transactional id."""

    producer_id: int
    producer_epoch: int
    state: TransactionState
    timeout_ms: int
    partitions: Partitions
    started_at_ms: int
    updated_at_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change, by which the coordinator recognises a retry from before it."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id with which the producer continues after this transaction; its own has no epochs left."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The producer epoch before the last bump that the producer requested; a retry of that request carries it."""
    client_version: int = 0
    """The transaction.version of the producer's last request."""
    writer: Borrower | None = None
    """The borrower of an id of an owner's pool; None for an id that is not in a pool."""
    updated_uptime_ms: int = 0
    """The coordinator's uptime at `updated_at_ms`; 0 in records of releases without it."""
    started_uptime_ms: int = 0
    """The coordinator's uptime at the start of the ongoing transaction."""
    boots: tuple[LeaderBoot, ...] = ()
    """The leaders to which the writer has written, by node id: a leader that has booted since may have lost rows."""
    metadata_offset: int = 0
    """The offset of the coordinator's metadata at which every partition was known; 0 without partitions."""


class TransactionRecord(NamedTuple):
    transactional_id: str
    transaction: TransactionMetadata | None
    """None removes the id."""


class UptimeRecord(NamedTuple):
    """A checkpoint of the coordinator's uptime."""

    uptime_ms: int


CoordinatorRecord = TransactionRecord | OwnerRecord | UptimeRecord


class TransactionRecords:
    """The format of `__transaction_state`."""

    def __init__(self, value_version: int = FLEXIBLE_VALUE_VERSION) -> None:
        self._value_version = value_version

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        if isinstance(record, OwnerRecord):
            return encode_owner(record)
        if isinstance(record, UptimeRecord):
            return INT16.pack(UPTIME_KEY_VERSION), INT16.pack(_UPTIME_VALUE_VERSION) + INT64.pack(record.uptime_ms)
        key: list[Buffer] = [INT16.pack(KEY_VERSION)]
        write_string(key.append, record.transactional_id)
        if record.transaction is None:
            return b"".join(key), None
        flexible = self._value_version >= FLEXIBLE_VALUE_VERSION
        return b"".join(key), (_flexible_value if flexible else _plain_value)(record.transaction)

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord | None:
        try:
            version, position = read_number(key, 0, INT16)
            if version == OWNER_KEY_VERSION:
                return decode_owner(key, position, value)
            if version == UPTIME_KEY_VERSION:
                return _read_uptime(value)
            if version != KEY_VERSION:
                return None  # written by a later release; Kafka skips such keys as well
            transactional_id, _ = read_string(key, position)
            return TransactionRecord(transactional_id, None if value is None else _read_value(value))
        except (ProtocolError, *MALFORMED) as error:
            raise RecordRefused(f"a record of __transaction_state cannot be read: {error}") from error


def _read_uptime(value: bytes | None) -> UptimeRecord | None:
    if value is None:
        return None
    version, position = read_number(value, 0, INT16)
    if version != _UPTIME_VALUE_VERSION:
        raise RecordRefused(f"an uptime record has the unknown version {version}")
    return UptimeRecord(read_number(value, position, INT64)[0])


def _by_topic(transaction: TransactionMetadata) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """Return the partitions by topic; None for an id without a transaction, as Kafka writes it."""
    if transaction.state is TransactionState.EMPTY:
        return None
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        grouped.setdefault(topic, []).append(partition)
    return tuple((topic, tuple(partitions)) for topic, partitions in grouped.items())


def _write_fixed(write: Write, transaction: TransactionMetadata) -> None:
    write(INT64.pack(transaction.producer_id))
    write(INT16.pack(transaction.producer_epoch))
    write(INT32.pack(transaction.timeout_ms))
    write(INT8.pack(STATE_NUMBERS[transaction.state]))


def _plain_value(transaction: TransactionMetadata) -> bytes:
    value: list[Buffer] = [INT16.pack(PLAIN_VALUE_VERSION)]
    write = value.append
    _write_fixed(write, transaction)
    write_nullable_array(write, _by_topic(transaction), _write_topic)
    write(INT64.pack(transaction.updated_at_ms))
    write(INT64.pack(transaction.started_at_ms))
    return b"".join(value)


def _write_topic(write: Write, topic: tuple[str, tuple[int, ...]]) -> None:
    write_string(write, topic[0])
    write_numbers(write, topic[1], INT32)


def _flexible_value(transaction: TransactionMetadata) -> bytes:
    value: list[Buffer] = [INT16.pack(FLEXIBLE_VALUE_VERSION)]
    write = value.append
    _write_fixed(write, transaction)
    write_compact_nullable_array(write, _by_topic(transaction), _write_flexible_topic)
    write(INT64.pack(transaction.updated_at_ms))
    write(INT64.pack(transaction.started_at_ms))
    tags = []
    if transaction.previous_producer_id != NO_PRODUCER_ID:
        tags.append((_PREVIOUS_PRODUCER_ID_TAG, INT64.pack(transaction.previous_producer_id)))
    if transaction.next_producer_id != NO_PRODUCER_ID:
        tags.append((_NEXT_PRODUCER_ID_TAG, INT64.pack(transaction.next_producer_id)))
    if transaction.client_version:
        tags.append((_CLIENT_VERSION_TAG, INT16.pack(transaction.client_version)))
    if transaction.last_producer_epoch != NO_PRODUCER_EPOCH:
        tags.append((_LAST_EPOCH_TAG, INT16.pack(transaction.last_producer_epoch)))
    if transaction.writer is not None:
        tags.append((_WRITER_TAG, _writer_value(transaction.writer)))
    if transaction.updated_uptime_ms or transaction.started_uptime_ms:
        uptimes = INT64.pack(transaction.updated_uptime_ms) + INT64.pack(transaction.started_uptime_ms)
        tags.append((_UPTIME_TAG, uptimes))
    if transaction.metadata_offset:
        tags.append((_METADATA_OFFSET_TAG, INT64.pack(transaction.metadata_offset)))
    if transaction.boots:
        tags.append((_BOOTS_TAG, _boots_value(transaction.boots)))
    write_tags(write, tags)
    return b"".join(value)


def _boots_value(boots: tuple[LeaderBoot, ...]) -> bytes:
    value: list[Buffer] = []
    write_compact_array(value.append, boots, _write_boot)
    return b"".join(value)


def _write_boot(write: Write, boot: LeaderBoot) -> None:
    write(INT32.pack(boot.node_id))
    write_compact_string(write, boot.boot_id)


def _read_boot(value: Buffer, position: int) -> tuple[LeaderBoot, int]:
    node_id, position = read_number(value, position, INT32)
    boot_id, position = read_compact_string(value, position)
    return LeaderBoot(node_id, boot_id), position


def _writer_value(writer: Borrower) -> bytes:
    value: list[Buffer] = []
    write_compact_string(value.append, writer.run)
    return b"".join((*value, INT64.pack(writer.batch_id), INT64.pack(writer.task_attempt_id)))


def _read_writer(value: bytes, position: int) -> Borrower:
    run, position = read_compact_string(value, position)
    batch_id, position = read_number(value, position, INT64)
    task_attempt_id, position = read_number(value, position, INT64)
    return Borrower(run, batch_id, task_attempt_id)


def _write_flexible_topic(write: Write, topic: tuple[str, tuple[int, ...]]) -> None:
    write_compact_string(write, topic[0])
    write_compact_numbers(write, topic[1], INT32)
    write(b"\0")


def _read_value(value: bytes) -> TransactionMetadata:
    version, position = read_number(value, 0, INT16)
    if version not in (PLAIN_VALUE_VERSION, FLEXIBLE_VALUE_VERSION):
        raise RecordRefused(f"a transaction record has the unknown version {version}")
    producer_id, position = read_number(value, position, INT64)
    producer_epoch, position = read_number(value, position, INT16)
    timeout_ms, position = read_number(value, position, INT32)
    number, position = read_number(value, position, INT8)
    state = NUMBERED_STATES.get(number)
    if state is None:
        raise RecordRefused(f"a transaction in the unknown state {number}")
    if version == PLAIN_VALUE_VERSION:
        topics, position = read_nullable_array(value, position, _TOPIC_BYTES_MIN, _read_topic)
    else:
        topics, position = read_compact_nullable_array(value, position, _TOPIC_BYTES_MIN, _read_flexible_topic)
    updated_at_ms, position = read_number(value, position, INT64)
    started_at_ms, position = read_number(value, position, INT64)
    transaction = TransactionMetadata(
        producer_id, producer_epoch, state, timeout_ms, _flat(topics or ()), started_at_ms, updated_at_ms
    )
    return transaction if version == PLAIN_VALUE_VERSION else _with_tags(transaction, value, position)


def _flat(topics: Iterable[tuple[str, tuple[int, ...]]]) -> Partitions:
    return frozenset((topic, partition) for topic, partitions in topics for partition in partitions)


def _read_topic(value: Buffer, position: int) -> tuple[tuple[str, tuple[int, ...]], int]:
    topic, position = read_string(value, position)
    partitions, position = read_numbers(value, position, INT32)
    return (topic, partitions), position


def _read_flexible_topic(value: Buffer, position: int) -> tuple[tuple[str, tuple[int, ...]], int]:
    topic, position = read_compact_string(value, position)
    partitions, position = read_compact_numbers(value, position, INT32)
    return (topic, partitions), skip_tags(value, position)


def _with_tags(transaction: TransactionMetadata, value: bytes, position: int) -> TransactionMetadata:
    count, position = read_tag_count(value, position)
    for _ in range(count):
        tag, start, position = read_tag(value, position)
        if tag == _PREVIOUS_PRODUCER_ID_TAG:
            transaction = transaction._replace(previous_producer_id=read_number(value, start, INT64)[0])
        elif tag == _NEXT_PRODUCER_ID_TAG:
            transaction = transaction._replace(next_producer_id=read_number(value, start, INT64)[0])
        elif tag == _CLIENT_VERSION_TAG:
            transaction = transaction._replace(client_version=read_number(value, start, INT16)[0])
        elif tag == _LAST_EPOCH_TAG:
            transaction = transaction._replace(last_producer_epoch=read_number(value, start, INT16)[0])
        elif tag == _WRITER_TAG:
            transaction = transaction._replace(writer=_read_writer(value, start))
        elif tag == _UPTIME_TAG:
            updated_ms, start = read_number(value, start, INT64)
            started_ms, _ = read_number(value, start, INT64)
            transaction = transaction._replace(updated_uptime_ms=updated_ms, started_uptime_ms=started_ms)
        elif tag == _METADATA_OFFSET_TAG:
            transaction = transaction._replace(metadata_offset=read_number(value, start, INT64)[0])
        elif tag == _BOOTS_TAG:
            transaction = transaction._replace(boots=read_compact_array(value, start, _BOOT_BYTES_MIN, _read_boot)[0])
    return transaction
