"""Any order of begins, writes, commits and aborts by several runs, zombies too, with a coordinator that dies.

After each step the log tells the live state (the harness checks it). A batch is committed once, by exactly the writers
that the commit named, no identity is in two hands, and nothing of a run that was fenced is ever committed.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.core.transactions.states import ENDING
from headrace.core.transactions.steps import is_open_writer
from headrace.model.errors import ErrorCode
from tests.batch_commits.harness import OWNER, BatchHarness

NAMES = st.sampled_from("abcdef")
RUNS = st.sampled_from(["1", "2", "3"])
BATCHES = st.integers(0, 3)
WRITES = st.sampled_from(["", "first", "second"])
WAITS_MS = st.sampled_from([1, 5_000, 400_000, 1_000_000])


class BatchMachine(RuleBasedStateMachine):
    @initialize()
    def begin_all(self):
        self.harness = BatchHarness()
        self.attempts = 0
        self.committed = {}
        """The run and the identities with which each batch was committed."""
        self.entered = []
        """Runs in the order of their first sign."""
        self.lent = {}
        """The task that holds each identity."""
        self.markers = {}
        self.repeated = {}
        """Writes of a run whose response said that an earlier run committed the batch."""

    def see(self):
        for ticket, response in self.harness.take_outcomes():
            for ending in response if ticket.kind == "markers" else ():
                epoch_before = ending.producer._replace(producer_epoch=ending.producer.producer_epoch - 1)
                identity = (ending.transactional_id, epoch_before)
                assert self.markers.setdefault(identity, ending.commit) == ending.commit, "one outcome for each"
                named = {each for _run, writers in self.committed.values() for each in writers}
                assert not ending.commit or identity in named, "only what a commit named is committed"

    @rule(name=NAMES, run=RUNS, batch=BATCHES, again=st.booleans())
    def begin(self, name, run, batch, again):
        self.attempts += not again
        result = self.harness.begin(name, run=run, batch=batch, attempt=self.attempts)
        if result.error is ErrorCode.NONE:
            self.enter(run)
            newest = max(self.committed, default=-1)
            assert result.already_committed == (batch <= newest)
            if not result.already_committed:
                who = (run, batch, self.attempts)
                assert self.lent.setdefault((result.transactional_id, result.producer), who) == who
        else:
            assert result.error is ErrorCode.PRODUCER_FENCED
            assert run in self.entered[:-1]
        self.see()

    def enter(self, run):
        assert run not in self.entered[:-1], "a fenced run came back"
        if run not in self.entered:
            self.entered.append(run)

    @rule(name=NAMES, number=st.integers(0, 2))
    def write(self, name, number):
        task = self.harness.task(name)
        if self.harness.write(name, ("x", number)) is ErrorCode.NONE:
            run, _batch, _attempt = self.lent[task.named]
            assert run == self.entered[-1], "a fenced run has written"
        self.see()

    @rule(run=RUNS, batch=BATCHES, names=st.sets(NAMES, max_size=3), write=WRITES)
    def commit(self, run, batch, names, write=""):
        named = {self.harness.task(name).named for name in names}
        states = {each: self.harness.machine.tables.transactions.get(each.transactional_id) for each in named}
        newest = max(self.committed, default=-1)
        result = self.harness.commit_batch(*names, run=run, batch=batch, write_id=write)
        if result.error is ErrorCode.NONE and not result.already_committed:
            assert batch > newest
            self.enter(run)
            for each, transaction in states.items():
                assert self.lent[each][:2] == (run, batch)
                assert is_open_writer(transaction)
                assert transaction is not None
                assert transaction[:2] == each.producer
            self.committed[batch] = (run, {each for each, found in states.items() if found.partitions})
            self.last = (run, batch, named)
        elif result.error is ErrorCode.NONE:
            assert batch <= newest
            if batch == newest and write and run in self.entered[-1:] and run != self.committed[batch][0]:
                assert self.repeated.setdefault((run, batch), write) == write, "two writes of a run were passed over"
        elif result.error is ErrorCode.INVALID_TXN_STATE:
            if self.last[:2] == (run, batch):
                assert self.last[2] != named
            else:
                assert self.repeated[run, batch] != write
        elif result.error is ErrorCode.PRODUCER_FENCED:
            assert run in self.entered[:-1]
        else:
            assert result.error is ErrorCode.TRANSACTION_ABORTABLE
            assert named
        self.see()

    @rule(run=RUNS, batch=BATCHES)
    def abort(self, run, batch):
        result = self.harness.abort_batch(run=run, batch=batch)
        assert result.already_committed == (batch <= max(self.committed, default=-1))
        if result.error is ErrorCode.PRODUCER_FENCED:
            assert run in self.entered[:-1]
        self.see()

    @rule(name=NAMES, commit=st.booleans())
    def end(self, name, commit):
        result = self.harness.finish(name, commit=commit)
        assert not (commit and result.error is ErrorCode.NONE and self.harness.task(name).named in self.open_ones())
        self.see()

    def open_ones(self):
        return {
            (key, found[:2]) for key, found in self.harness.machine.tables.transactions.items() if is_open_writer(found)
        }

    @rule(name=NAMES, rival=NAMES, run=RUNS, batch=BATCHES)
    def whole_batch(self, name, rival, run, batch):
        """Two attempts, the first is named; and the driver asks twice."""
        self.begin(name, run, batch, again=False)
        self.write(name, 0)
        if rival != name:
            self.begin(rival, run, batch, again=False)
            self.write(rival, 0)
        self.commit(run, batch, {name})
        self.commit(run, batch, {name})
        self.write(rival, 1)

    @rule(count=st.sampled_from([1, None]))
    def markers_written(self, count):
        self.harness.complete(count)
        self.see()

    @rule(duration_ms=WAITS_MS)
    def wait(self, duration_ms):
        self.harness.wait(duration_ms)
        self.see()

    @rule()
    def restart(self):
        self.harness.restart()
        self.see()

    @invariant()
    def what_is_committed_stays(self):
        found = self.harness.owner
        assert (found.committed_batch_id if found else -1) == max(self.committed, default=-1)

    @invariant()
    def what_is_ending_was_handed_out(self):
        """Otherwise its markers would never be written."""
        ending = {key for key, each in self.harness.machine.tables.transactions.items() if each.state in ENDING}
        assert {each.transactional_id for each in self.harness.endings} == ending

    @invariant()
    def the_pool_is_small(self):
        assert all(key.startswith(f"{OWNER}#") for key in self.harness.machine.tables.transactions)
        assert len(self.harness.pool.slots) <= len(self.lent) + 1


BatchMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestBatchMachine = pytest.mark.slow(BatchMachine.TestCase)
