"""Results of single requests of batch commits, their limits, and the size of what is kept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.coordination.machine import Now, PendingProducer, RecordRefused
from headrace.core.transactions import batch_commits
from headrace.core.transactions.batch_commands import BatchResult, BeginBatchWriter, CommitBatch, NamedWriter
from headrace.core.transactions.commands import AddPartitions, ProducerIdNeeded
from headrace.core.transactions.coordinator import TransactionCoordinator
from headrace.core.transactions.owner_records import CommittedWriter, Owner, OwnerRecord
from headrace.core.transactions.records import TransactionRecord, TransactionRecords
from headrace.core.transactions.settings import (
    OLDER_RUNS_MAX,
    WRITER_TIMEOUT_MS_DEFAULT,
    WRITER_TIMEOUT_MS_MAX,
    TransactionSettings,
)
from headrace.core.transactions.steps import EXHAUSTED_FROM
from headrace.model.errors import ErrorCode
from tests.batch_commits.harness import HERE, OWNER, BatchHarness
from tests.core.manual_clock import WALL_START_MS, Ticket

NUMBERS = st.integers(-1, 2**63 - 1)
TEXTS = st.text(max_size=20)
WRITERS = st.builds(CommittedWriter, st.integers(0, 2**31 - 1), NUMBERS, st.integers(-1, 2**15 - 1))
OWNERS = st.builds(
    Owner,
    TEXTS,
    st.lists(TEXTS, max_size=4).map(tuple),
    NUMBERS,
    TEXTS,
    st.lists(WRITERS, max_size=4).map(tuple),
    NUMBERS,
    TEXTS,
    NUMBERS,
)


@given(name=TEXTS, owner=OWNERS | st.none())
def test_owners_come_back_as_written(name, owner):
    record = OwnerRecord(name, owner)
    assert TransactionRecords().decode(*TransactionRecords().encode(record)) == record


def test_other_readers_pass_over_owners():
    key, value = TransactionRecords().encode(OwnerRecord("q", Owner("r", (), 3, "r", (), 7)))
    assert key.hex(" ") == "27 10 00 01 71"
    assert int.from_bytes(key[:2]) > 0, "Kafka reads keys of version 0 and leaves the others"
    with pytest.raises(RecordRefused):
        TransactionRecords().decode(key, b"\0\7" + (value or b"")[2:])


def test_an_owner_of_an_older_version_is_read():
    """Version 0 ends before the write that repeated a batch, version 1 before the uptime."""
    record = OwnerRecord("q", Owner("r", (), 3, "r", (), 7))
    key, value = TransactionRecords().encode(record)
    assert value is not None
    assert value[-10:] == bytes(10)
    assert TransactionRecords().decode(key, b"\0\0" + value[2:-10]) == record
    assert TransactionRecords().decode(key, b"\0\1" + value[2:-8]) == record


@pytest.mark.parametrize(
    "arguments",
    [
        {"owner": ""},
        {"owner": "a#b"},
        {"owner": "x" * 201},
        {"run": ""},
        {"run": "x" * 201},
        {"batch": -1},
        {"attempt": -1},
        {"timeout_ms": -1},
        {"timeout_ms": WRITER_TIMEOUT_MS_MAX + 1},
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(arguments):
    harness = BatchHarness()
    given = {"run": "1", "batch": 0, "attempt": 0, "owner": OWNER, "timeout_ms": 0, **arguments}
    assert harness.begin("a", **given).error is ErrorCode.INVALID_REQUEST
    ending = {key: given[key] for key in ("run", "batch", "owner")}
    if not {"attempt", "timeout_ms"} & set(arguments):
        assert harness.commit_batch(**ending).error is ErrorCode.INVALID_REQUEST
        assert harness.abort_batch(**ending).error is ErrorCode.INVALID_REQUEST
    assert not harness.machine.tables.owners


def test_batch_commits_need_ends_that_bump_the_producer_epoch():
    assert BatchHarness(version=1).begin("a", run="1", batch=0).error is ErrorCode.UNSUPPORTED_VERSION


def test_the_usual_time_and_one_that_was_asked_for():
    harness = BatchHarness()
    assert harness.begin("a", run="1", batch=0, attempt=1).timeout_ms == WRITER_TIMEOUT_MS_DEFAULT
    assert harness.begin("b", run="1", batch=0, attempt=2, timeout_ms=5).timeout_ms == 5


def test_writers_and_owners_have_a_limit(monkeypatch):
    monkeypatch.setattr(batch_commits, "BATCH_WRITERS_MAX", 2)
    monkeypatch.setattr(batch_commits, "OWNERS_MAX", 1)
    harness = BatchHarness()
    for attempt in range(2):
        assert harness.begin(str(attempt), run="1", batch=0, attempt=attempt).error is ErrorCode.NONE
    assert harness.begin("2", run="1", batch=0, attempt=2).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.begin("1", run="1", batch=0, attempt=1).error is ErrorCode.NONE, "it has its place"
    assert harness.begin("3", run="1", batch=0, owner="other").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.commit_batch(run="1", batch=0, owner="other").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.begin("4", run="1", batch=0, attempt=0)
    assert harness.commit_batch("0", "1", "x", run="1", batch=0).error is ErrorCode.INVALID_REQUEST


def test_partitions_of_all_writers_have_a_limit(monkeypatch):
    monkeypatch.setattr(batch_commits, "BATCH_PARTITIONS_MAX", 3)
    harness = BatchHarness()
    for attempt, name in enumerate("ab"):
        harness.begin(name, run="1", batch=0, attempt=attempt)
    assert harness.write("a", ("x", 0), ("x", 1)) is ErrorCode.NONE
    assert harness.write("b", ("x", 0), ("x", 1)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.write("b", ("x", 0)) is ErrorCode.NONE
    assert harness.write("a", ("x", 1)) is ErrorCode.NONE, "it has that one"
    harness.commit_batch("a", "b", run="1", batch=0)
    assert harness.pool.partition_count == 0


def test_an_id_of_another_producer_is_not_taken():
    """Someone used the name of a slot before there was a pool."""
    harness = BatchHarness()
    harness.init("stranger", transactional_id=f"{OWNER}#0")
    assert harness.begin("a", run="1", batch=0).transactional_id == f"{OWNER}#1"
    assert harness.pool.slots == {1}


def test_an_operator_can_fence_a_writer():
    """As any transactional id: the slot stays in the pool and is lent again, under a newer epoch."""
    harness = BatchHarness()
    harness.begin("a", run="1", batch=0)
    harness.write("a")
    assert harness.init("operator", transactional_id=f"{OWNER}#0").error is ErrorCode.CONCURRENT_TRANSACTIONS
    harness.complete()
    assert harness.init("operator", transactional_id=f"{OWNER}#0").error is ErrorCode.NONE
    assert harness.commit_batch("a", run="1", batch=0).error is ErrorCode.TRANSACTION_ABORTABLE
    taken = harness.producer("operator").producer
    assert harness.begin("b", run="1", batch=0, attempt=1).producer == PendingProducer(
        taken.producer_id, taken.producer_epoch + 1
    )
    error = harness.add("operator", transactional_id=f"{OWNER}#0", producer=taken)
    assert error is ErrorCode.PRODUCER_FENCED


def test_a_writer_of_another_owner_is_not_committed():
    harness = BatchHarness()
    harness.begin("a", run="1", batch=0)
    harness.write("a")
    harness.begin("b", run="1", batch=0, owner="other")
    assert harness.commit_batch("a", "b", run="1", batch=0, owner="other").error is ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize("name", ["nothing", "q#", "q#x", "q#7", "q#0"])
def test_a_writer_that_is_not_one(name):
    harness = BatchHarness()
    harness.init("stranger", transactional_id="q#0")
    task = harness.task("invented")
    task.transactional_id, task.producer = name, PendingProducer(1, 0)
    assert harness.commit_batch("invented", run="1", batch=0).error is ErrorCode.TRANSACTION_ABORTABLE
    assert harness.owner is None


def test_a_limited_number_of_runs_is_remembered():
    harness = BatchHarness()
    for run in range(OLDER_RUNS_MAX + 5):
        harness.begin("a", run=str(run), batch=0)
        harness.complete()
    assert len(harness.owner.older_runs) == OLDER_RUNS_MAX
    assert harness.begin("a", run=str(OLDER_RUNS_MAX), batch=0).error is ErrorCode.PRODUCER_FENCED


def test_producer_epochs_run_out_and_the_pool_continues():
    harness = BatchHarness()
    harness.written_batch(0, tasks=("a",))
    before = harness.machine.tables.transactions["q#0"]
    for batch, epoch in enumerate(range(EXHAUSTED_FROM - 3, EXHAUSTED_FROM + 1), 1):
        record = TransactionRecord("q#0", before._replace(producer_epoch=epoch))
        harness.machine.apply(record)
        harness.log.append(TransactionRecords().encode(record))
        harness.written_batch(batch, tasks=("a",))
        harness.written_batch(batch + 100, tasks=("a",)) if batch == 4 else None
        assert harness.machine.tables.transactions["q#0"].producer_epoch < EXHAUSTED_FROM + 1
    assert harness.ids_given > 1


def test_a_new_run_takes_over_a_full_pool(monkeypatch):
    """Spark restarts while every id is lent to tasks of the run before."""
    monkeypatch.setattr(batch_commits, "BATCH_WRITERS_MAX", 3)
    harness = BatchHarness()
    for attempt in range(3):
        assert harness.begin(f"a{attempt}", run="1", batch=0, attempt=attempt).error is ErrorCode.NONE
        assert harness.write(f"a{attempt}", ("x", attempt)) is ErrorCode.NONE
    full = harness.begin("a3", run="1", batch=0, attempt=3)
    assert (full.error, full.reason) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "3 writers are open already")
    assert harness.begin("b0", run="2", batch=0, attempt=0).error is ErrorCode.NONE
    assert [ending.commit for ending in harness.endings] == [False] * 3
    for attempt in (1, 2):
        assert harness.begin(f"b{attempt}", run="2", batch=0, attempt=attempt).error is ErrorCode.NONE
    assert harness.begin("b3", run="2", batch=0, attempt=3).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.begin("a4", run="1", batch=0, attempt=4).error is ErrorCode.PRODUCER_FENCED
    harness.complete()
    assert harness.commit_batch("b0", "b1", "b2", run="2", batch=0) == BatchResult(ErrorCode.NONE)


def test_runs_that_take_over_repeatedly_are_limited(monkeypatch):
    """The ids of aborted writers come back only with their markers."""
    monkeypatch.setattr(batch_commits, "BATCH_WRITERS_MAX", 2)
    monkeypatch.setattr(batch_commits, "TRANSACTIONAL_IDS_MAX", 5)
    harness = BatchHarness()
    results = [harness.begin("a", run=str(run), batch=0, attempt=attempt) for run in range(3) for attempt in range(2)]
    assert [result.error for result in results] == [ErrorCode.NONE] * 5 + [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert "transactional ids are known already" in results[-1].reason
    harness.complete()
    assert harness.begin("a", run="2", batch=0, attempt=1).error is ErrorCode.NONE


def test_a_run_that_waits_for_a_producer_id_does_not_come_back_as_the_newest():
    """Found by `headrace sim --scenario batch-commits`: the id arrives when the next run has entered."""
    bare = BareMachine()

    def begin(run, fresh=None):
        command = BeginBatchWriter(
            owner=OWNER, run=run, batch_id=0, task_attempt_id=0, timeout_ms=0, fresh_producer_id=fresh
        )
        return bare.ask(lambda ticket, now: bare.machine.batch_commits.begin(command, ticket, now))

    assert begin("1") == begin("2") == ProducerIdNeeded()
    assert begin("2", 7).error is ErrorCode.NONE
    assert begin("1", 8).error is ErrorCode.PRODUCER_FENCED
    assert begin("2").error is ErrorCode.NONE


class BareMachine:
    """Without the harness's replay of the whole log after each step."""

    def __init__(self):
        self.machine = TransactionCoordinator(TransactionSettings())
        self.keys = {}
        self.records = 0
        self.ids = 0
        self.clock_ms = 0
        self.machine.loaded(self.now())

    def now(self):
        return Now(float(self.clock_ms), WALL_START_MS + self.clock_ms)

    def ask(self, decide):
        ticket = Ticket("", "")
        decision = decide(ticket, self.now())
        for record in decision.records:
            key, value = TransactionRecords().encode(record)
            self.keys[key] = value
            self.records += 1
        return decision.responses[-1].response

    def write(self, writer):
        command = AddPartitions(
            transactional_id=writer.transactional_id,
            producer=writer.producer,
            partitions=frozenset({("x", 0)}),
            client_version=2,
            leader=HERE,
        )
        return self.ask(lambda ticket, now: self.machine.add_partitions(command, ticket, now))

    def begin(self, **fields):
        command = BeginBatchWriter(owner=OWNER, run="1", timeout_ms=0, **fields)
        result = self.ask(lambda ticket, now: self.machine.batch_commits.begin(command, ticket, now))
        if isinstance(result, ProducerIdNeeded):
            self.ids += 1
            command = BeginBatchWriter(owner=OWNER, run="1", timeout_ms=0, fresh_producer_id=self.ids, **fields)
            result = self.ask(lambda ticket, now: self.machine.batch_commits.begin(command, ticket, now))
        return result


