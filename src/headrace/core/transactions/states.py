"""The states of a transactional id and what may follow each, as a table."""

from collections.abc import Mapping
from enum import StrEnum


class TransactionState(StrEnum):
    """With the names that clients and tools know."""

    EMPTY = "Empty"
    """A producer is known, it has not begun a transaction yet."""
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    """The transaction is committed; not every partition knows it yet."""
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    """Every partition has its marker."""
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """The id is being forgotten; nothing is in this state for longer than a decision."""


_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_PREPARE_COMMIT, _PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
_COMPLETE_COMMIT, _COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

STATE_NUMBERS: Mapping[TransactionState, int] = {
    state: number
    for number, state in enumerate(
        (_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT, TransactionState.DEAD)
    )
}
"""As they are written to the log."""

NUMBERED_STATES: Mapping[int, TransactionState] = {number: state for state, number in STATE_NUMBERS.items()}

AT_REST = frozenset({_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT})
"""No transaction is open."""

ENDING = frozenset({_PREPARE_COMMIT, _PREPARE_ABORT})
"""The outcome is decided, markers are on their way."""

OPEN = frozenset({_EMPTY, _ONGOING})
"""Where a producer that was given the id may write."""

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
"""For every state, those it may follow."""
