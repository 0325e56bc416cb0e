"""A transaction coordinator with owners of batch commits, and tasks that remember their writers."""

from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.batch_commands import (
    AbortBatch,
    BatchResult,
    BeginBatchWriter,
    CommitBatch,
    NamedWriter,
)
from headrace.core.transactions.records import LeaderBoot
from headrace.model.errors import ErrorCode
from tests.transactions.harness import Harness

OWNER = "q"
HERE = LeaderBoot(1, "first boot")


class Task:
    """The responses that one attempt of a task got."""

    def __init__(self, name):
        self.name = name
        self.transactional_id = ""
        self.producer = PendingProducer(-1, -1)
        self.already_committed = False

    @property
    def named(self):
        return NamedWriter(self.transactional_id, self.producer)


class BatchHarness(Harness):
    def __init__(self, **settings):
        self.tasks = {}
        super().__init__(leader=HERE, **settings)

    def task(self, name):
        return self.tasks.setdefault(name, Task(name))

    def begin(self, name, *, run, batch, attempt=0, owner=OWNER, timeout_ms=0):
        def decide(machine, fresh, ticket, now):
            command = BeginBatchWriter(
                owner=owner,
                run=run,
                batch_id=batch,
                task_attempt_id=attempt,
                timeout_ms=timeout_ms,
                fresh_producer_id=fresh,
            )
            return machine.batch_commits.begin(command, ticket, now)

        result = self._asked(name, "begin", decide)
        if result.error is ErrorCode.NONE:
            task = self.task(name)
            task.already_committed = result.already_committed
            if not result.already_committed:
                task.transactional_id, task.producer = result.transactional_id, result.producer
        return result

    def write(self, name, *partitions, producer=None, leader=HERE):
        task = self.task(name)
        return self.add(
            name,
            *partitions,
            transactional_id=task.transactional_id,
            producer=producer or task.producer,
            version=2,
            leader=leader,
        )

    def finish(self, name, *, commit):
        """End the transaction directly, which no writer should do."""
        task = self.task(name)
        return self.end(name, commit=commit, transactional_id=task.transactional_id, producer=task.producer)

    def commit_batch(self, *names, run, batch, owner=OWNER, write_id="", synced=None):
        """Commit when this broker has synced all partitions of the writers, or as `synced` says."""
        writers = frozenset(self.task(name).named for name in names)
        if synced is None:
            transactions = self.machine.tables.transactions
            written = [transactions[each.transactional_id] for each in writers if each.transactional_id in transactions]
            synced = {partition: HERE for transaction in written for partition in transaction.partitions}
        command = CommitBatch(owner=owner, run=run, batch_id=batch, writers=writers, write_id=write_id, synced=synced)
        return self._asked(
            f"run {run}", "commit", lambda machine, _, *rest: machine.batch_commits.commit(command, *rest)
        )

    def abort_batch(self, *, run, batch, owner=OWNER):
        command = AbortBatch(owner=owner, run=run, batch_id=batch)
        return self._asked(f"run {run}", "abort", lambda machine, _, *rest: machine.batch_commits.abort(command, *rest))

    def written_batch(self, batch, *, run="1", tasks=("a", "b"), partitions=(("x", 0),)):
        """A whole batch, committed and marked."""
        for attempt, name in enumerate(tasks):
            assert self.begin(name, run=run, batch=batch, attempt=batch * 100 + attempt).error is ErrorCode.NONE
            assert self.write(name, *partitions) is ErrorCode.NONE
        assert self.commit_batch(*tasks, run=run, batch=batch) == BatchResult(ErrorCode.NONE)
        self.complete()

    @property
    def owner(self):
        return self.machine.tables.owners.get(OWNER)

    @property
    def pool(self):
        return self.machine.tables.pools.of(OWNER)
