"""Epochs: many producers write, one request commits what they wrote, and never twice.

An owner is a sink of a query, say. Every task of a batch borrows a transactional id of the owner's pool, under an
epoch that nobody had before, and writes an ordinary transaction that it does not end. The commit names the members
whose work counts. One batch of records decides it: the owner's, which says that this batch is in, and those of all
members, each prepared to commit or to abort. From there on they end like any transaction, and return to the pool.
"""

from typing import TYPE_CHECKING

from headrace.core.coordination.machine import Decision, Now, Outcome, Producer, Ticket
from headrace.core.transactions import steps
from headrace.core.transactions.commands import EPOCH_BUMPED_FROM, ProducerIdNeeded
from headrace.core.transactions.epoch_commands import (
    NUMBER_MAX,
    WRITE_ID_CHARACTERS_MAX,
    AbortEpoch,
    BeginMember,
    CommitEpoch,
    DescribedEpochs,
    DescribedMember,
    EpochResult,
    NamedMember,
    argument_refusal,
)
from headrace.core.transactions.names import member_id, owner_of, slot_of
from headrace.core.transactions.owner_records import NOTHING_COMMITTED, CommittedMember, Owner, OwnerRecord
from headrace.core.transactions.pools import Pools
from headrace.core.transactions.records import IN_POOL, CoordinatorRecord, Member, Transaction
from headrace.core.transactions.settings import (
    EPOCH_MEMBERS_MAX,
    EPOCH_PARTITIONS_MAX,
    MEMBER_TIMEOUT_MS_DEFAULT,
    MEMBER_TIMEOUT_MS_MAX,
    OLDER_RUNS_MAX,
    OWNERS_MAX,
    TRANSACTIONAL_IDS_MAX,
)
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.core.transactions.coordinator import TransactionCoordinator

_NONE = ErrorCode.NONE
_ALREADY = EpochResult(_NONE, already_committed=True)
_FENCED = EpochResult(ErrorCode.PRODUCER_FENCED, "a newer run has taken over")

Effects = Outcome[CoordinatorRecord]


