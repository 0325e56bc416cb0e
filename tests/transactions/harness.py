"""A transaction machine with a log, a clock and producers that remember the coordinator's answers."""

from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    ProducerIdNeeded,
    ProducerResult,
    VerifyPartitions,
)
from headrace.core.transactions.coordinator import TransactionCoordinator
from headrace.core.transactions.records import TransactionMetadata, TransactionRecord, TransactionRecords, UptimeRecord
from headrace.core.transactions.settings import TransactionSettings
from headrace.core.transactions.states import AT_REST, ENDING, PRECEDING
from headrace.model.errors import ErrorCode
from tests.core.manual_clock import PassingTime, Ticket

ID = "t"
FORMAT = TransactionRecords()


class KnownProducer:
    """A client's knowledge of itself, and of what it was before its last successful request."""

    def __init__(self, name):
        self.name = name
        self.producer = PendingProducer(-1, -1)
        self.before = PendingProducer(-1, -1)


class Harness(PassingTime):
    def __init__(self, *, version=2, **settings):
        super().__init__()
        self.version = version
        """The transaction.version that clients and coordinator go by."""
        self.settings = TransactionSettings(server_version=version, **settings)
        self.log = []
        self.producers = {}
        self.ids_given = 0
        self.begun = 0
        """Number of transactions so far."""
        self.endings = []
        """Handed out, and not completed yet."""
        self.machine = TransactionCoordinator(self.settings)
        self._begin()

    def _begin(self):
        self.machine.loaded(self.now())
        self.watch()

    def producer(self, name):
        return self.producers.setdefault(name, KnownProducer(name))

    # Steps

    def run(self, decide):
        """Decide, write, check that the log tells the same, and hand out the answers as (ticket, response)."""
        known: dict[str, TransactionMetadata | None] = dict(self.machine.tables.transactions)
        decision = decide(self.machine, self.now())
        for record in decision.records:
            if isinstance(record, TransactionRecord):
                before = known.get(record.transactional_id)
                check_follows(before, record.transaction)
                at_rest = before is None or before.state in AT_REST
                self.begun += at_rest and record.transaction is not None and record.transaction.state not in AT_REST
                known[record.transactional_id] = record.transaction
            key, value = FORMAT.encode(record)
            assert FORMAT.decode(key, value) == record
            if isinstance(record, UptimeRecord):  # as compaction leaves it: there is one every minute
                self.log = [each for each in self.log if each[0] != key]
            self.log.append((key, value))
        for machine in (self.replayed(), self.replayed(compacted=True)):
            assert machine.tables.transactions == self.machine.tables.transactions
            assert machine.tables.owners == self.machine.tables.owners
            assert machine.tables.pools.by_owner == self.machine.tables.pools.by_owner
        for ticket, response in decision.responses:
            if ticket.kind == "markers":
                self.endings += response
            else:
                self._learn(ticket, response)
            self.outcomes.append((ticket, response))
        if any(ticket.kind == "markers" for ticket, _ in decision.responses):
            self.watch()
        return decision

    def replayed(self, *, compacted=False):
        """A machine from the log; from the last record of every key alone, without tombstones, if it is compacted."""
        records = self.log
        if compacted:
            last = {key: place for place, (key, _) in enumerate(self.log)}
            records = [each for place, each in enumerate(self.log) if last[each[0]] == place and each[1] is not None]
        machine = TransactionCoordinator(self.settings)
        for key, value in records:
            machine.apply(FORMAT.decode(key, value))
        return machine

    def watch(self):
        self.run(lambda machine, _now: machine.endings.next(Ticket("", "markers"), again=False))

    def restart(self):
        """The coordinator is gone; another one reads the log."""
        self.endings.clear()
        self.machine = self.replayed()
        self._begin()

    def _learn(self, ticket, response):
        if isinstance(response, ProducerResult) and response.error is ErrorCode.NONE:
            known = self.producer(ticket.name)
            if response.producer.producer_id >= 0 and response.producer != known.producer:
                known.before, known.producer = known.producer, response.producer

    # Requests

    def _asked(self, name, kind, decide):
        """The answer; a fresh producer id is given where one is needed."""
        ticket = Ticket(name, kind)
        decision = self.run(lambda machine, now: decide(machine, None, ticket, now))
        if answer_to(ticket, decision) == ProducerIdNeeded():
            assert not any(isinstance(record, TransactionRecord) and kind != "begin" for record in decision.records)
            self.outcomes.pop()
            self.ids_given += 1
            decision = self.run(lambda machine, now: decide(machine, self.ids_given, ticket, now))
        return answer_to(ticket, decision)

    def init(self, name, *, transactional_id=ID, timeout_ms=60_000, resume=False, expected=None):
        expected = self.producer(name).producer if resume else expected

        def decide(machine, fresh, ticket, now):
            command = InitProducer(
                transactional_id=transactional_id, timeout_ms=timeout_ms, expected=expected, fresh_producer_id=fresh
            )
            return machine.init_producer(command, ticket, now)

        return self._asked(name, "init", decide)

    def add(self, name, *partitions, transactional_id=ID, version=None, producer=None, waits=False, leader=None):
        """The error; None if it waits."""
        command = AddPartitions(
            transactional_id=transactional_id,
            producer=producer or self.producer(name).producer,
            partitions=frozenset(partitions or {("a", 0)}),
            client_version=self.version if version is None else version,
            waits=waits,
            leader=leader,
        )
        ticket = Ticket(name, "add")
        decision = self.run(lambda machine, now: machine.add_partitions(command, ticket, now))
        return answer_to(ticket, decision)

    def check(self, name, *partitions, transactional_id=ID, producer=None, leader=None):
        command = VerifyPartitions(
            transactional_id=transactional_id,
            producer=producer or self.producer(name).producer,
            partitions=partitions,
            leader=leader,
        )
        ticket = Ticket(name, "check")
        decision = self.run(lambda machine, now: machine.verify_partitions(command, ticket, now))
        return decision.responses[0].response

    def end(self, name, *, commit=True, transactional_id=ID, version=None, producer=None):
        def decide(machine, fresh, ticket, now):
            command = EndTransaction(
                transactional_id=transactional_id,
                producer=producer or self.producer(name).producer,
                commit=commit,
                client_version=self.version if version is None else version,
                fresh_producer_id=fresh,
            )
            return machine.end(command, ticket, now)

        return self._asked(name, "commit" if commit else "abort", decide)

    def complete(self, count=None):
        """All partitions of these transactions, or of all that are ending, have their markers."""
        taken = self.endings[:count]
        del self.endings[: len(taken)]
        for ending in taken:

            def decide(machine, fresh, ticket, now, ending=ending):
                return machine.complete(ending, fresh, ticket, now)

            self._asked(ending.transactional_id, "complete", decide)

    def transact(self, name, *, commit=True, transactional_id=ID):
        """A whole transaction."""
        assert self.add(name, transactional_id=transactional_id) is ErrorCode.NONE
        assert self.end(name, commit=commit, transactional_id=transactional_id).error is ErrorCode.NONE
        self.complete()

    def skip_to_epoch(self, epoch):
        """Act as if this many producers had come and gone."""
        after = self.transaction._replace(producer_epoch=epoch, last_producer_epoch=-1)
        self.machine.apply(TransactionRecord(ID, after))
        self.log.append(FORMAT.encode(TransactionRecord(ID, after)))
        for known in self.producers.values():
            known.producer = PendingProducer(after.producer_id, epoch)

    @property
    def transaction(self):
        return self.machine.tables.transactions.get(ID)


def answer_to(ticket, decision):
    """None if it still waits."""
    return next((answer.response for answer in decision.responses if answer.ticket is ticket), None)


def check_follows(before, after):
    """Check what must hold between two records of one transactional id."""
    if after is None:
        assert before.state in AT_REST
        return
    if before is None:
        return
    assert before.state in PRECEDING[after.state]
    assert after.producer_epoch >= 0
    if after.state in AT_REST:
        assert not after.partitions
        assert after.producer_epoch < 2**15 - 1, "the last epoch is left to fence with"
    if after.state in ENDING:
        assert after.partitions == before.partitions
        if after.client_version >= 2:
            assert after.producer_epoch == before.producer_epoch + 1, "every end bumps the epoch"
    if after.producer_id == before.producer_id:
        assert after.producer_epoch in (before.producer_epoch, before.producer_epoch + 1)
    else:
        assert after.producer_epoch == 0
        assert after.previous_producer_id == before.producer_id
