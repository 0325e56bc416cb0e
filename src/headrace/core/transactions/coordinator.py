"""The transaction coordinator of one partition of `__transaction_state`: its transactional ids and their commands."""

from collections.abc import Iterable
from enum import IntEnum
from math import ceil
from typing import NamedTuple

from headrace.core.coordination.deadlines import Deadlines
from headrace.core.coordination.machine import Decision, Now, Outcome, Producer, Ticket
from headrace.core.coordination.uptime import UPTIME_CHECKPOINT_MS, Uptime
from headrace.core.transactions import steps
from headrace.core.transactions.batch_commits import BatchCommits, Effects
from headrace.core.transactions.commands import (
    EPOCH_BUMPED_FROM,
    AddPartitions,
    DescribedTransaction,
    Ending,
    EndTransaction,
    InitProducer,
    ListedTransaction,
    ProducerIdNeeded,
    ProducerResult,
)
from headrace.core.transactions.ends import bumping_end_error, plain_end_error
from headrace.core.transactions.names import owner_of
from headrace.core.transactions.owner_records import OwnerRecord
from headrace.core.transactions.records import (
    IN_POOL,
    CoordinatorRecord,
    Partition,
    Transaction,
    TransactionRecord,
    UptimeRecord,
)
from headrace.core.transactions.settings import (
    COMPLETION_WAIT_MS_MAX,
    DEADLINES_PER_TURN,
    ENDINGS_PER_RESULT,
    IDS_PER_SLICE,
    PARTITIONS_PER_TRANSACTION_MAX,
    SLICE_PAUSE_MS,
    TRANSACTIONAL_IDS_MAX,
    WAITING_PER_ID_MAX,
    TransactionSettings,
)
from headrace.core.transactions.states import AT_REST, ENDING, TransactionState
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_NONE = ErrorCode.NONE
_ONGOING = TransactionState.ONGOING

TransactionDecision = Decision[CoordinatorRecord]


class Wait(IntEnum):
    TIMEOUT = 0
    """The timeout of a transaction."""
    EXPIRY = 1
    """The next search for expired ids."""
    COMPLETION = 2
    """The end of a transaction, for requests that begin the next one."""
    UPTIME = 3
    """The next checkpoint of the uptime."""


class Waiting(NamedTuple):
    wait: Wait
    transactional_id: str = ""


