"""Any order of calls by several producers, zombies too: the log tells the live state after each, an epoch that was
fenced never commits, and a transaction ends once.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.core.transactions.commands import ProducerResult
from headrace.core.transactions.states import TransactionState
from headrace.core.transactions.steps import EXHAUSTED_FROM
from headrace.model.errors import ErrorCode
from tests.transactions.harness import ID, Harness

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a", "b", "c"])
PARTITIONS = st.lists(
    st.sampled_from([("x", 0), ("x", 1), ("y", 0), ("__consumer_offsets", 7)]), min_size=1, max_size=3
)
WAITS_MS = st.sampled_from([1, 5_000, 30_000, 61_000, 4_000_000])
BUMPING = 2
WAITED_FOR_MAX = 10
"""Transactions in a row that those who wait begin before a new producer gets its turn."""

ENDED = {
    True: (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
    False: (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
}


class TransactionMachine(RuleBasedStateMachine):
    @initialize(version=st.sampled_from([0, 1, 2]), near_the_end=st.booleans())
    def begin(self, version, near_the_end):
        self.harness = Harness(version=version, id_expiration_ms=3_900_000)
        self.owner = None
        """The last owner of the id; no other client may do anything with it from then on."""
        self.outcomes = {}
        """End of each transaction, by its number."""
        self.init("a", resume=False)
        if near_the_end:
            self.harness.skip_to_epoch(EXHAUSTED_FROM - 2)

    def succeeded(self, name):
        assert name == self.owner, f"{name} was fenced by {self.owner}"

    def see_endings(self):
        for ticket, response in self.harness.take_outcomes():
            if ticket.kind == "add" and response is ErrorCode.NONE:
                self.succeeded(ticket.name)
            for ending in response if ticket.kind == "markers" else ():
                first = self.outcomes.setdefault(self.harness.begun, ending)
                assert first[:4] == ending[:4]

    @rule(name=NAMES, resume=st.booleans())
    def init(self, name, resume):
        if resume and self.harness.producer(name).producer.producer_id < 0:
            return
        known = self.harness.transaction
        result = self.harness.init(name, resume=resume)
        if result.error is ErrorCode.NONE:
            if resume and known is not None:
                self.succeeded(name)
            self.owner = name
            assert self.harness.transaction.state is TransactionState.EMPTY
        self.see_endings()

    @rule(name=NAMES)
    def take_over(self, name):
        """Do what a client does: ask until the transaction of the one before is over."""
        for _ in range(WAITED_FOR_MAX):
            taken = self.harness.init(name).error is ErrorCode.NONE
            self.see_endings()
            if taken:
                self.owner = name
                break
            self.harness.complete()
            self.see_endings()
        assert self.owner == name

    @rule(name=NAMES, partitions=PARTITIONS)
    def add(self, name, partitions):
        if self.harness.add(name, *partitions) is ErrorCode.NONE:
            assert set(partitions) <= self.harness.transaction.partitions
        self.see_endings()

    @rule(name=NAMES, partitions=PARTITIONS)
    def write(self, name, partitions):
        """A partition's leader waits for the end of the transaction before; every wait is answered within its time."""
        self.harness.add(name, *partitions, waits=True)
        self.see_endings()

    @rule(name=NAMES, partitions=PARTITIONS)
    def check(self, name, partitions):
        if ErrorCode.NONE in self.harness.check(name, *partitions).values():
            self.succeeded(name)
        self.see_endings()

    @rule(name=NAMES, commit=st.booleans(), stale=st.booleans())
    def end(self, name, commit, stale):
        known = self.harness.producer(name)
        result = self.harness.end(name, commit=commit, producer=known.before if stale else None)
        assert isinstance(result, ProducerResult)
        if result.error is ErrorCode.NONE:
            self.succeeded(name)
            assert self.harness.transaction.state in ENDED[commit]
        self.see_endings()

    @rule(name=NAMES, rival=NAMES, rival_writes=st.booleans(), commit=st.booleans())
    def zombie_ends(self, name, rival, rival_writes, commit):
        """One begins, another takes over and perhaps begins too, and the first one comes back."""
        self.take_over(name)
        self.add(name, [("x", 0)])
        self.take_over(rival)
        if rival_writes:
            self.add(rival, [("x", 1)])
        self.end(name, commit, stale=False)

    @rule(name=NAMES, commit=st.booleans(), completed=st.booleans(), again=st.booleans())
    def ends_twice(self, name, commit, completed, again):
        """The answer to the end is lost, or so it believes, and it asks again, perhaps for the other outcome."""
        self.take_over(name)
        self.add(name, [("x", 0)])
        self.end(name, commit, stale=False)
        if completed:
            self.markers_written(None)
        self.end(name, again, stale=self.harness.version == BUMPING)

    @rule(count=st.sampled_from([1, None]))
    def markers_written(self, count):
        self.harness.complete(count)
        self.see_endings()

    @rule(duration_ms=WAITS_MS)
    def wait(self, duration_ms):
        self.harness.wait(duration_ms)
        self.see_endings()
        if self.harness.transaction is None:
            self.owner = None  # forgotten: the next one is the first one

    @rule()
    def restart(self):
        self.harness.restart()
        self.see_endings()

    @invariant()
    def what_is_ending_was_handed_out(self):
        """Else its markers would never be written."""
        transaction = self.harness.transaction
        if transaction is not None and transaction.state in (ENDED[True][0], ENDED[False][0]):
            assert [ending.transactional_id for ending in self.harness.endings] == [ID]

    @invariant()
    def what_is_open_has_a_deadline(self):
        transaction = self.harness.transaction
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            latest_ms = self.harness.monotonic_ms + transaction.timeout_ms + self.harness.settings.abort_interval_ms
            assert self.harness.machine.next_deadline_ms() <= latest_ms


TransactionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestTransactionMachine = TransactionMachine.TestCase
