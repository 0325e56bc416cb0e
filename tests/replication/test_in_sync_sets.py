"""Answers of the controller about in-sync sets, as the leader of a partition takes them."""

import pytest

from headrace.core.controller.commands import IsrResult
from headrace.model.errors import ErrorCode
from tests.replication.trios import Trio


@pytest.fixture
def trio():
    trio = Trio()
    end = trio.append(b"a")
    trio.run_until(lambda: all(trio.role(number).high_watermark == end for number in trio.nodes))
    return trio


def in_sync_sets(trio):
    """Return the in-sync sets of node 2, which leads, and the requests that it hands over instead of sending them."""
    sets = trio.nodes[2].node.broker.replication._in_sync
    asked = []
    sets._requests.alter = lambda change, then: asked.append((change, then))
    return sets, asked


def fall_behind(trio):
    """Have the leader ask for an in-sync set of its own, and return the change."""
    role = trio.role(2)
    role.log_appended(role.log_end + 1)
    trio.replica(2).execute(role.check_lag(float("inf")))
    assert role.isr_change_pending


def refusal(change):
    return IsrResult(change.topic_id, change.partition, ErrorCode.INELIGIBLE_REPLICA)


def test_a_refusal_counts_for_the_change_that_was_refused(trio):
    _sets, asked = in_sync_sets(trio)
    fall_behind(trio)
    ((change, then),) = asked
    then(refusal(change))
    assert not trio.role(2).isr_change_pending


def test_a_late_refusal_leaves_the_change_alone_that_was_asked_for_since(trio):
    _sets, asked = in_sync_sets(trio)
    fall_behind(trio)
    role = trio.role(2)
    role.partition_changed(role.replicas, role.isr, role.partition_epoch + 1)
    assert not role.isr_change_pending
    fall_behind(trio)
    (first, then), (second, _then) = asked
    assert second.partition_epoch == first.partition_epoch + 1
    then(refusal(first))
    assert role.isr_change_pending, "the controller may still commit the second change"