class TransactionCoordinator:
    def __init__(self, settings: TransactionSettings) -> None:
        self.settings = settings
        self.transactions: dict[str, Transaction] = {}
        self._deadlines: Deadlines[Waiting] = Deadlines()
        self._endings: dict[str, bool] = {}
        """Ids whose endings were not handed out yet, in the order of decision, with whether they timed out."""
        self._marking: Ticket | None = None
        """The ticket of the sender of markers, while there are none to send."""
        self._waiting_adds: dict[str, list[tuple[AddPartitions, Ticket]]] = {}
        """Requests that wait for the end of a transaction, to begin the next one."""
        self._unexamined: list[str] = []
        """Names that the current search for expired ids has not examined yet."""
        self.uptime = Uptime()
        self.batch_commits = BatchCommits(self)

    # Records

    def apply(self, record: CoordinatorRecord) -> None:
        if isinstance(record, UptimeRecord):
            self.uptime.replayed(record.uptime_ms)
            return
        if isinstance(record, OwnerRecord):
            self.batch_commits.apply(record)
            return
        transactional_id, after = record
        before = self.transactions.get(transactional_id)
        self.batch_commits.pools.follow(transactional_id, before, after)
        if after is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = after
            self.uptime.replayed(after.updated_uptime_ms)

    def write(self, out: Effects, transactional_id: str, transaction: Transaction, now: Now) -> None:
        """Write the transaction's record with the current uptime."""
        uptime_ms = self.uptime.at(now)
        before = self.transactions.get(transactional_id)
        began = transaction.state is _ONGOING and (before is None or before.state is not _ONGOING)
        started_ms = uptime_ms if began else transaction.started_uptime_ms
        stamped = transaction._replace(updated_uptime_ms=uptime_ms, started_uptime_ms=started_ms)
        out.write(TransactionRecord(transactional_id, stamped))

    # Time

    def loaded(self, now: Now) -> None:
        self.uptime.loaded(now)
        self.batch_commits.loaded(now)
        for transactional_id, transaction in self.transactions.items():
            if steps.is_open_writer(transaction):
                wait_ms = 0 if self.batch_commits.may_have_lost_rows(transaction) else transaction.timeout_ms
                self.await_end(transactional_id, wait_ms, now)
            elif transaction.state is _ONGOING:
                spent_ms = min(self.uptime.at(now) - transaction.started_uptime_ms, transaction.timeout_ms)
                self.await_end(transactional_id, transaction.timeout_ms - spent_ms, now)
            elif transaction.state in ENDING:
                self._endings[transactional_id] = False
        self._deadlines.set(Waiting(Wait.EXPIRY), now.monotonic_ms + self.settings.expiry_interval_ms)
        self._deadlines.set(Waiting(Wait.UPTIME), now.monotonic_ms + UPTIME_CHECKPOINT_MS)

    def await_end(self, transactional_id: str, wait_ms: float, now: Now) -> None:
        interval_ms = self.settings.abort_interval_ms
        due_ms = ceil((now.monotonic_ms + wait_ms) / interval_ms) * interval_ms
        self._deadlines.set(Waiting(Wait.TIMEOUT, transactional_id), due_ms)

    def next_deadline_ms(self) -> float | None:
        return self._deadlines.next_ms()

    def expire(self, now: Now) -> TransactionDecision:
        out = self.outcome()
        for waiting in self._deadlines.take_due(now.monotonic_ms, DEADLINES_PER_TURN):
            if waiting.wait is Wait.EXPIRY:
                self._expire_ids(out, now)
                continue
            if waiting.wait is Wait.COMPLETION:
                self._retry_waiting_adds(waiting.transactional_id, out, now)
                continue
            if waiting.wait is Wait.UPTIME:
                self._checkpoint_uptime(out, now)
                continue
            self._time_out(waiting.transactional_id, out, now)
        return out.decision()

    def _time_out(self, transactional_id: str, out: Effects, now: Now) -> None:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return
        if steps.is_open_writer(transaction):
            left_ms = self.batch_commits.left_ms(owner_of(transactional_id), transaction, now)
            if left_ms > 0 and not self.batch_commits.may_have_lost_rows(transaction):
                self.await_end(transactional_id, left_ms, now)
                return
        elif transaction.state is not _ONGOING:
            return
        is_writer = transaction.writer is not None
        self._fence(transactional_id, transaction, out, now, for_good=is_writer, timed_out=True)

    def _expire_ids(self, out: Effects, now: Now) -> None:
        """Examine a slice of the ids; a later turn continues, and the next search begins after the interval."""
        if not self._unexamined:
            self._unexamined = [*reversed(self.batch_commits.owners), *reversed(self.transactions)]
        for _ in range(min(IDS_PER_SLICE, len(self._unexamined))):
            name = self._unexamined.pop()
            if name in self.batch_commits.owners and self.batch_commits.has_expired(name, now):
                out.write(OwnerRecord(name, None))
            transactional_id = name
            transaction = self.transactions.get(transactional_id)
            if transaction is None or transaction.state not in AT_REST or steps.is_open_writer(transaction):
                continue
            if self.is_unused_for_long(transaction.updated_at_ms, transaction.updated_uptime_ms, now):
                out.write(TransactionRecord(transactional_id, None))
        wait_ms = SLICE_PAUSE_MS if self._unexamined else self.settings.expiry_interval_ms
        self._deadlines.set(Waiting(Wait.EXPIRY), now.monotonic_ms + wait_ms)

    def is_unused_for_long(self, updated_at_ms: int, updated_uptime_ms: int, now: Now) -> bool:
        """Return whether an id has expired by the wall clock and by the uptime, which has no jumps."""
        limit_ms = self.settings.id_expiration_ms
        return now.wall_ms - updated_at_ms >= limit_ms and self.uptime.at(now) - updated_uptime_ms >= limit_ms

    def _checkpoint_uptime(self, out: Effects, now: Now) -> None:
        if self.transactions or self.batch_commits.owners:
            out.write(UptimeRecord(self.uptime.at(now)))
        self._deadlines.set(Waiting(Wait.UPTIME), now.monotonic_ms + UPTIME_CHECKPOINT_MS)

    # Producers

    def init_producer(self, command: InitProducer, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with a ProducerResult, or with ProducerIdNeeded."""
        out = self.outcome()
        out.answer(ticket, self._init_producer(command, out, now))
        return out.decision()

    def _init_producer(self, command: InitProducer, out: Effects, now: Now) -> ProducerResult | ProducerIdNeeded:
        if not 0 < command.timeout_ms <= self.settings.timeout_ms_max:
            return ProducerResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        before = self.transactions.get(command.transactional_id)
        if before is None:
            return self._create(command, out, now)
        if command.expected is not None and not _may_resume(before, command.expected):
            return ProducerResult(ErrorCode.PRODUCER_FENCED)
        if before.state in ENDING:
            return ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS)
        if before.state is _ONGOING:
            if command.expected is not None and command.expected.producer_epoch != before.producer_epoch:
                return ProducerResult(
                    ErrorCode.PRODUCER_FENCED
                )  # a zombie must not abort the transaction of its successor
            # No producer gets this producer epoch: the retry gets the next one, when the transaction has ended.
            self._fence(command.transactional_id, before, out, now, for_good=command.expected is None)
            return ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS)
        return self._reinitialize(before, command, out, now)

    def _create(self, command: InitProducer, out: Effects, now: Now) -> ProducerResult | ProducerIdNeeded:
        if len(self.transactions) >= TRANSACTIONAL_IDS_MAX:
            return ProducerResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if command.fresh_producer_id is None:
            return ProducerIdNeeded()
        transaction = steps.created(command.fresh_producer_id, command.timeout_ms, now.wall_ms)
        self.write(out, command.transactional_id, transaction, now)
        return ProducerResult(_NONE, _producer_of(transaction))

    def _reinitialize(
        self, before: Transaction, command: InitProducer, out: Effects, now: Now
    ) -> ProducerResult | ProducerIdNeeded:
        expected_epoch = None if command.expected is None else command.expected.producer_epoch
        asked_before = expected_epoch is not None and expected_epoch == before.last_producer_epoch
        if expected_epoch is not None and expected_epoch != before.producer_epoch:
            if not asked_before:
                return ProducerResult(ErrorCode.PRODUCER_FENCED)
            producer, last_epoch = _producer_of(before), before.last_producer_epoch
        else:
            last_epoch = NO_PRODUCER_EPOCH if expected_epoch is None else before.producer_epoch
            if not steps.is_exhausted(before.producer_epoch):
                producer = Producer(before.producer_id, before.producer_epoch + 1)
            elif command.fresh_producer_id is None:
                return ProducerIdNeeded()
            else:
                producer = Producer(command.fresh_producer_id, 0)
        transaction = steps.reinitialized(
            before, producer=producer, last_epoch=last_epoch, timeout_ms=command.timeout_ms, now_ms=now.wall_ms
        )
        self.write(out, command.transactional_id, transaction, now)
        return ProducerResult(_NONE, producer)

    # Partitions

    def add_partitions(self, command: AddPartitions, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with one ErrorCode for all partitions."""
        out = self.outcome()
        error = self._add_partitions(command, out, now)
        if error is not ErrorCode.CONCURRENT_TRANSACTIONS or not self._awaits_completion(command, ticket, now):
            out.answer(ticket, error)
        return out.decision()

    def _awaits_completion(self, command: AddPartitions, ticket: Ticket, now: Now) -> bool:
        waiting = self._waiting_adds.setdefault(command.transactional_id, []) if command.waits else []
        if not command.waits or len(waiting) >= WAITING_PER_ID_MAX:
            return False
        if not waiting:
            until_ms = now.monotonic_ms + COMPLETION_WAIT_MS_MAX
            self._deadlines.set(Waiting(Wait.COMPLETION, command.transactional_id), until_ms)
        waiting.append((command, ticket))
        return True

    def _retry_waiting_adds(self, transactional_id: str, out: Effects, now: Now) -> None:
        """Repeat the requests that waited: the transaction has ended, or the wait is over."""
        self._deadlines.drop(Waiting(Wait.COMPLETION, transactional_id))
        for command, ticket in self._waiting_adds.pop(transactional_id, ()):
            out.answer(ticket, self._add_partitions(command, out, now))

    def _add_partitions(self, command: AddPartitions, out: Effects, now: Now) -> ErrorCode:
        before = self.transactions.get(command.transactional_id)
        error = _refusal(before, command.producer)
        if before is None or error is not _NONE:
            return error
        if before.writer is not None and self.batch_commits.may_have_lost_rows(before):
            return ErrorCode.PRODUCER_FENCED
        if before.writer is not None:
            self.batch_commits.heard_of(owner_of(command.transactional_id), now)
        if before.state is _ONGOING and command.partitions <= before.partitions:
            return _NONE
        after = steps.with_partitions(
            before, command.partitions, client_version=command.client_version, now_ms=now.wall_ms
        )
        more = len(after.partitions) - len(before.partitions)
        is_full = before.writer is not None and not self.batch_commits.has_room(
            owner_of(command.transactional_id), more
        )
        if is_full or len(after.partitions) > PARTITIONS_PER_TRANSACTION_MAX:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka's error for a record that is too large
        if before.state is not _ONGOING:
            self.await_end(command.transactional_id, after.timeout_ms, now)
        self.write(out, command.transactional_id, after, now)
        return _NONE

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[Partition], ticket: Ticket
    ) -> TransactionDecision:
        """Complete the ticket with an ErrorCode for each partition: NONE if it is part of the transaction."""
        out = self.outcome()
        transaction = self.transactions.get(transactional_id)
        error = _refusal(transaction, producer)
        if transaction is None or error is not _NONE:
            out.answer(ticket, dict.fromkeys(partitions, error))
        else:
            known, missing = transaction.partitions, ErrorCode.TRANSACTION_ABORTABLE
            out.answer(ticket, {partition: _NONE if partition in known else missing for partition in partitions})
        return out.decision()

    # Ends

    def end(self, command: EndTransaction, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with a ProducerResult, or with ProducerIdNeeded."""
        out = self.outcome()
        out.answer(ticket, self._end(command, out, now))
        return out.decision()

    def _end(self, command: EndTransaction, out: Effects, now: Now) -> ProducerResult | ProducerIdNeeded:
        before = self.transactions.get(command.transactional_id)
        if before is None:
            return ProducerResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if command.commit and steps.is_open_writer(before):
            return ProducerResult(
                ErrorCode.INVALID_TXN_STATE
            )  # the owner commits it, with the other writers of the batch
        if command.client_version < EPOCH_BUMPED_FROM:
            error = plain_end_error(before, command)
            if error is _NONE and before.state is _ONGOING:
                self._prepare(before, command, out, now)
            return ProducerResult(error)
        return self._end_and_bump(before, command, out, now)

    def _end_and_bump(
        self, before: Transaction, command: EndTransaction, out: Effects, now: Now
    ) -> ProducerResult | ProducerIdNeeded:
        error, is_retry = bumping_end_error(before, command)
        if error is not _NONE:
            return ProducerResult(error)
        if is_retry:
            return ProducerResult(_NONE, _producer_of(before))
        if not steps.is_exhausted(before.producer_epoch):
            return ProducerResult(_NONE, _producer_of(self._prepare(before, command, out, now)))
        if command.fresh_producer_id is None:
            return ProducerIdNeeded()
        self._prepare(before, command, out, now, next_producer_id=command.fresh_producer_id)
        return ProducerResult(_NONE, Producer(command.fresh_producer_id, 0))

    def _prepare(
        self,
        before: Transaction,
        command: EndTransaction,
        out: Effects,
        now: Now,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> Transaction:
        after = steps.prepared(
            before,
            commit=command.commit,
            client_version=command.client_version,
            now_ms=now.wall_ms,
            next_producer_id=next_producer_id,
        )
        self._begin_end(command.transactional_id, after, out, now)
        return after

    def _fence(
        self,
        transactional_id: str,
        before: Transaction,
        out: Effects,
        now: Now,
        *,
        for_good: bool,
        timed_out: bool = False,
    ) -> None:
        version = self.settings.server_version
        after = steps.fenced(before, server_version=version, now_ms=now.wall_ms, for_good=for_good)
        self._begin_end(transactional_id, after, out, now, timed_out=timed_out)

    def _begin_end(
        self, transactional_id: str, after: Transaction, out: Effects, now: Now, *, timed_out: bool = False
    ) -> None:
        self._enlist_end(transactional_id, after, out, now, timed_out=timed_out)
        self._hand_out_if_awaited(out)

    def begin_ends(self, ended: Iterable[tuple[str, Transaction]], out: Effects, now: Now) -> None:
        """Begin the ends of many transactions at once."""
        for transactional_id, after in ended:
            self._enlist_end(transactional_id, after, out, now)
        self._hand_out_if_awaited(out)

    def _enlist_end(
        self, transactional_id: str, after: Transaction, out: Effects, now: Now, *, timed_out: bool = False
    ) -> None:
        self._deadlines.drop(Waiting(Wait.TIMEOUT, transactional_id))
        self.write(out, transactional_id, after, now)
        self._endings[transactional_id] = timed_out

    def _hand_out_if_awaited(self, out: Effects) -> None:
        if self._marking is not None and self._endings:
            ticket, self._marking = self._marking, None
            self._hand_out_endings(ticket, out)

    # Markers

    def next_endings(self, ticket: Ticket, *, again: bool) -> TransactionDecision:
        """Complete the ticket with a list of at least one Ending, as soon as there is one.

        Only one ticket may wait. `again` returns all endings that are not completed, including earlier ones.
        """
        out = self.outcome()
        if again:
            ending = [key for key, transaction in self.transactions.items() if transaction.state in ENDING]
            self._endings = dict.fromkeys(ending, False)
        if self._endings:
            self._marking = None
            self._hand_out_endings(ticket, out)
        else:
            self._marking = ticket
        return out.decision()

    def _hand_out_endings(self, ticket: Ticket, out: Effects) -> None:
        taken = list(self._endings.items())[:ENDINGS_PER_RESULT]
        for transactional_id, _ in taken:
            del self._endings[transactional_id]
        out.answer(ticket, [self._ending(*each) for each in taken])

    def _ending(self, transactional_id: str, timed_out: bool) -> Ending:
        transaction = self.transactions[transactional_id]
        assert transaction.state in ENDING
        return Ending(
            transactional_id,
            _producer_of(transaction),
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.partitions,
            transaction.client_version,
            transaction.updated_at_ms,
            timed_out,
        )

    def complete(self, ending: Ending, fresh_producer_id: int | None, ticket: Ticket, now: Now) -> TransactionDecision:
        """Note that every partition has its marker. Complete the ticket with an ErrorCode, or with ProducerIdNeeded."""
        out = self.outcome()
        transactional_id = ending.transactional_id
        before = self.transactions.get(transactional_id)
        if before is None or not _is_the_end_of(before, ending):
            out.answer(ticket, ErrorCode.INVALID_TXN_STATE)  # a repetition: it is completed already
        elif steps.needs_fresh_id(before) and fresh_producer_id is None:
            out.answer(ticket, ProducerIdNeeded())
        else:
            fresh = fresh_producer_id if steps.needs_fresh_id(before) else None
            self._endings.pop(transactional_id, None)
            completed = steps.completed(before, now_ms=now.wall_ms, fresh_producer_id=fresh)
            self.write(out, transactional_id, completed, now)
            out.answer(ticket, _NONE)
            if transactional_id in self._waiting_adds:
                self._retry_waiting_adds(transactional_id, out, now)
        return out.decision()

    # Descriptions

    def describe(self, transactional_id: str, ticket: Ticket) -> TransactionDecision:
        """Complete the ticket with a DescribedTransaction."""
        out = self.outcome()
        found = self.transactions.get(transactional_id)
        if found is None:
            out.answer(ticket, DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id))
        else:
            out.answer(
                ticket,
                DescribedTransaction(
                    _NONE,
                    transactional_id,
                    found.state,
                    found.timeout_ms,
                    found.started_at_ms,
                    _producer_of(found),
                    tuple(sorted(found.partitions)),
                ),
            )
        return out.decision()

    def list_transactions(self, transactional_ids: Iterable[str], ticket: Ticket) -> TransactionDecision:
        """Complete the ticket with a ListedTransaction for each of these ids that exists."""
        out = self.outcome()
        listed = []
        for transactional_id in transactional_ids:
            found = self.transactions.get(transactional_id)
            if found is not None:
                listed.append(ListedTransaction(transactional_id, found.producer_id, found.state, found.started_at_ms))
        out.answer(ticket, listed)
        return out.decision()

    def outcome(self) -> Effects:
        return Outcome(self.apply)


def _producer_of(transaction: Transaction) -> Producer:
    return Producer(transaction.producer_id, transaction.producer_epoch)


def _is_the_end_of(transaction: Transaction, ending: Ending) -> bool:
    is_same = (_producer_of(transaction), transaction.updated_at_ms) == (ending.producer, ending.decided_at_ms)
    return is_same and transaction.state in ENDING


def _may_resume(before: Transaction, expected: Producer) -> bool:
    """Return whether the producer has the current id, or the exhausted one before it: then the response was lost."""
    if expected.producer_id == before.producer_id or steps.awaits(before, expected):
        return True
    return expected.producer_id == before.previous_producer_id and steps.is_exhausted(expected.producer_epoch)


def _refusal(transaction: Transaction | None, producer: Producer) -> ErrorCode:
    """Return NONE if the producer may write under its transactional id now."""
    if transaction is not None and steps.awaits(transaction, producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if transaction is None or transaction.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.writer == IN_POOL and transaction.state in AT_REST:
        return ErrorCode.PRODUCER_FENCED  # its batch has ended: the pool lends the id to another task
    return ErrorCode.CONCURRENT_TRANSACTIONS if transaction.state in ENDING else _NONE