class Epochs:
    def __init__(self, machine: "TransactionCoordinator") -> None:
        self._machine = machine
        self.owners: dict[str, Owner] = {}
        self.pools = Pools()
        self.heard_ms: dict[str, float] = {}
        """When an owner's newest run was last heard of; not from the log: a loaded machine gives everybody its time."""

    def apply(self, record: OwnerRecord) -> None:
        if record.owner is None:
            self.owners.pop(record.name, None)
            self.heard_ms.pop(record.name, None)
        else:
            self.owners[record.name] = record.owner
            self._machine.uptime.replayed(record.owner.updated_uptime_ms)

    def _write(self, out: Effects, name: str, owner: Owner, now: Now) -> None:
        """Write the owner with the uptime of this moment."""
        out.write(OwnerRecord(name, owner._replace(updated_uptime_ms=self._machine.uptime.at(now))))

    # Members

    def begin(self, command: BeginMember, ticket: Ticket, now: Now) -> Decision[CoordinatorRecord]:
        """Answered with an EpochResult, or with ProducerIdNeeded."""
        out = self._machine.outcome()
        out.answer(ticket, self._begin(command, out, now))
        return out.decision()

    def _begin(self, command: BeginMember, out: Effects, now: Now) -> EpochResult | ProducerIdNeeded:
        refusal = self._begin_refusal(command)
        if refusal is not None:
            return refusal
        # First of all: a new run takes over a pool that is full, and a request that waits for a fresh producer id does
        # not come back as the newest run when another run has entered meanwhile.
        self._enter(command.owner, command.run, out, now)
        if command.batch_id <= self.owners[command.owner].committed_batch_id:
            return _ALREADY
        machine, pool = self._machine, self.pools.of(command.owner)
        member = Member(command.run, command.batch_id, command.task_attempt_id)
        known = pool.attempts.get(member)
        if known is not None:
            lent = member_id(command.owner, known)
            if self.may_have_lost_rows(machine.transactions[lent]):
                return EpochResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the member is being aborted: try again")
        elif len(pool.open) >= EPOCH_MEMBERS_MAX:
            return EpochResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{EPOCH_MEMBERS_MAX} members are open already")
        else:
            outcome = self._lend(command, member, out, now)
            if not isinstance(outcome, str):
                return outcome
            lent = outcome
        self.heard_ms[command.owner] = now.monotonic_ms
        transaction = machine.transactions[lent]
        producer = Producer(transaction.producer_id, transaction.producer_epoch)
        return EpochResult(_NONE, transactional_id=lent, producer=producer, timeout_ms=transaction.timeout_ms)

    def _begin_refusal(self, command: BeginMember) -> EpochResult | None:
        if self._machine.settings.server_version < EPOCH_BUMPED_FROM:
            return EpochResult(ErrorCode.UNSUPPORTED_VERSION, f"transaction.version {EPOCH_BUMPED_FROM} is needed")
        reason = argument_refusal(command.owner, command.run, command.batch_id)
        if not reason and not 0 <= command.task_attempt_id <= NUMBER_MAX:
            reason = "a task attempt id is not negative"
        if not reason and not 0 <= command.timeout_ms <= MEMBER_TIMEOUT_MS_MAX:
            reason = f"a timeout is at most {MEMBER_TIMEOUT_MS_MAX} milliseconds"
        if reason:
            return EpochResult(ErrorCode.INVALID_REQUEST, reason)
        owner = self.owners.get(command.owner)
        if owner is not None and command.run in owner.older_runs:
            return _FENCED
        if owner is None and len(self.owners) >= OWNERS_MAX:
            return EpochResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OWNERS_MAX} owners are known already")
        return None

    def _lend(
        self, command: BeginMember, member: Member, out: Effects, now: Now
    ) -> str | EpochResult | ProducerIdNeeded:
        """Return the id that the member may write under, or why there is none."""
        machine = self._machine
        slot = self.pools.vacant_slot(command.owner, machine.transactions)
        lent = member_id(command.owner, slot)
        before = machine.transactions.get(lent)
        if before is None and len(machine.transactions) >= TRANSACTIONAL_IDS_MAX:
            text = f"{TRANSACTIONAL_IDS_MAX} transactional ids are known already"
            return EpochResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
        needs_fresh_id = before is None or steps.is_exhausted(before.producer_epoch)
        fresh = command.fresh_producer_id if needs_fresh_id else None
        if needs_fresh_id and fresh is None:
            return ProducerIdNeeded()
        timeout_ms = command.timeout_ms or MEMBER_TIMEOUT_MS_DEFAULT
        if before is not None:
            after = steps.lent(
                before, fresh_producer_id=fresh, member=member, timeout_ms=timeout_ms, now_ms=now.wall_ms
            )
        else:
            assert fresh is not None
            after = steps.created_in_pool(fresh, member, timeout_ms, now.wall_ms)
        machine.write(out, lent, after._replace(boot_id=machine.settings.boot_id), now)
        machine.await_end(lent, timeout_ms, now)
        return lent

    def _enter(self, name: str, run: str, out: Effects, now: Now) -> None:
        """The first that is heard of a run: whatever an older one has open is aborted, and it can write no more."""
        before = self.owners.get(name)
        if before is not None and before.run == run:
            return
        self._abort(self._open_members(name), out, now)
        self._write(out, name, _entered(before, run, now.wall_ms), now)

    # Ends

    def commit(self, command: CommitEpoch, ticket: Ticket, now: Now) -> Decision[CoordinatorRecord]:
        """Answered with an EpochResult."""
        out = self._machine.outcome()
        result = self._commit_refusal(command)
        if result is None:
            self._commit(command, out, now)
            result = EpochResult(_NONE)
        elif result.already_committed:
            self._note_repeat(command, out, now)
        out.answer(ticket, result)
        return out.decision()

    def _commit_refusal(self, command: CommitEpoch) -> EpochResult | None:
        """None if it is to be committed now."""
        reason = argument_refusal(command.owner, command.run, command.batch_id)
        if not reason and len(command.members) > EPOCH_MEMBERS_MAX:
            reason = f"an epoch has at most {EPOCH_MEMBERS_MAX} members"
        if not reason and len(command.write_id) > WRITE_ID_CHARACTERS_MAX:
            reason = f"the id of a write has at most {WRITE_ID_CHARACTERS_MAX} characters"
        if reason:
            return EpochResult(ErrorCode.INVALID_REQUEST, reason)
        owner = self.owners.get(command.owner)
        if owner is not None and command.batch_id <= owner.committed_batch_id:
            return _ALREADY if self._is_the_same(command, owner) else _others_committed(command.batch_id)
        if owner is not None and command.run in owner.older_runs:
            return _FENCED
        for name in sorted(named.transactional_id for named in command.members if not self._counts(named, command)):
            text = f"member {name} was aborted, has expired or is not known: nothing was committed"
            return EpochResult(ErrorCode.TRANSACTION_ABORTABLE, text)
        if owner is None and len(self.owners) >= OWNERS_MAX:
            return EpochResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OWNERS_MAX} owners are known already")
        return None

    def _is_the_same(self, command: CommitEpoch, owner: Owner) -> bool:
        """One run commits a batch once; who comes with other members for it has written it twice.

        A run that finds the batch committed by an earlier one has it once too: a second write of it is another one,
        of which nobody knows whether it is in.
        """
        if command.batch_id != owner.committed_batch_id:
            return True
        if command.run != owner.committed_run:
            return not self._repeats(command, owner) or owner.repeated_write in ("", command.write_id)
        committed = {member_id(command.owner, each.slot): Producer(*each[1:]) for each in owner.committed_members}
        return committed == {named.transactional_id: named.producer for named in command.members}

    def _repeats(self, command: CommitEpoch, owner: Owner) -> bool:
        """Whether it is a write of the newest run, for a batch that an earlier one has committed."""
        is_newest = command.run == owner.run and command.run != owner.committed_run
        return is_newest and command.batch_id == owner.committed_batch_id and bool(command.write_id)

    def _note_repeat(self, command: CommitEpoch, out: Effects, now: Now) -> None:
        owner = self.owners[command.owner]
        if self._repeats(command, owner) and owner.repeated_write != command.write_id:
            noted = owner._replace(repeated_write=command.write_id, updated_at_ms=now.wall_ms)
            self._write(out, command.owner, noted, now)

    def _counts(self, named: NamedMember, command: CommitEpoch) -> bool:
        """It is open, and belongs to this run and batch."""
        transaction = self._machine.transactions.get(named.transactional_id)
        if transaction is None or transaction.member is None or not steps.is_open_member(transaction):
            return False
        of_owner = owner_of(named.transactional_id) == command.owner
        is_current = named.producer == Producer(transaction.producer_id, transaction.producer_epoch)
        if self.may_have_lost_rows(transaction):
            return False
        return of_owner and is_current and transaction.member[:2] == (command.run, command.batch_id)

    def _commit(self, command: CommitEpoch, out: Effects, now: Now) -> None:
        name, named = command.owner, {each.transactional_id for each in command.members}
        members = tuple(CommittedMember(slot_of(each.transactional_id), *each.producer) for each in command.members)
        entered = _entered(self.owners.get(name), command.run, now.wall_ms)
        committed = entered._replace(
            committed_batch_id=command.batch_id,
            committed_run=command.run,
            committed_members=tuple(sorted(members)),
            repeated_write="",
        )
        self._write(out, name, committed, now)
        self.heard_ms[name] = now.monotonic_ms
        ended = []
        for transactional_id, member in self._open_members(name):
            before = self._machine.transactions[transactional_id]
            if transactional_id in named and before.partitions:
                after = steps.prepared(
                    before, commit=True, client_version=self._machine.settings.server_version, now_ms=now.wall_ms
                )
            elif transactional_id in named or member.run != command.run or member.batch_id <= command.batch_id:
                after = self._fenced(before, now)
            else:
                continue  # of a later batch
            ended.append((transactional_id, after))
        self._machine.begin_ends(ended, out, now)

    def abort(self, command: AbortEpoch, ticket: Ticket, now: Now) -> Decision[CoordinatorRecord]:
        """Answered with an EpochResult."""
        out = self._machine.outcome()
        out.answer(ticket, self._abort_epoch(command, out, now))
        return out.decision()

    def _abort_epoch(self, command: AbortEpoch, out: Effects, now: Now) -> EpochResult:
        reason = argument_refusal(command.owner, command.run, command.batch_id)
        if reason:
            return EpochResult(ErrorCode.INVALID_REQUEST, reason)
        owner = self.owners.get(command.owner)
        if owner is None:
            return EpochResult(_NONE)
        if command.batch_id <= owner.committed_batch_id:
            return _ALREADY
        if command.run in owner.older_runs:
            return _FENCED
        doomed = [
            (transactional_id, member)
            for transactional_id, member in self._open_members(command.owner)
            if member.run == command.run and member.batch_id <= command.batch_id
        ]
        self._abort(doomed, out, now)
        return EpochResult(_NONE, aborted=len(doomed))

    def _open_members(self, name: str) -> list[tuple[str, Member]]:
        return [(member_id(name, slot), member) for slot, member in sorted(self.pools.of(name).open.items())]

    def _abort(self, doomed: list[tuple[str, Member]], out: Effects, now: Now) -> None:
        transactions = self._machine.transactions
        self._machine.begin_ends([(each, self._fenced(transactions[each], now)) for each, _ in doomed], out, now)

    def _fenced(self, before: Transaction, now: Now) -> Transaction:
        version = self._machine.settings.server_version
        return steps.fenced(before, server_version=version, now_ms=now.wall_ms, for_good=True)

    # Time

    def loaded(self, now: Now) -> None:
        """Nobody could be heard of meanwhile."""
        self.heard_ms = dict.fromkeys(self.owners, now.monotonic_ms)

    def heard_of(self, name: str, now: Now) -> None:
        if name in self.owners:
            self.heard_ms[name] = now.monotonic_ms

    def left_ms(self, name: str, transaction: Transaction, now: Now) -> float:
        """How much longer a member may wait: its time counts from the last that was heard of its run."""
        return self.heard_ms[name] + transaction.timeout_ms - now.monotonic_ms

    def may_have_lost_rows(self, transaction: Transaction) -> bool:
        """Whether the system was started again since the member was lent its id: rows are synced by the commit only."""
        return transaction.boot_id != self._machine.settings.boot_id

    def has_room(self, name: str, more_partitions: int) -> bool:
        return self.pools.of(name).partition_count + more_partitions <= EPOCH_PARTITIONS_MAX

    def is_forgotten(self, name: str, now: Now) -> bool:
        """Nothing was heard of the owner for so long that its ids are gone as well."""
        owner = self.owners[name]
        is_unused = self._machine.is_unused_for_long(owner.updated_at_ms, owner.updated_uptime_ms, now)
        return is_unused and not self.pools.of(name).slots

    # Looking

    def describe(self, name: str, ticket: Ticket) -> Decision[CoordinatorRecord]:
        """Answered with DescribedEpochs."""
        out = self._machine.outcome()
        owner = self.owners.get(name)
        if owner is None:
            out.answer(ticket, DescribedEpochs(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
            return out.decision()
        members = tuple(self._described(member_id(name, slot)) for slot in sorted(self.pools.of(name).slots))
        out.answer(
            ticket,
            DescribedEpochs(
                _NONE, owner.run, owner.committed_batch_id, owner.committed_run, owner.updated_at_ms, members
            ),
        )
        return out.decision()

    def _described(self, transactional_id: str) -> DescribedMember:
        found = self._machine.transactions[transactional_id]
        producer = Producer(found.producer_id, found.producer_epoch)
        return DescribedMember(transactional_id, producer, found.state, *(found.member or IN_POOL))


def _entered(before: Owner | None, run: str, now_ms: int) -> Owner:
    """The owner with this as its newest run."""
    if before is None:
        return Owner(run, (), NOTHING_COMMITTED, "", (), now_ms)
    if before.run == run:
        return before._replace(updated_at_ms=now_ms)
    older = (*before.older_runs, before.run)[-OLDER_RUNS_MAX:]
    return before._replace(run=run, older_runs=older, updated_at_ms=now_ms, repeated_write="")


def _others_committed(batch_id: int) -> EpochResult:
    text = f"this run has committed batch {batch_id} with other members: give each write an owner of its own"
    return EpochResult(ErrorCode.INVALID_TXN_STATE, text)
