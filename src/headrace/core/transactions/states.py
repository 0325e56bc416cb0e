"""The states of a transactional id and their transitions, as a table."""

from collections.abc import Mapping
from enum import StrEnum


class TransactionState(StrEnum):
    """The states, with Kafka's names for them."""

    EMPTY = "Empty"
    """A producer has the id and has not begun a transaction."""
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    """The transaction is committed; some partitions do not have their marker yet."""
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    """Every partition has its marker."""
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """The id is being removed; no id stays in this state after a decision."""


_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_PREPARE_COMMIT, _PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
_COMPLETE_COMMIT, _COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

STATE_NUMBERS: Mapping[TransactionState, int] = {
    state: number
    for number, state in enumerate(
        (_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT, TransactionState.DEAD)
    )
}
"""The numbers that the log stores."""

NUMBERED_STATES: Mapping[int, TransactionState] = {number: state for state, number in STATE_NUMBERS.items()}

AT_REST = frozenset({_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT})
"""No transaction is open."""

ENDING = frozenset({_PREPARE_COMMIT, _PREPARE_ABORT})
"""The outcome is decided and the markers are being written."""

OPEN = frozenset({_EMPTY, _ONGOING})
"""States in which the producer that has the id may write."""

PRECEDING: Mapping[TransactionState, frozenset[TransactionState]] = {
    _EMPTY: AT_REST,
    _ONGOING: AT_REST | {_ONGOING},
    _PREPARE_COMMIT: frozenset({_ONGOING}),
    # From rest too: with transaction.version 2 a producer may abort before its first write has arrived.
    _PREPARE_ABORT: AT_REST | {_ONGOING},
    _COMPLETE_COMMIT: frozenset({_PREPARE_COMMIT}),
    _COMPLETE_ABORT: frozenset({_PREPARE_ABORT}),
    TransactionState.DEAD: AT_REST,
}
"""For every state, the states that may precede it."""
