"""Batch commits: many producers write, and one request commits everything that they wrote, exactly once.

An owner is for example the sink of a Spark query. Each task of a batch borrows a transactional id from the owner's
pool, under an unused producer epoch, and writes an ordinary transaction that it does not end. The commit names the
writers whose rows count. One record batch decides it: the owner's record, which says that the batch is committed, and
the records of all writers, each prepared to commit or to abort. From then on they end like any transaction and return
to the pool.
"""

from collections.abc import Mapping

from headrace.core.coordination.machine import Now, PendingProducer, Ticket
from headrace.core.transactions import steps
from headrace.core.transactions.batch_commands import (
    NUMBER_MAX,
    WRITE_ID_CHARACTERS_MAX,
    AbortBatch,
    BatchResult,
    BeginBatchWriter,
    CommitBatch,
    DescribedBatches,
    DescribedWriter,
    NamedWriter,
    argument_refusal,
)
from headrace.core.transactions.commands import EPOCH_BUMPED_FROM, ProducerIdNeeded
from headrace.core.transactions.endings import Endings
from headrace.core.transactions.names import owner_of, pooled_id, slot_of
from headrace.core.transactions.owner_records import NOTHING_COMMITTED, CommittedWriter, Owner, OwnerRecord
from headrace.core.transactions.records import IN_POOL, Borrower, LeaderBoot, Partition, TransactionMetadata
from headrace.core.transactions.settings import (
    BATCH_PARTITIONS_MAX,
    BATCH_WRITERS_MAX,
    OLDER_RUNS_MAX,
    OWNERS_MAX,
    TRANSACTIONAL_IDS_MAX,
    WRITER_TIMEOUT_MS_DEFAULT,
    WRITER_TIMEOUT_MS_MAX,
    TransactionSettings,
)
from headrace.core.transactions.tables import TransactionDecision, TransactionDecisionBuilder, TransactionTables
from headrace.model.errors import ErrorCode

_NONE = ErrorCode.NONE
_ALREADY = BatchResult(_NONE, already_committed=True)
_FENCED = BatchResult(ErrorCode.PRODUCER_FENCED, "a newer run has taken over")


