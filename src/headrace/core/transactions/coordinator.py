"""The transaction coordinator of one partition of `__transaction_state`: its transactional ids and their commands."""

from collections.abc import Callable, Iterable

from headrace.core.coordination.deadlines import Deadlines
from headrace.core.coordination.machine import Now, PendingProducer, Ticket
from headrace.core.coordination.uptime import UPTIME_CHECKPOINT_MS
from headrace.core.transactions import steps
from headrace.core.transactions.batch_commits import BatchCommitCoordinator
from headrace.core.transactions.commands import (
    EPOCH_BUMPED_FROM,
    AddPartitions,
    DescribedTransaction,
    Ending,
    EndTransaction,
    InitProducer,
    ProducerIdNeeded,
    ProducerResult,
    TransactionListing,
    VerifyPartitions,
)
from headrace.core.transactions.deadlines import (
    TransactionDeadline,
    TransactionDeadlineKind,
    TransactionDeadlines,
)
from headrace.core.transactions.endings import Endings
from headrace.core.transactions.ends import bumping_end_error, plain_end_error
from headrace.core.transactions.names import owner_of
from headrace.core.transactions.records import (
    IN_POOL,
    CoordinatorRecord,
    TransactionMetadata,
    TransactionRecord,
    UptimeRecord,
)
from headrace.core.transactions.settings import (
    COMPLETION_WAIT_MS_MAX,
    DEADLINES_PER_TURN,
    IDS_PER_SLICE,
    PARTITIONS_PER_TRANSACTION_MAX,
    SLICE_PAUSE_MS,
    TRANSACTIONAL_IDS_MAX,
    WAITING_PER_ID_MAX,
    TransactionSettings,
)
from headrace.core.transactions.states import AT_REST, ENDING, TransactionState
from headrace.core.transactions.tables import TransactionDecision, TransactionDecisionBuilder, TransactionTables
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_NONE = ErrorCode.NONE
_ONGOING = TransactionState.ONGOING
_EXPIRY = TransactionDeadline(TransactionDeadlineKind.EXPIRY)
_UPTIME = TransactionDeadline(TransactionDeadlineKind.UPTIME)


