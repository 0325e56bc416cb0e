"""Deadlines of the transaction coordinator, each named by its kind and its transactional id."""

from enum import IntEnum
from typing import NamedTuple

from headrace.core.coordination.deadlines import Deadlines


class TransactionDeadlineKind(IntEnum):
    TIMEOUT = 0
    """The timeout of a transaction."""
    EXPIRY = 1
    """The next search for expired ids."""
    COMPLETION = 2
    """The end of a transaction, for requests that begin the next one."""
    UPTIME = 3
    """The next checkpoint of the uptime."""


class TransactionDeadline(NamedTuple):
    """The name of a deadline."""

    kind: TransactionDeadlineKind
    transactional_id: str = ""


TransactionDeadlines = Deadlines[TransactionDeadline]
