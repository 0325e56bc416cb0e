"""Whether a producer may end its transaction, and whether it asks for the second time.

Before transaction.version 2 the state alone tells a retry from a mistake. Since then the epoch does (KIP-890): a retry
still has the one from before the bump.
"""

from headrace.core.coordination.machine import Producer
from headrace.core.transactions.commands import EPOCH_BUMPED_FROM, EndTransaction
from headrace.core.transactions.records import Transaction
from headrace.core.transactions.states import AT_REST, ENDING, TransactionState
from headrace.core.transactions.steps import EXHAUSTED_FROM, awaits
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE
_ONGOING = TransactionState.ONGOING


def plain_end_error(before: Transaction, command: EndTransaction) -> ErrorCode:
    """NONE if it may be ended now, or was ended so before."""
    if before.producer_id != command.producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if before.producer_epoch != command.producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if before.state is _ONGOING:
        return _NONE
    return _NONE if _agrees(before, command) and before.state in AT_REST else _undecided(before, command)


def _undecided(before: Transaction, command: EndTransaction) -> ErrorCode:
    if before.state in ENDING and _agrees(before, command):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _agrees(before: Transaction, command: EndTransaction) -> bool:
    """The transaction ended, or is about to, as the command wants."""
    if command.commit:
        return before.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
    return before.state in (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)


def _was_bumped_from(before: Transaction, producer: Producer) -> bool:
    """Whether the last end took the epoch of this producer: an epoch one below may be that of a fenced one, too."""
    is_bumped = before.client_version >= EPOCH_BUMPED_FROM
    return is_bumped and before.last_producer_epoch == producer.producer_epoch


def bumping_end_error(before: Transaction, command: EndTransaction) -> tuple[ErrorCode, bool]:
    """The error, and whether it is a retry of the end that was decided last.

    With the current epoch a producer may abort what it has not begun yet, or believes to have begun.
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
        # Its producer has begun the next one, which has written nothing yet: Kafka calls that fenced, by a race.
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