class BatchCommitCoordinator:
    def __init__(self, settings: TransactionSettings, tables: TransactionTables, endings: Endings) -> None:
        self._settings = settings
        self._tables = tables
        self._endings = endings
        self.heard_ms: dict[str, float] = {}
        """The time of the last request of each owner's newest run. Not in the log: loading restarts the time of all."""

    # Writers

    def begin(self, command: BeginBatchWriter, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with a BatchResult, or with ProducerIdNeeded."""
        out = self._tables.begin_decision()
        out.respond(ticket, self._begin(command, out, now))
        return out.decision()

    def _begin(
        self, command: BeginBatchWriter, out: TransactionDecisionBuilder, now: Now
    ) -> BatchResult | ProducerIdNeeded:
        refusal = self._begin_refusal(command)
        if refusal is not None:
            return refusal
        # First of all: a new run takes over a pool that is full, and a request that waits for a fresh producer id does
        # not come back as the newest run when another run has entered meanwhile.
        self._enter(command.owner, command.run, out, now)
        if command.batch_id <= self._tables.owners[command.owner].committed_batch_id:
            return _ALREADY
        transactions, pool = self._tables.transactions, self._tables.pools.of(command.owner)
        writer = Borrower(command.run, command.batch_id, command.task_attempt_id)
        known = pool.attempts.get(writer)
        if known is not None:
            lent = pooled_id(command.owner, known)
            if self.may_have_lost_rows(transactions[lent]):
                return BatchResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the writer is being aborted: try again")
        elif len(pool.open) >= BATCH_WRITERS_MAX:
            return BatchResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{BATCH_WRITERS_MAX} writers are open already")
        else:
            outcome = self._lend(command, writer, out, now)
            if not isinstance(outcome, str):
                return outcome
            lent = outcome
        self.heard_ms[command.owner] = now.monotonic_ms
        transaction = transactions[lent]
        producer = steps.producer_of(transaction)
        return BatchResult(_NONE, transactional_id=lent, producer=producer, timeout_ms=transaction.timeout_ms)

    def _begin_refusal(self, command: BeginBatchWriter) -> BatchResult | None:
        if self._settings.server_version < EPOCH_BUMPED_FROM:
            return BatchResult(ErrorCode.UNSUPPORTED_VERSION, f"transaction.version {EPOCH_BUMPED_FROM} is needed")
        reason = argument_refusal(command.owner, command.run, command.batch_id)
        if not reason and not 0 <= command.task_attempt_id <= NUMBER_MAX:
            reason = "a task attempt id must not be negative"
        if not reason and not 0 <= command.timeout_ms <= WRITER_TIMEOUT_MS_MAX:
            reason = f"a timeout is at most {WRITER_TIMEOUT_MS_MAX} milliseconds"
        if reason:
            return BatchResult(ErrorCode.INVALID_REQUEST, reason)
        owner = self._tables.owners.get(command.owner)
        if owner is not None and command.run in owner.older_runs:
            return _FENCED
        if owner is None and len(self._tables.owners) >= OWNERS_MAX:
            return BatchResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OWNERS_MAX} owners are known already")
        return None

    def _lend(
        self, command: BeginBatchWriter, writer: Borrower, out: TransactionDecisionBuilder, now: Now
    ) -> str | BatchResult | ProducerIdNeeded:
        """Return the id that the writer may write under, or why there is none."""
        transactions = self._tables.transactions
        slot = self._tables.pools.vacant_slot(command.owner, transactions)
        lent = pooled_id(command.owner, slot)
        before = transactions.get(lent)
        if before is None and len(transactions) >= TRANSACTIONAL_IDS_MAX:
            text = f"{TRANSACTIONAL_IDS_MAX} transactional ids are known already"
            return BatchResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
        needs_fresh_id = before is None or steps.is_exhausted(before.producer_epoch)
        fresh = command.fresh_producer_id if needs_fresh_id else None
        if needs_fresh_id and fresh is None:
            return ProducerIdNeeded()
        timeout_ms = command.timeout_ms or WRITER_TIMEOUT_MS_DEFAULT
        if before is not None:
            after = steps.lent(
                before, fresh_producer_id=fresh, writer=writer, timeout_ms=timeout_ms, now_ms=now.wall_ms
            )
        else:
            assert fresh is not None
            after = steps.created_in_pool(fresh, writer, timeout_ms, now.wall_ms)
        self._tables.write(out, lent, after, now)
        self._endings.set_timeout(lent, timeout_ms, now)
        return lent

    def _enter(self, name: str, run: str, out: TransactionDecisionBuilder, now: Now) -> None:
        """Make this the owner's newest run: abort the open writers of the previous run, and fence that run."""
        before = self._tables.owners.get(name)
        if before is not None and before.run == run:
            return
        self._abort(self._open_writers(name), out, now)
        self._tables.write_owner(out, name, _entered(before, run, now.wall_ms), now)

    # Ends

    def commit(self, command: CommitBatch, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with a BatchResult."""
        out = self._tables.begin_decision()
        result = self._commit_refusal(command)
        if result is None:
            self._commit(command, out, now)
            result = BatchResult(_NONE)
        elif result.already_committed:
            self._note_repeat(command, out, now)
        out.respond(ticket, result)
        return out.decision()

    def _commit_refusal(self, command: CommitBatch) -> BatchResult | None:
        """Return None if the batch is to be committed now."""
        reason = argument_refusal(command.owner, command.run, command.batch_id)
        if not reason and len(command.writers) > BATCH_WRITERS_MAX:
            reason = f"a batch has at most {BATCH_WRITERS_MAX} writers"
        if not reason and len(command.write_id) > WRITE_ID_CHARACTERS_MAX:
            reason = f"a write id has at most {WRITE_ID_CHARACTERS_MAX} characters"
        if reason:
            return BatchResult(ErrorCode.INVALID_REQUEST, reason)
        owner = self._tables.owners.get(command.owner)
        if owner is not None and command.batch_id <= owner.committed_batch_id:
            return _ALREADY if self._is_the_same(command, owner) else _committed_with_others(command.batch_id)
        if owner is not None and command.run in owner.older_runs:
            return _FENCED
        for named in sorted(command.writers):
            refusal = self._writer_refusal(named, command)
            if refusal is not None:
                return refusal
        if owner is None and len(self._tables.owners) >= OWNERS_MAX:
            return BatchResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OWNERS_MAX} owners are known already")
        return None

    def _writer_refusal(self, named: NamedWriter, command: CommitBatch) -> BatchResult | None:
        """Return None if the rows of this writer can be committed."""
        name = named.transactional_id
        if not self._counts(named, command):
            text = f"writer {name} was aborted, has expired or is unknown: nothing was committed"
            return BatchResult(ErrorCode.TRANSACTION_ABORTABLE, text)
        transaction = self._tables.transactions[name]
        if self.may_have_lost_rows(transaction) or _lost_rows(transaction, command.synced):
            text = f"writer {name} may have lost rows, because a broker was rebooted: nothing was committed"
            return BatchResult(ErrorCode.TRANSACTION_ABORTABLE, text)
        if transaction.partitions - command.synced.keys():
            text = f"some rows of writer {name} are not synced: try again"
            return BatchResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
        return None

    def _is_the_same(self, command: CommitBatch, owner: Owner) -> bool:
        """Return whether the command repeats the commit of its batch, rather than being a second write of the batch.

        A run commits a batch once, so that a commit with other writers is a second write. A run that repeats a batch of
        an earlier run may do so with one write: whether a second one was committed cannot be known.
        """
        if command.batch_id != owner.committed_batch_id:
            return True
        if command.run != owner.committed_run:
            return not self._repeats(command, owner) or owner.repeated_write in ("", command.write_id)
        committed = {
            pooled_id(command.owner, each.slot): PendingProducer(*each[1:]) for each in owner.committed_writers
        }
        return committed == {named.transactional_id: named.producer for named in command.writers}

    def _repeats(self, command: CommitBatch, owner: Owner) -> bool:
        """Return whether the newest run repeats a batch that an earlier run has committed."""
        is_newest = command.run == owner.run and command.run != owner.committed_run
        return is_newest and command.batch_id == owner.committed_batch_id and bool(command.write_id)

    def _note_repeat(self, command: CommitBatch, out: TransactionDecisionBuilder, now: Now) -> None:
        owner = self._tables.owners[command.owner]
        if self._repeats(command, owner) and owner.repeated_write != command.write_id:
            noted = owner._replace(repeated_write=command.write_id, updated_at_ms=now.wall_ms)
            self._tables.write_owner(out, command.owner, noted, now)

    def _counts(self, named: NamedWriter, command: CommitBatch) -> bool:
        """Return whether the writer is open and belongs to this run and batch."""
        transaction = self._tables.transactions.get(named.transactional_id)
        if transaction is None or transaction.writer is None or not steps.is_open_writer(transaction):
            return False
        of_owner = owner_of(named.transactional_id) == command.owner
        is_current = named.producer == steps.producer_of(transaction)
        return of_owner and is_current and transaction.writer[:2] == (command.run, command.batch_id)

    def _commit(self, command: CommitBatch, out: TransactionDecisionBuilder, now: Now) -> None:
        name, named = command.owner, {each.transactional_id for each in command.writers}
        writers = tuple(CommittedWriter(slot_of(each.transactional_id), *each.producer) for each in command.writers)
        entered = _entered(self._tables.owners.get(name), command.run, now.wall_ms)
        committed = entered._replace(
            committed_batch_id=command.batch_id,
            committed_run=command.run,
            committed_writers=tuple(sorted(writers)),
            repeated_write="",
        )
        self._tables.write_owner(out, name, committed, now)
        self.heard_ms[name] = now.monotonic_ms
        ended = []
        for transactional_id, writer in self._open_writers(name):
            before = self._tables.transactions[transactional_id]
            if transactional_id in named and before.partitions:
                after = steps.prepared(
                    before, commit=True, client_version=self._settings.server_version, now_ms=now.wall_ms
                )
            elif transactional_id in named or writer.run != command.run or writer.batch_id <= command.batch_id:
                after = self._endings.fenced(before, now, for_good=True)
            else:
                continue  # it writes a later batch
            ended.append((transactional_id, after))
        self._endings.begin_all(ended, out, now)

    def abort(self, command: AbortBatch, ticket: Ticket, now: Now) -> TransactionDecision:
        """Complete the ticket with a BatchResult."""
        out = self._tables.begin_decision()
        out.respond(ticket, self._abort_batch(command, out, now))
        return out.decision()

    def _abort_batch(self, command: AbortBatch, out: TransactionDecisionBuilder, now: Now) -> BatchResult:
        reason = argument_refusal(command.owner, command.run, command.batch_id)
        if reason:
            return BatchResult(ErrorCode.INVALID_REQUEST, reason)
        owner = self._tables.owners.get(command.owner)
        if owner is None:
            return BatchResult(_NONE)
        if command.batch_id <= owner.committed_batch_id:
            return _ALREADY
        if command.run in owner.older_runs:
            return _FENCED
        doomed = [
            (transactional_id, writer)
            for transactional_id, writer in self._open_writers(command.owner)
            if writer.run == command.run and writer.batch_id <= command.batch_id
        ]
        self._abort(doomed, out, now)
        return BatchResult(_NONE, aborted=len(doomed))

    def _open_writers(self, name: str) -> list[tuple[str, Borrower]]:
        return [(pooled_id(name, slot), writer) for slot, writer in sorted(self._tables.pools.of(name).open.items())]

    def _abort(self, doomed: list[tuple[str, Borrower]], out: TransactionDecisionBuilder, now: Now) -> None:
        transactions = self._tables.transactions
        self._endings.begin_all(
            [(each, self._endings.fenced(transactions[each], now, for_good=True)) for each, _ in doomed], out, now
        )

    # Time

    def loaded(self, now: Now) -> None:
        """Restart the timers of all owners, because no request could reach the coordinator before it was loaded."""
        self.heard_ms = dict.fromkeys(self._tables.owners, now.monotonic_ms)

    def heard_of(self, name: str, now: Now) -> None:
        if name in self._tables.owners:
            self.heard_ms[name] = now.monotonic_ms

    def left_ms(self, name: str, transaction: TransactionMetadata, now: Now) -> float:
        """Return how much longer a writer may stay open: its timeout runs from the last request of its run."""
        return self.heard_ms[name] + transaction.timeout_ms - now.monotonic_ms

    def may_have_lost_rows(self, transaction: TransactionMetadata, leader: LeaderBoot | None = None) -> bool:
        """Return whether this broker's operating system, or that of the leader, was booted since the writer wrote to
        it: rows are synced by the commit only.
        """
        known = (self._settings.leader,) if leader is None else (self._settings.leader, leader)
        return any(steps.has_rebooted(transaction, each) for each in known)

    def has_room(self, name: str, more_partitions: int) -> bool:
        return self._tables.pools.of(name).partition_count + more_partitions <= BATCH_PARTITIONS_MAX

    def forget(self, name: str, out: TransactionDecisionBuilder) -> None:
        """Remove an owner that has expired."""
        self.heard_ms.pop(name, None)
        out.write(OwnerRecord(name, None))

    # Descriptions

    def describe(self, name: str, ticket: Ticket) -> TransactionDecision:
        """Complete the ticket with DescribedBatches."""
        out = self._tables.begin_decision()
        owner = self._tables.owners.get(name)
        if owner is None:
            out.respond(ticket, DescribedBatches(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
            return out.decision()
        writers = tuple(self._described(pooled_id(name, slot)) for slot in sorted(self._tables.pools.of(name).slots))
        out.respond(
            ticket,
            DescribedBatches(
                _NONE, owner.run, owner.committed_batch_id, owner.committed_run, owner.updated_at_ms, writers
            ),
        )
        return out.decision()

    def _described(self, transactional_id: str) -> DescribedWriter:
        found = self._tables.transactions[transactional_id]
        producer = steps.producer_of(found)
        return DescribedWriter(transactional_id, producer, found.state, *(found.writer or IN_POOL))


def _entered(before: Owner | None, run: str, now_ms: int) -> Owner:
    """Return the owner with this as its newest run."""
    if before is None:
        return Owner(run, (), NOTHING_COMMITTED, "", (), now_ms)
    if before.run == run:
        return before._replace(updated_at_ms=now_ms)
    older = (*before.older_runs, before.run)[-OLDER_RUNS_MAX:]
    return before._replace(run=run, older_runs=older, updated_at_ms=now_ms, repeated_write="")


def _lost_rows(transaction: TransactionMetadata, synced: Mapping[Partition, LeaderBoot | None]) -> bool:
    """Return whether a leader that has synced rows of the writer may lack some of them.

    It has all of them if the writer has written to it and it has not booted since.
    """
    leaders = {synced.get(partition) for partition in transaction.partitions}
    return any(leader is not None and leader not in transaction.boots for leader in leaders)


def _committed_with_others(batch_id: int) -> BatchResult:
    text = f"this run has committed batch {batch_id} with other writers: use a separate owner for each write"
    return BatchResult(ErrorCode.INVALID_TXN_STATE, text)