@pytest.mark.slow
def test_five_thousand_batches_leave_no_more_than_ten():
    """Three tasks, one of them speculative, and the markers of one batch written while the next one is."""
    bare = BareMachine()
    machine = bare.machine
    pending: list[Any] = []
    for batch in range(5_000):
        begun = [bare.begin(batch_id=batch, task_attempt_id=batch * 3 + task) for task in range(3)]
        for each in begun:
            assert bare.write(each) is ErrorCode.NONE
        writers = frozenset(NamedWriter(each.transactional_id, each.producer) for each in begun[:2])
        command = CommitBatch(owner=OWNER, run="1", batch_id=batch, writers=writers, synced={("x", 0): HERE})
        result = bare.ask(lambda *rest, command=command: machine.batch_commits.commit(command, *rest))
        assert result == BatchResult(ErrorCode.NONE)
        endings = bare.ask(lambda ticket, _now: machine.endings.next(ticket, again=False))
        assert [ending.commit for ending in endings] == [ending.transactional_id != begun[2][3] for ending in endings]
        for ending in pending:
            bare.ask(lambda ticket, now, ending=ending: machine.complete(ending, None, ticket, now))
        pending = endings
        bare.clock_ms += 1_000
    assert len(machine.tables.transactions) == len(machine.tables.pools.of(OWNER).slots) == bare.ids == 6
    assert len(bare.keys) == 7, "what compaction leaves: the pool and its owner"
    assert len(machine._deadlines) == 2, "for the next look at unused ids, and the uptime"
