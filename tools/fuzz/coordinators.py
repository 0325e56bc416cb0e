"""Targets of the coordinators: the records of groups and of transactions, and what consumers say when they join.

A record is a byte with the length of its key, a byte whose lowest bit says that it is a tombstone, the key, the value.
Only RecordRefused may come of it, and what was read can be written: it is read again as the same from then on.
"""

from collections.abc import Sequence
from typing import TypeVar

from headrace.core.coordination.machine import RecordFormat, RecordRefused
from headrace.core.groups.consumer_records import (
    ClassicMemberMetadata,
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    MemberSubscription,
    TargetEpochRecord,
    TargetRecord,
)
from headrace.core.groups.records import (
    CommittedOffset,
    GroupMetadata,
    GroupRecord,
    GroupRecords,
    MemberMetadata,
    OffsetRecord,
)
from headrace.core.groups.records import Record as AnyGroupRecord
from headrace.core.groups.subscriptions import (
    assigned_partitions,
    assignment_of,
    read_subscription,
    subscribed_topics,
)
from headrace.core.transactions.owner_records import CommittedWriter, Owner, OwnerRecord
from headrace.core.transactions.records import (
    PLAIN_VALUE_VERSION,
    Borrower,
    CoordinatorRecord,
    TransactionMetadata,
    TransactionRecord,
    TransactionRecords,
)
from headrace.core.transactions.states import TransactionState
from headrace.wire.primitives.layouts import INT16, INT32, Buffer
from headrace.wire.primitives.writers import write_array, write_nullable_bytes, write_nullable_string, write_string
from tools.fuzz.target import Target, require

HEAD_BYTES = 2
TOMBSTONE_BIT = 1
NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
SUBSCRIPTION_VERSIONS = range(4)

T = TypeVar("T")

_GROUPS: RecordFormat[AnyGroupRecord] = GroupRecords()
_TRANSACTIONS: RecordFormat[CoordinatorRecord] = TransactionRecords()


def targets() -> list[Target]:
    return [
        Target(
            name="group-record",
            read=lambda data: read_record(_GROUPS, data),
            seeds=_group_seeds,
            sources=("core/groups/records.py", "core/groups/consumer_records.py"),
        ),
        Target(
            name="transaction-record",
            read=lambda data: read_record(_TRANSACTIONS, data),
            seeds=_transaction_seeds,
            sources=("core/transactions/records.py", "core/transactions/owner_records.py"),
        ),
        Target(
            name="consumer-subscription",
            read=read_consumer_subscription,
            seeds=_subscription_seeds,
            sources=("core/groups/subscriptions.py",),
        ),
    ]


def read_record(records: RecordFormat[T], data: bytes) -> bool:
    if len(data) < HEAD_BYTES:
        return False
    key_end = HEAD_BYTES + data[0]
    value = None if data[1] & TOMBSTONE_BIT else data[key_end:]
    try:
        record = records.decode(data[HEAD_BYTES:key_end], value)
    except RecordRefused:
        return False
    if record is None:
        return False
    again = records.decode(*records.encode(record))
    require(again is not None, "what was read can be written and read")
    assert again is not None
    require(records.decode(*records.encode(again)) == again, "what was written is read as the same")
    return True


def read_consumer_subscription(data: bytes) -> bool:
    """Also taken for an assignment, which begins in the same way."""
    subscription = read_subscription(data)
    if subscription is not None:
        require(subscribed_topics(data) == subscription.topics, "both readers of a subscription find its topics")
    assigned = assigned_partitions(data)
    if assigned is not None:
        written = assigned_partitions(assignment_of(assigned, 0))
        require(sorted(written or ()) == sorted(assigned), "what was assigned is written as the same")
    return subscription is not None


def encoded(key: bytes, value: bytes | None) -> bytes:
    return bytes((len(key), TOMBSTONE_BIT if value is None else 0)) + key + (value or b"")


def _group_seeds() -> list[bytes]:
    member = MemberMetadata("member", "instance", "client", "/127.0.0.1", 60_000, 10_000, b"asks", b"gets")
    partitions = ((TOPIC_ID, 0), (TOPIC_ID, 3))
    asked = MemberSubscription("instance", "rack", "client", "/127.0.0.1", ("orders",), None, 60_000, "uniform")
    found: list[AnyGroupRecord] = [
        OffsetRecord("group", "orders", 1, CommittedOffset(7, 2, "metadata", NOW_MS, -1)),
        OffsetRecord("group", "orders", 1, CommittedOffset(7, -1, "", NOW_MS, NOW_MS + 1)),
        OffsetRecord("group", "orders", 1, None),
        GroupRecord("group", GroupMetadata("consumer", 3, "range", "member", NOW_MS, (member, member))),
        GroupRecord("group", None),
        EpochRecord("group", 4),
        MemberRecord("group", "member", asked),
        MemberRecord("group", "member", asked._replace(classic=ClassicMemberMetadata(10_000, (("range", b"asks"),)))),
        TargetEpochRecord("group", 4),
        TargetRecord("group", "member", partitions),
        CurrentRecord("group", "member", CurrentAssignment(4, 3, 0, partitions, partitions[:1])),
        CurrentRecord("group", "member", None),
    ]
    return [encoded(*GroupRecords().encode(record)) for record in found]


def _transaction_seeds() -> list[bytes]:
    open_one = TransactionMetadata(
        7, 1, TransactionState.ONGOING, 60_000, frozenset((("orders", 0), ("orders", 2), ("totals", 1))), NOW_MS, NOW_MS
    )
    lent = open_one._replace(
        previous_producer_id=6,
        next_producer_id=8,
        last_producer_epoch=0,
        client_version=2,
        writer=Borrower("run", 5, 9),
    )
    owner = Owner("run", ("older", "old"), 5, "run", (CommittedWriter(0, 7, 1), CommittedWriter(1, 8, 1)), NOW_MS, "w")
    found: list[CoordinatorRecord] = [
        TransactionRecord("id", open_one),
        TransactionRecord("id", lent),
        TransactionRecord("id", open_one._replace(state=TransactionState.EMPTY, partitions=frozenset())),
        TransactionRecord("id", None),
        OwnerRecord("query", owner),
        OwnerRecord("query", None),
    ]
    plain = TransactionRecords(PLAIN_VALUE_VERSION).encode(TransactionRecord("id", open_one))
    return [encoded(*plain), *(encoded(*TransactionRecords().encode(record)) for record in found)]


def _subscription_seeds() -> list[bytes]:
    assigned = [("orders", 0), ("orders", 1), ("totals", 0)]
    return [
        *(_subscription(("orders", "totals"), version) for version in SUBSCRIPTION_VERSIONS),
        *(assignment_of(assigned, version) for version in SUBSCRIPTION_VERSIONS),
    ]


def _subscription(topics: Sequence[str], version: int) -> bytes:
    """As consumers write it: topics, user data, what is owned, the generation, the rack."""
    parts: list[Buffer] = [INT16.pack(version)]
    write_array(parts.append, topics, write_string)
    write_nullable_bytes(parts.append, b"user data")
    owned = assignment_of([("orders", 0)], 0)[INT16.size : -INT32.size]
    if version >= 1:
        parts.append(owned)
    if version >= 2:
        parts.append(INT32.pack(4))
    if version >= 3:
        write_nullable_string(parts.append, "rack")
    return b"".join(parts)
