"""Checks of EndTxn: whether the producer may end its transaction, and whether the request is a retry.

Before transaction.version 2 the state alone distinguishes a retry from a mistake. Since then the producer epoch does
(KIP-890): a retry carries the one before the bump.
"""

from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import EPOCH_BUMPED_FROM, EndTransaction
from headrace.core.transactions.records import TransactionMetadata
from headrace.core.transactions.states import AT_REST, ENDING, TransactionState
from headrace.core.transactions.steps import EXHAUSTED_FROM, awaits
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE
_ONGOING = TransactionState.ONGOING


def plain_end_error(before: TransactionMetadata, command: EndTransaction) -> ErrorCode:
    """Return NONE if the transaction may end now, or has ended with the same outcome."""
    if before.producer_id != command.producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if before.producer_epoch != command.producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if before.state is _ONGOING:
        return _NONE
    return _NONE if _agrees(before, command) and before.state in AT_REST else _undecided(before, command)


def _undecided(before: TransactionMetadata, command: EndTransaction) -> ErrorCode:
    if before.state in ENDING and _agrees(before, command):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _agrees(before: TransactionMetadata, command: EndTransaction) -> bool:
    """Return whether the transaction has ended, or is ending, with the outcome of the command."""
    if command.commit:
        return before.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
    return before.state in (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)


def _was_bumped_from(before: TransactionMetadata, producer: PendingProducer) -> bool:
    """Return whether the last end bumped this producer's epoch; a fenced producer may be one epoch below, too."""
    is_bumped = before.client_version >= EPOCH_BUMPED_FROM
    return is_bumped and before.last_producer_epoch == producer.producer_epoch


def bumping_end_error(before: TransactionMetadata, command: EndTransaction) -> tuple[ErrorCode, bool]:
    """Return the error, and whether the request is a retry of the last end.

    With the current producer epoch, a producer may abort a transaction whose first write has not arrived.
    """
    producer = command.producer
    overflowed = (
        before.previous_producer_id == producer.producer_id
        and producer.producer_epoch == EXHAUSTED_FROM
        and before.producer_epoch == 0
    )
    if awaits(before, producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS, False
    is_current = before.producer_epoch == producer.producer_epoch
    is_retry = (before.producer_epoch == producer.producer_epoch + 1 or overflowed) and _was_bumped_from(
        before, producer
    )
    if before.producer_id != producer.producer_id and not overflowed:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING, False
    if before.state in ENDING and is_current:
        # The producer has begun its next transaction and written nothing yet. By a race, Kafka calls it fenced.
        return ErrorCode.CONCURRENT_TRANSACTIONS, False
    if before.state in ENDING:
        valid = is_retry and not overflowed
    elif before.state in (_ONGOING, TransactionState.EMPTY):
        valid = is_current
    else:
        valid = is_current or is_retry
    if not valid:
        return ErrorCode.PRODUCER_FENCED, False
    if before.state is _ONGOING:
        return _NONE, False
    if before.state in ENDING:
        return _undecided(before, command), False
    if is_current:
        return (ErrorCode.INVALID_TXN_STATE if command.commit else _NONE), False
    return (_NONE if _agrees(before, command) else ErrorCode.INVALID_TXN_STATE), True
