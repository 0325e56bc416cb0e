"""From one state of a transactional id to the next: pure functions of what was known before.

Epochs are 16 bits. The last one is never given to a producer: a coordinator can always fence, once more, whoever has
the one before. Then the id is used up and the transactional id goes on with a fresh one.
"""

from headrace.core.coordination.machine import Producer
from headrace.core.transactions.commands import EPOCH_BUMPED_FROM
from headrace.core.transactions.records import IN_POOL, Member, Partitions, Transaction
from headrace.core.transactions.states import AT_REST, ENDING, OPEN, PRECEDING, TransactionState
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP

EPOCH_MAX = 2**15 - 1
EXHAUSTED_FROM = EPOCH_MAX - 1

_NO_PARTITIONS: Partitions = frozenset()


def is_exhausted(epoch: int) -> bool:
    return epoch >= EXHAUSTED_FROM


def created(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """Nothing was ever written under this id; its first epoch is 0."""
    return Transaction(
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
    before: Transaction, *, producer: Producer, last_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    """A producer took the id over, or goes on with it after an error."""
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
        member=_back_in_pool(before),
    )


def created_in_pool(producer_id: int, member: Member, timeout_ms: int, now_ms: int) -> Transaction:
    return created(producer_id, timeout_ms, now_ms)._replace(member=member)


def lent(
    before: Transaction, *, fresh_producer_id: int | None, member: Member, timeout_ms: int, now_ms: int
) -> Transaction:
    """An id of the pool at rest, under an epoch that nobody ever had."""
    if fresh_producer_id is not None:
        producer = Producer(fresh_producer_id, 0)
    else:
        producer = Producer(before.producer_id, before.producer_epoch + 1)
    taken = reinitialized(before, producer=producer, last_epoch=NO_PRODUCER_EPOCH, timeout_ms=timeout_ms, now_ms=now_ms)
    return taken._replace(member=member)


def is_open_member(transaction: Transaction) -> bool:
    """Lent, and its end is not decided."""
    return transaction.member not in (None, IN_POOL) and transaction.state in OPEN


def _back_in_pool(before: Transaction) -> Member | None:
    return None if before.member is None else IN_POOL


def with_partitions(before: Transaction, partitions: Partitions, *, client_version: int, now_ms: int) -> Transaction:
    """The first partitions begin the transaction."""
    return _follow(
        before,
        state=TransactionState.ONGOING,
        partitions=before.partitions | partitions,
        started_at_ms=now_ms if before.state in AT_REST else before.started_at_ms,
        updated_at_ms=now_ms,
        client_version=client_version,
    )


def prepared(
    before: Transaction,
    *,
    commit: bool,
    client_version: int,
    now_ms: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> Transaction:
    """The outcome is decided. From transaction.version 2 on, whatever the producer sends next has a new epoch."""
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


def fenced(before: Transaction, *, server_version: int, now_ms: int, for_good: bool) -> Transaction:
    """Abort what the producer did not ask to abort, and end its epoch.

    With `for_good`, another producer takes over: nothing that this one asks counts as a retry from now on. Otherwise it
    may abort and go on.
    """
    aborted = prepared(before, commit=False, client_version=server_version, now_ms=now_ms)
    if server_version < EPOCH_BUMPED_FROM:
        aborted = aborted._replace(producer_epoch=min(before.producer_epoch + 1, EPOCH_MAX))
    is_last = for_good or server_version < EPOCH_BUMPED_FROM
    return aborted._replace(last_producer_epoch=NO_PRODUCER_EPOCH) if is_last else aborted


def awaits(ending: Transaction, producer: Producer) -> bool:
    """The producer was told to go on as this one, which it is from the end of the transaction on."""
    return ending.state in ENDING and producer == Producer(ending.next_producer_id, 0)


def needs_fresh_id(ending: Transaction) -> bool:
    """The abort that fenced it took the last epoch."""
    return ending.producer_epoch >= EPOCH_MAX and ending.next_producer_id == NO_PRODUCER_ID


def completed(before: Transaction, *, now_ms: int, fresh_producer_id: int | None = None) -> Transaction:
    """Every partition knows the outcome."""
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
        member=_back_in_pool(before),
    )


def _follow(before: Transaction, **changes: object) -> Transaction:
    after = before._replace(**{"previous_producer_id": before.producer_id, **changes})  # type: ignore[arg-type]
    assert before.state in PRECEDING[after.state], f"{after.state} does not follow {before.state}"
    return after
