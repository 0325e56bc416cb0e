"""Transitions of a transactional id: pure functions from one state to the next.

Producer epochs have 16 bits. No producer gets the last one, so that the coordinator can always fence the producer that
has the one before. Then the producer id is exhausted and the transactional id continues with an unused one.
"""

from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import EPOCH_BUMPED_FROM
from headrace.core.transactions.records import IN_POOL, Borrower, LeaderBoot, Partitions, TransactionMetadata
from headrace.core.transactions.states import AT_REST, ENDING, OPEN, PRECEDING, TransactionState
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP

EPOCH_MAX = 2**15 - 1
EXHAUSTED_FROM = EPOCH_MAX - 1

_NO_PARTITIONS: Partitions = frozenset()


def producer_of(transaction: TransactionMetadata) -> PendingProducer:
    return PendingProducer(transaction.producer_id, transaction.producer_epoch)


def is_exhausted(epoch: int) -> bool:
    return epoch >= EXHAUSTED_FROM


def created(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    """Return a new id, with the producer epoch 0."""
    return TransactionMetadata(
        producer_id,
        0,
        TransactionState.EMPTY,
        timeout_ms,
        _NO_PARTITIONS,
        NO_TIMESTAMP,
        now_ms,
        previous_producer_id=producer_id,
    )


def reinitialized(
    before: TransactionMetadata, *, producer: PendingProducer, last_epoch: int, timeout_ms: int, now_ms: int
) -> TransactionMetadata:
    """Return the id after a producer took it over, or continued with it after an error."""
    return _follow(
        before,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_producer_epoch=last_epoch,
        state=TransactionState.EMPTY,
        timeout_ms=timeout_ms,
        partitions=_NO_PARTITIONS,
        started_at_ms=NO_TIMESTAMP,
        updated_at_ms=now_ms,
        writer=_back_in_pool(before),
        boots=(),
    )


def created_in_pool(producer_id: int, writer: Borrower, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    return created(producer_id, timeout_ms, now_ms)._replace(writer=writer)


def lent(
    before: TransactionMetadata, *, fresh_producer_id: int | None, writer: Borrower, timeout_ms: int, now_ms: int
) -> TransactionMetadata:
    """Lend an id of the pool under an unused producer epoch."""
    if fresh_producer_id is not None:
        producer = PendingProducer(fresh_producer_id, 0)
    else:
        producer = PendingProducer(before.producer_id, before.producer_epoch + 1)
    taken = reinitialized(before, producer=producer, last_epoch=NO_PRODUCER_EPOCH, timeout_ms=timeout_ms, now_ms=now_ms)
    return taken._replace(writer=writer)


def is_open_writer(transaction: TransactionMetadata) -> bool:
    """Return whether a writer has borrowed the id and its end is not decided."""
    return transaction.writer not in (None, IN_POOL) and transaction.state in OPEN


def _back_in_pool(before: TransactionMetadata) -> Borrower | None:
    return None if before.writer is None else IN_POOL


def has_rebooted(before: TransactionMetadata, leader: LeaderBoot) -> bool:
    """Return whether the leader's operating system was booted since the writer wrote to it."""
    return any(boot.node_id == leader.node_id and boot != leader for boot in before.boots)


def with_boot(before: TransactionMetadata, leader: LeaderBoot | None) -> tuple[LeaderBoot, ...]:
    """Return the leaders to which a writer has written, with one more; other transactions have none."""
    if before.writer is None or leader is None or leader in before.boots:
        return before.boots
    return tuple(sorted((*before.boots, leader)))


def with_partitions(
    before: TransactionMetadata,
    partitions: Partitions,
    *,
    leader: LeaderBoot | None,
    client_version: int,
    now_ms: int,
) -> TransactionMetadata:
    """Add partitions of a leader; the first ones begin the transaction."""
    return _follow(
        before,
        state=TransactionState.ONGOING,
        partitions=before.partitions | partitions,
        started_at_ms=now_ms if before.state in AT_REST else before.started_at_ms,
        updated_at_ms=now_ms,
        client_version=client_version,
        boots=with_boot(before, leader),
    )


def prepared(
    before: TransactionMetadata,
    *,
    commit: bool,
    client_version: int,
    now_ms: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> TransactionMetadata:
    """Decide the outcome. From transaction.version 2 on, the producer continues with a new producer epoch."""
    bumped = client_version >= EPOCH_BUMPED_FROM
    return _follow(
        before,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        producer_epoch=min(before.producer_epoch + 1, EPOCH_MAX) if bumped else before.producer_epoch,
        last_producer_epoch=before.producer_epoch if bumped else before.last_producer_epoch,
        next_producer_id=next_producer_id,
        started_at_ms=now_ms if before.state in AT_REST else before.started_at_ms,
        updated_at_ms=now_ms,
        client_version=client_version,
    )


def fenced(before: TransactionMetadata, *, server_version: int, now_ms: int, for_good: bool) -> TransactionMetadata:
    """Abort the transaction without a request of its producer, and end its producer epoch.

    With `for_good`, another producer takes over: no later request of this one counts as a retry. Otherwise the producer
    may abort and continue.
    """
    aborted = prepared(before, commit=False, client_version=server_version, now_ms=now_ms)
    if server_version < EPOCH_BUMPED_FROM:
        aborted = aborted._replace(producer_epoch=min(before.producer_epoch + 1, EPOCH_MAX))
    is_last = for_good or server_version < EPOCH_BUMPED_FROM
    return aborted._replace(last_producer_epoch=NO_PRODUCER_EPOCH) if is_last else aborted


def awaits(ending: TransactionMetadata, producer: PendingProducer) -> bool:
    """Return whether this is the identity with which the producer continues when the transaction has ended."""
    return ending.state in ENDING and producer == PendingProducer(ending.next_producer_id, 0)


def needs_fresh_id(ending: TransactionMetadata) -> bool:
    """Return whether the abort that fenced the producer took the last producer epoch."""
    return ending.producer_epoch >= EPOCH_MAX and ending.next_producer_id == NO_PRODUCER_ID


def completed(before: TransactionMetadata, *, now_ms: int, fresh_producer_id: int | None = None) -> TransactionMetadata:
    """Return the id when every partition has its marker."""
    assert before.state in ENDING
    next_producer_id = before.next_producer_id if before.next_producer_id != NO_PRODUCER_ID else fresh_producer_id
    rotates = next_producer_id is not None
    return _follow(
        before,
        state=TransactionState.COMPLETE_COMMIT
        if before.state is TransactionState.PREPARE_COMMIT
        else TransactionState.COMPLETE_ABORT,
        producer_id=next_producer_id if rotates else before.producer_id,
        producer_epoch=0 if rotates else before.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=_NO_PARTITIONS,
        updated_at_ms=now_ms,
        writer=_back_in_pool(before),
        boots=(),
    )


def _follow(before: TransactionMetadata, **changes: object) -> TransactionMetadata:
    after = before._replace(**{"previous_producer_id": before.producer_id, **changes})  # type: ignore[arg-type]
    assert before.state in PRECEDING[after.state], f"{after.state} does not follow {before.state}"
    return after
