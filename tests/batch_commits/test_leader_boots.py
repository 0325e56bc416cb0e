"""Rows on several brokers: a leader that has booted since it got rows of a batch may have lost them."""

import pytest

from headrace.core.transactions.batch_commands import BatchResult
from headrace.core.transactions.records import LeaderBoot
from headrace.model.errors import ErrorCode
from tests.batch_commits.harness import HERE, BatchHarness

THERE = LeaderBoot(2, "first boot")
REBOOTED = LeaderBoot(2, "second boot")
ELSEWHERE = LeaderBoot(3, "first boot")
NEAR, FAR = ("x", 0), ("x", 1)
NONE = ErrorCode.NONE


@pytest.fixture
def harness():
    """A writer with rows on the coordinator's broker and on another one."""
    harness = BatchHarness()
    assert harness.begin("a", run="1", batch=0).error is NONE
    assert harness.write("a", NEAR) is NONE
    assert harness.write("a", FAR, leader=THERE) is NONE
    return harness


def commit(harness, synced):
    return harness.commit_batch("a", run="1", batch=0, synced=synced)


def test_rows_that_their_leaders_have_synced_are_committed(harness):
    assert commit(harness, {NEAR: HERE, FAR: THERE}) == BatchResult(NONE)


@pytest.mark.parametrize("leader", [REBOOTED, ELSEWHERE], ids=["rebooted", "another broker"])
def test_rows_that_a_leader_may_have_lost_are_not_committed(harness, leader):
    result = commit(harness, {NEAR: HERE, FAR: leader})
    assert result.error is ErrorCode.TRANSACTION_ABORTABLE
    assert "may have lost rows" in result.reason
    assert harness.owner.committed_batch_id < 0


def test_rows_of_deleted_partitions_are_not_missed(harness):
    assert commit(harness, {NEAR: HERE, FAR: None}) == BatchResult(NONE)


def test_a_partition_that_was_added_after_the_sync_is_synced_first(harness):
    result = commit(harness, {NEAR: HERE})
    assert result.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit(harness, {NEAR: HERE, FAR: THERE}) == BatchResult(NONE)


def test_a_writer_cannot_continue_at_a_leader_that_has_booted(harness):
    assert harness.write("a", FAR, leader=THERE) is NONE
    assert harness.write("a", FAR, leader=REBOOTED) is ErrorCode.PRODUCER_FENCED
    assert harness.write("a", ("x", 2), leader=REBOOTED) is ErrorCode.PRODUCER_FENCED
    assert harness.write("a", ("x", 2), leader=ELSEWHERE) is NONE


def test_a_leader_that_verifies_is_noted_as_one_that_adds():
    harness = BatchHarness()
    assert harness.begin("a", run="1", batch=0).error is NONE
    assert harness.write("a", FAR, leader=None) is NONE
    task = harness.task("a")
    checked = {"transactional_id": task.transactional_id, "producer": task.producer}
    assert commit(harness, {FAR: THERE}).error is ErrorCode.TRANSACTION_ABORTABLE
    assert harness.check("a", FAR, leader=THERE, **checked) == {FAR: NONE}
    assert harness.check("a", FAR, leader=REBOOTED, **checked) == {FAR: ErrorCode.PRODUCER_FENCED}
    assert commit(harness, {FAR: THERE}) == BatchResult(NONE)


def test_a_reboot_of_the_coordinator_ends_writers_with_rows_there_alone():
    harness = BatchHarness()
    for attempt, (name, leader) in enumerate((("near", HERE), ("far", THERE))):
        assert harness.begin(name, run="1", batch=0, attempt=attempt).error is NONE
        assert harness.write(name, ("x", attempt), leader=leader) is NONE
    harness.settings = harness.machine.settings = type(harness.settings)(leader=HERE._replace(boot_id="second boot"))
    harness.restart()
    harness.wait(harness.settings.abort_interval_ms)
    assert [(ending.transactional_id, ending.commit) for ending in harness.endings] == [
        (harness.task("near").transactional_id, False)
    ]
    assert harness.commit_batch("far", run="1", batch=0, synced={("x", 1): THERE}) == BatchResult(NONE)


def test_the_next_borrower_of_an_id_begins_without_leaders(harness):
    assert commit(harness, {NEAR: HERE, FAR: THERE}) == BatchResult(NONE)
    harness.complete()
    assert harness.begin("b", run="1", batch=1, attempt=1).error is NONE
    assert harness.task("b").transactional_id == harness.task("a").transactional_id
    assert harness.write("b", FAR, leader=REBOOTED) is NONE
    assert harness.commit_batch("b", run="1", batch=1, synced={FAR: REBOOTED}) == BatchResult(NONE)
