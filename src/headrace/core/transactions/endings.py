"""Transactions that end: the outcome is written, and the sender of markers gets each ending once it asks for it."""

from collections.abc import Iterable
from math import ceil

from headrace.core.coordination.machine import Now, Ticket
from headrace.core.transactions import steps
from headrace.core.transactions.commands import Ending
from headrace.core.transactions.deadlines import (
    TransactionDeadline,
    TransactionDeadlineKind,
    TransactionDeadlines,
)
from headrace.core.transactions.records import TransactionMetadata
from headrace.core.transactions.settings import ENDINGS_PER_RESULT, TransactionSettings
from headrace.core.transactions.states import ENDING, TransactionState
from headrace.core.transactions.tables import TransactionDecision, TransactionDecisionBuilder, TransactionTables


class Endings:
    def __init__(
        self, settings: TransactionSettings, tables: TransactionTables, deadlines: TransactionDeadlines
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._deadlines = deadlines
        self._undelivered: dict[str, bool] = {}
        """Ids whose endings were not handed out yet, in the order of decision, with whether they timed out."""
        self._sender: Ticket | None = None
        """The ticket of the sender of markers, while there are none to send."""

    def set_timeout(self, transactional_id: str, wait_ms: float, now: Now) -> None:
        """Abort the transaction after `wait_ms`, rounded up to the interval in which timeouts are checked."""
        interval_ms = self._settings.abort_interval_ms
        due_ms = ceil((now.monotonic_ms + wait_ms) / interval_ms) * interval_ms
        self._deadlines.set(_timeout(transactional_id), due_ms)

    def begin(
        self,
        transactional_id: str,
        after: TransactionMetadata,
        out: TransactionDecisionBuilder,
        now: Now,
        *,
        timed_out: bool = False,
    ) -> None:
        """Begin the end of a transaction: `after` is the transaction with its outcome."""
        self._add(transactional_id, after, out, now, timed_out=timed_out)
        self._deliver_if_awaited(out)

    def begin_all(
        self, ended: Iterable[tuple[str, TransactionMetadata]], out: TransactionDecisionBuilder, now: Now
    ) -> None:
        """Begin the ends of many transactions at once."""
        for transactional_id, after in ended:
            self._add(transactional_id, after, out, now, timed_out=False)
        self._deliver_if_awaited(out)

    def fence(
        self,
        transactional_id: str,
        before: TransactionMetadata,
        out: TransactionDecisionBuilder,
        now: Now,
        *,
        for_good: bool,
        timed_out: bool = False,
    ) -> None:
        """Abort a transaction and fence its producer."""
        after = self.fenced(before, now, for_good=for_good)
        self.begin(transactional_id, after, out, now, timed_out=timed_out)

    def fenced(self, before: TransactionMetadata, now: Now, *, for_good: bool) -> TransactionMetadata:
        version = self._settings.server_version
        return steps.fenced(before, server_version=version, now_ms=now.wall_ms, for_good=for_good)

    def _add(
        self,
        transactional_id: str,
        after: TransactionMetadata,
        out: TransactionDecisionBuilder,
        now: Now,
        *,
        timed_out: bool,
    ) -> None:
        self._deadlines.drop(_timeout(transactional_id))
        self._tables.write(out, transactional_id, after, now)
        self._undelivered[transactional_id] = timed_out

    def completed(self, transactional_id: str) -> None:
        """Forget an ending whose markers are all written."""
        self._undelivered.pop(transactional_id, None)

    # The sender of markers

    def next(self, ticket: Ticket, *, again: bool) -> TransactionDecision:
        """Complete the ticket with a list of at least one Ending, as soon as there is one.

        Only one ticket may wait. `again` returns all endings that are not completed, including earlier ones.
        """
        out = self._tables.begin_decision()
        if again:
            self.collect()
        if self._undelivered:
            self._sender = None
            self._deliver(ticket, out)
        else:
            self._sender = ticket
        return out.decision()

    def collect(self) -> None:
        """Hand out all endings that are not completed, as a coordinator that was loaded must."""
        ending = [key for key, transaction in self._tables.transactions.items() if transaction.state in ENDING]
        self._undelivered = dict.fromkeys(ending, False)

    def _deliver_if_awaited(self, out: TransactionDecisionBuilder) -> None:
        if self._sender is not None and self._undelivered:
            ticket, self._sender = self._sender, None
            self._deliver(ticket, out)

    def _deliver(self, ticket: Ticket, out: TransactionDecisionBuilder) -> None:
        taken = list(self._undelivered.items())[:ENDINGS_PER_RESULT]
        for transactional_id, _ in taken:
            del self._undelivered[transactional_id]
        out.respond(ticket, [self._ending(*each) for each in taken])

    def _ending(self, transactional_id: str, timed_out: bool) -> Ending:
        transaction = self._tables.transactions[transactional_id]
        assert transaction.state in ENDING
        return Ending(
            transactional_id,
            steps.producer_of(transaction),
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.partitions,
            transaction.client_version,
            transaction.updated_at_ms,
            timed_out,
            transaction.metadata_offset,
        )


def _timeout(transactional_id: str) -> TransactionDeadline:
    return TransactionDeadline(TransactionDeadlineKind.TIMEOUT, transactional_id)
