"""Fenced producers: whatever they ask and whatever their successors do, they never get the epoch of a successor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.coordination.machine import PendingProducer
from headrace.model.errors import ErrorCode
from tests.batch_commits.harness import BatchHarness
from tests.transactions.harness import Harness

NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
PLAIN, BUMPING = 1, 2


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("completed", [True, False])
def test_a_successor_of_the_older_protocol_has_ended_its_transaction(commit, completed):
    """Its end does not bump the epoch, which is then one above that of the fenced producer."""
    harness = Harness()
    harness.init("a")
    harness.transact("a")
    harness.init("b")
    harness.add("b", version=PLAIN)
    assert harness.end("b", commit=commit, version=PLAIN).error is NONE
    if completed:
        harness.complete()
    successor = harness.producer("b").producer
    assert successor.producer_epoch == harness.producer("a").producer.producer_epoch + 1
    assert harness.end("a", commit=commit, version=BUMPING) == (FENCED, (-1, -1))
    harness.complete()
    assert harness.add("b", version=PLAIN) is NONE


@pytest.mark.parametrize("completed", [True, False])
@pytest.mark.parametrize("commit", [True, False])
def test_a_successor_has_aborted_what_was_open(commit, completed):
    """It asks again when the abort is over, and gets the epoch behind the one that fenced."""
    harness = Harness()
    harness.init("a")
    harness.add("a")
    assert harness.init("b").error is ErrorCode.CONCURRENT_TRANSACTIONS
    if completed:
        harness.complete()
    assert harness.end("a", commit=commit) == (FENCED, (-1, -1))
    if not completed:
        assert harness.init("a", resume=True).error is ErrorCode.CONCURRENT_TRANSACTIONS
        harness.complete()
    assert harness.init("a", resume=True).error is FENCED
    assert harness.init("b").error is NONE


def test_a_producer_whose_time_was_up_may_abort_and_continue():
    """No successor is there: the answer is what it has to go on as (KIP-890)."""
    harness = Harness()
    harness.init("a", timeout_ms=10_000)
    harness.add("a")
    harness.wait(30_000)
    harness.complete()
    assert harness.end("a", commit=False).error is NONE
    harness.transact("a")


def test_a_producer_that_resumes_hears_the_same_again():
    harness = Harness()
    harness.init("a")
    harness.add("a")
    believed = harness.producer("a").producer
    assert harness.init("a", expected=believed).error is ErrorCode.CONCURRENT_TRANSACTIONS
    harness.complete()
    resumed = harness.init("a", expected=believed)
    assert resumed == (NONE, PendingProducer(believed.producer_id, believed.producer_epoch + 1))


def test_a_task_that_was_aborted_cannot_continue_under_an_id_of_the_pool():
    harness = BatchHarness()
    harness.begin("a", run="1", batch=0, attempt=0)
    assert harness.write("a") is NONE
    assert harness.abort_batch(run="1", batch=0).aborted == 1
    assert harness.finish("a", commit=False).error is FENCED
    harness.complete()
    assert harness.finish("a", commit=False).error is FENCED
    assert harness.write("a") is FENCED


def test_a_task_that_aborts_itself_cannot_continue_under_an_id_of_the_pool():
    harness = BatchHarness()
    harness.begin("a", run="1", batch=0, attempt=0)
    assert harness.write("a") is NONE
    ended = harness.finish("a", commit=False)
    assert ended.error is NONE
    harness.complete()
    assert harness.write("a", producer=ended.producer) is FENCED
    assert harness.begin("b", run="1", batch=0, attempt=1).error is NONE


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["init", "add", "commit", "abort", "complete", "restart", "wait"]),
            st.sampled_from(["b", "c"]),
            st.sampled_from([PLAIN, BUMPING]),
        ),
        max_size=12,
    ),
    began=st.booleans(),
)
def test_whatever_successors_do_nothing_succeeds_for_who_was_fenced(steps, began):
    """Successors speak both versions, in any order; the old producer asks for everything after each step."""
    harness = Harness()
    harness.init("a")
    if began:
        harness.add("a")
    fenced = harness.producer("a").producer
    if harness.init("b").error is ErrorCode.CONCURRENT_TRANSACTIONS:
        harness.complete()
    for kind, name, version in steps:
        if kind in ("commit", "abort"):
            harness.end(name, commit=kind == "commit", version=version)
        elif kind == "add":
            harness.add(name, version=version)
        elif kind == "init":
            harness.init(name)
        elif kind == "wait":
            harness.wait(61_000)
        else:
            getattr(harness, kind)()
        for commit in (True, False):
            for asked in (PLAIN, BUMPING):
                result = harness.end("a", commit=commit, version=asked, producer=fenced)
                assert (result.error, result.producer) == (FENCED, (-1, -1))
        assert harness.add("a", producer=fenced) is FENCED
        assert harness.init("a", expected=fenced).error in (FENCED, ErrorCode.CONCURRENT_TRANSACTIONS)