class TransactionCoordinator:
    def __init__(self, settings: TransactionSettings, metadata_offset: Callable[[], int] = lambda: 0) -> None:
        """`metadata_offset` returns the offset of the metadata by which partitions are found now."""
        self.settings = settings
        self._deadlines: TransactionDeadlines = Deadlines()
        self.tables = TransactionTables(metadata_offset)
        self.endings = Endings(settings, self.tables, self._deadlines)
        self.batch_commits = BatchCommitCoordinator(settings, self.tables, self.endings)
        self._waiting_adds: dict[str, list[tuple[AddPartitions, Ticket]]] = {}
        """Requests that wait for the end of a transaction, to begin the next one."""
        self._unexamined: list[str] = []
        """Names that the current search for expired ids has not examined yet."""

    # Records

    def apply(self, record: CoordinatorRecord) -> None:
        self.tables.apply(record)

    # Time

    def loaded(self, now: Now) -> None:
        self.tables.uptime.loaded(now)
        self.batch_commits.loaded(now)
        for transactional_id, transaction in self.tables.transactions.items():
            if steps.is_open_writer(transaction):
                wait_ms = 0 if self.batch_commits.may_have_lost_rows(transaction) else transaction.timeout_ms
                self.endings.set_timeout(transactional_id, wait_ms, now)
            elif transaction.state is _ONGOING:
                spent_ms = min(self.tables.uptime.at(now) - transaction.started_uptime_ms, transaction.timeout_ms)
                self.endings.set_timeout(transactional_id, transaction.timeout_ms - spent_ms, now)
        self.endings.collect()
        self._deadlines.set(_EXPIRY, now.monotonic_ms + self.settings.expiry_interval_ms)
        self._deadlines.set(_UPTIME, now.monotonic_ms + UPTIME_CHECKPOINT_MS)

    def next_deadline_ms(self) -> float | None:
        return self._deadlines.next_ms()

    def expire(self, now: Now) -> TransactionDecision:
        out = self.tables.begin_decision()
        for deadline in self._deadlines.take_due(now.monotonic_ms, DEADLINES_PER_TURN):
            if deadline.kind is TransactionDeadlineKind.EXPIRY:
                self._expire_ids(out, now)
                continue
            if deadline.kind is TransactionDeadlineKind.COMPLETION:
                self._retry_waiting_adds(deadline.transactional_id, out, now)
                continue
            if deadline.kind is TransactionDeadlineKind.UPTIME:
                self._checkpoint_uptime(out, now)
                continue
            self._time_out(deadline.transactional_id, out, now)
        return out.decision()

    def _time_out(self, transactional_id: str, out: TransactionDecisionBuilder, now: Now) -> None:
        transaction = self.tables.transactions.get(transactional_id)
        if transaction is None:
            return
        if steps.is_open_writer(transaction):
            left_ms = self.batch_commits.left_ms(owner_of(transactional_id), transaction, now)
            if left_ms > 0 and not self.batch_commits.may_have_lost_rows(transaction):
                self.endings.set_timeout(transactional_id, left_ms, now)
                return
        elif transaction.state is not _ONGOING:
            return
        is_writer = transaction.writer is not None
        self.endings.fence(transactional_id, transaction, out, now, for_good=is_writer, timed_out=True)

    def _expire_ids(self, out: TransactionDecisionBuilder, now: Now) -> None:
        """Examine a slice of the ids; a later turn continues, and the next search begins after the interval."""
        if not self._unexamined:
            self._unexamined = [*reversed(self.tables.owners), *reversed(self.tables.transactions)]
        for _ in range(min(IDS_PER_SLICE, len(self._unexamined))):
            name = self._unexamined.pop()
            if name in self.tables.owners and self._owner_has_expired(name, now):
                self.batch_commits.forget(name, out)
            transactional_id = name
            transaction = self.tables.transactions.get(transactional_id)
            if transaction is None or transaction.state not in AT_REST or steps.is_open_writer(transaction):
                continue
            if self._is_unused_for_long(transaction.updated_at_ms, transaction.updated_uptime_ms, now):
                out.write(TransactionRecord(transactional_id, None))
        wait_ms = SLICE_PAUSE_MS if self._unexamined else self.settings.expiry_interval_ms
        self._deadlines.set(_EXPIRY, now.monotonic_ms + wait_ms)

    def _owner_has_expired(self, name: str, now: Now) -> bool:
        """Return whether the owner is unused and has no ids left."""
        owner = self.tables.owners[name]
        is_unused = self._is_unused_for_long(owner.updated_at_ms, owner.updated_uptime_ms, now)
        return is_unused and not self.tables.pools.of(name).slots

    def _is_unused_for_long(self, updated_at_ms: int, updated_uptime_ms: int, now: Now) -> bool:
        """Return whether an id has expired by the wall clock and by the uptime, which has no jumps."""
        limit_ms = self.settings.id_expiration_ms
        return now.wall_ms - updated_at_ms >= limit_ms and self.tables.uptime.at(now) - updated_uptime_ms >= limit_ms

    def _checkpoint_uptime(self, out: TransactionDecisionBuilder, now: Now) -> None:
        if self.tables.transactions or self.tables.owners:
            out.write(UptimeRecord(self.tables.uptime.at(now)))
        self._deadlines.set(_UPTIME, now.monotonic_ms + UPTIME_CHECKPOINT_MS)

    # Producers

    def init_producer(self, command: InitProducer, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with a ProducerResult, or with ProducerIdNeeded."""
        out = self.tables.begin_decision()
        out.respond(ticket, self._init_producer(command, out, now))
        return out.decision()

    def _init_producer(
        self, command: InitProducer, out: TransactionDecisionBuilder, now: Now
    ) -> ProducerResult | ProducerIdNeeded:
        if not 0 < command.timeout_ms <= self.settings.timeout_ms_max:
            return ProducerResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        before = self.tables.transactions.get(command.transactional_id)
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
            self.endings.fence(command.transactional_id, before, out, now, for_good=command.expected is None)
            return ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS)
        return self._reinitialize(before, command, out, now)

    def _create(
        self, command: InitProducer, out: TransactionDecisionBuilder, now: Now
    ) -> ProducerResult | ProducerIdNeeded:
        if len(self.tables.transactions) >= TRANSACTIONAL_IDS_MAX:
            return ProducerResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if command.fresh_producer_id is None:
            return ProducerIdNeeded()
        transaction = steps.created(command.fresh_producer_id, command.timeout_ms, now.wall_ms)
        self.tables.write(out, command.transactional_id, transaction, now)
        return ProducerResult(_NONE, steps.producer_of(transaction))

    def _reinitialize(
        self, before: TransactionMetadata, command: InitProducer, out: TransactionDecisionBuilder, now: Now
    ) -> ProducerResult | ProducerIdNeeded:
        expected_epoch = None if command.expected is None else command.expected.producer_epoch
        asked_before = expected_epoch is not None and expected_epoch == before.last_producer_epoch
        if expected_epoch is not None and expected_epoch != before.producer_epoch:
            if not asked_before:
                return ProducerResult(ErrorCode.PRODUCER_FENCED)
            producer, last_epoch = steps.producer_of(before), before.last_producer_epoch
        else:
            last_epoch = NO_PRODUCER_EPOCH if expected_epoch is None else before.producer_epoch
            if not steps.is_exhausted(before.producer_epoch):
                producer = PendingProducer(before.producer_id, before.producer_epoch + 1)
            elif command.fresh_producer_id is None:
                return ProducerIdNeeded()
            else:
                producer = PendingProducer(command.fresh_producer_id, 0)
        transaction = steps.reinitialized(
            before, producer=producer, last_epoch=last_epoch, timeout_ms=command.timeout_ms, now_ms=now.wall_ms
        )
        self.tables.write(out, command.transactional_id, transaction, now)
        return ProducerResult(_NONE, producer)

    # Partitions

    def add_partitions(self, command: AddPartitions, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with one ErrorCode for all partitions."""
        out = self.tables.begin_decision()
        error = self._add_partitions(command, out, now)
        if error is not ErrorCode.CONCURRENT_TRANSACTIONS or not self._awaits_completion(command, ticket, now):
            out.respond(ticket, error)
        return out.decision()

    def _awaits_completion(self, command: AddPartitions, ticket: Ticket, now: Now) -> bool:
        waiting = self._waiting_adds.setdefault(command.transactional_id, []) if command.waits else []
        if not command.waits or len(waiting) >= WAITING_PER_ID_MAX:
            return False
        if not waiting:
            until_ms = now.monotonic_ms + COMPLETION_WAIT_MS_MAX
            self._deadlines.set(_completion(command.transactional_id), until_ms)
        waiting.append((command, ticket))
        return True

    def _retry_waiting_adds(self, transactional_id: str, out: TransactionDecisionBuilder, now: Now) -> None:
        """Repeat the requests that waited: the transaction has ended, or the wait is over."""
        self._deadlines.drop(_completion(transactional_id))
        for command, ticket in self._waiting_adds.pop(transactional_id, ()):
            out.respond(ticket, self._add_partitions(command, out, now))

    def _add_partitions(self, command: AddPartitions, out: TransactionDecisionBuilder, now: Now) -> ErrorCode:
        before = self.tables.transactions.get(command.transactional_id)
        error = _refusal(before, command.producer)
        if before is None or error is not _NONE:
            return error
        if before.writer is not None:
            if self.batch_commits.may_have_lost_rows(before, command.leader):
                return ErrorCode.PRODUCER_FENCED
            self.batch_commits.heard_of(owner_of(command.transactional_id), now)
        is_known = command.partitions <= before.partitions and steps.with_boot(before, command.leader) == before.boots
        if before.state is _ONGOING and is_known:
            return _NONE
        after = steps.with_partitions(
            before,
            command.partitions,
            leader=command.leader,
            client_version=command.client_version,
            now_ms=now.wall_ms,
        )
        more = len(after.partitions) - len(before.partitions)
        is_full = before.writer is not None and not self.batch_commits.has_room(
            owner_of(command.transactional_id), more
        )
        if is_full or len(after.partitions) > PARTITIONS_PER_TRANSACTION_MAX:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka's error for a record that is too large
        if before.state is not _ONGOING:
            self.endings.set_timeout(command.transactional_id, after.timeout_ms, now)
        self.tables.write(out, command.transactional_id, after, now)
        return _NONE

    def verify_partitions(self, command: VerifyPartitions, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with an ErrorCode for each partition: NONE if it is part of the transaction."""
        out = self.tables.begin_decision()
        transaction = self.tables.transactions.get(command.transactional_id)
        error = _refusal(transaction, command.producer)
        if transaction is not None and transaction.writer is not None and error is _NONE:
            error = self._note_leader(command, transaction, out, now)
        if transaction is None or error is not _NONE:
            out.respond(ticket, dict.fromkeys(command.partitions, error))
        else:
            known, missing = transaction.partitions, ErrorCode.TRANSACTION_ABORTABLE
            errors = {partition: _NONE if partition in known else missing for partition in command.partitions}
            out.respond(ticket, errors)
        return out.decision()

    def _note_leader(
        self, command: VerifyPartitions, transaction: TransactionMetadata, out: TransactionDecisionBuilder, now: Now
    ) -> ErrorCode:
        """Note the leader to which a writer is about to write, unless it may have lost rows of the writer."""
        if self.batch_commits.may_have_lost_rows(transaction, command.leader):
            return ErrorCode.PRODUCER_FENCED
        boots = steps.with_boot(transaction, command.leader)
        if boots != transaction.boots and not transaction.partitions.isdisjoint(command.partitions):
            self.tables.write(out, command.transactional_id, transaction._replace(boots=boots), now)
        return _NONE

    # Ends

    def end(self, command: EndTransaction, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with a ProducerResult, or with ProducerIdNeeded."""
        out = self.tables.begin_decision()
        out.respond(ticket, self._end(command, out, now))
        return out.decision()

    def _end(
        self, command: EndTransaction, out: TransactionDecisionBuilder, now: Now
    ) -> ProducerResult | ProducerIdNeeded:
        before = self.tables.transactions.get(command.transactional_id)
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
        self, before: TransactionMetadata, command: EndTransaction, out: TransactionDecisionBuilder, now: Now
    ) -> ProducerResult | ProducerIdNeeded:
        error, is_retry = bumping_end_error(before, command)
        if error is not _NONE:
            return ProducerResult(error)
        if is_retry:
            return ProducerResult(_NONE, steps.producer_of(before))
        if not steps.is_exhausted(before.producer_epoch):
            return ProducerResult(_NONE, steps.producer_of(self._prepare(before, command, out, now)))
        if command.fresh_producer_id is None:
            return ProducerIdNeeded()
        self._prepare(before, command, out, now, next_producer_id=command.fresh_producer_id)
        return ProducerResult(_NONE, PendingProducer(command.fresh_producer_id, 0))

    def _prepare(
        self,
        before: TransactionMetadata,
        command: EndTransaction,
        out: TransactionDecisionBuilder,
        now: Now,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> TransactionMetadata:
        after = steps.prepared(
            before,
            commit=command.commit,
            client_version=command.client_version,
            now_ms=now.wall_ms,
            next_producer_id=next_producer_id,
        )
        self.endings.begin(command.transactional_id, after, out, now)
        return after

    # Markers

    def complete(self, ending: Ending, fresh_producer_id: int | None, ticket: Ticket, now: Now) -> TransactionDecision:
        """Note that every partition has its marker. Complete the ticket with an ErrorCode, or with ProducerIdNeeded."""
        out = self.tables.begin_decision()
        transactional_id = ending.transactional_id
        before = self.tables.transactions.get(transactional_id)
        if before is None or not _is_the_end_of(before, ending):
            out.respond(ticket, ErrorCode.INVALID_TXN_STATE)  # a repetition: it is completed already
        elif steps.needs_fresh_id(before) and fresh_producer_id is None:
            out.respond(ticket, ProducerIdNeeded())
        else:
            fresh = fresh_producer_id if steps.needs_fresh_id(before) else None
            self.endings.completed(transactional_id)
            completed = steps.completed(before, now_ms=now.wall_ms, fresh_producer_id=fresh)
            self.tables.write(out, transactional_id, completed, now)
            out.respond(ticket, _NONE)
            if transactional_id in self._waiting_adds:
                self._retry_waiting_adds(transactional_id, out, now)
        return out.decision()

    # Descriptions

    def describe(self, transactional_id: str, ticket: Ticket) -> TransactionDecision:
        """Complete the ticket with a DescribedTransaction."""
        out = self.tables.begin_decision()
        found = self.tables.transactions.get(transactional_id)
        if found is None:
            out.respond(ticket, DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id))
        else:
            out.respond(
                ticket,
                DescribedTransaction(
                    _NONE,
                    transactional_id,
                    found.state,
                    found.timeout_ms,
                    found.started_at_ms,
                    steps.producer_of(found),
                    tuple(sorted(found.partitions)),
                ),
            )
        return out.decision()

    def list_transactions(self, transactional_ids: Iterable[str], ticket: Ticket) -> TransactionDecision:
        """Complete the ticket with a ListedTransaction for each of these ids that exists."""
        out = self.tables.begin_decision()
        listed = []
        for transactional_id in transactional_ids:
            found = self.tables.transactions.get(transactional_id)
            if found is not None:
                listed.append(TransactionListing(transactional_id, found.producer_id, found.state, found.started_at_ms))
        out.respond(ticket, listed)
        return out.decision()


def _completion(transactional_id: str) -> TransactionDeadline:
    return TransactionDeadline(TransactionDeadlineKind.COMPLETION, transactional_id)


def _is_the_end_of(transaction: TransactionMetadata, ending: Ending) -> bool:
    is_same = (steps.producer_of(transaction), transaction.updated_at_ms) == (ending.producer, ending.decided_at_ms)
    return is_same and transaction.state in ENDING


def _may_resume(before: TransactionMetadata, expected: PendingProducer) -> bool:
    """Return whether the producer has the current id, or the exhausted one before it: then the response was lost."""
    if expected.producer_id == before.producer_id or steps.awaits(before, expected):
        return True
    return expected.producer_id == before.previous_producer_id and steps.is_exhausted(expected.producer_epoch)


def _refusal(transaction: TransactionMetadata | None, producer: PendingProducer) -> ErrorCode:
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
