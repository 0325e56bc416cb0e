"""Committed offsets of a group that the simulator accepts, for every client and however late the answer comes."""

import pytest

from headrace.sim.checkers.groups import NO_OFFSET, CommittedOffsetHistory
from headrace.sim.checkers.violation import Violation


@pytest.fixture
def truth():
    return CommittedOffsetHistory("read-0 in readers")


def commit(truth, *offsets):
    for offset in offsets:
        truth.sent(offset)
        truth.acknowledged(offset)


def is_accepted(truth, offset, asked):
    try:
        truth.shown(offset, asked=asked)
    except Violation:
        return False
    return True


def test_a_late_answer_may_show_what_was_committed_when_it_was_asked_for(truth):
    commit(truth, 3, 7)
    asked = truth.moment
    commit(truth, 14, 20)
    assert [offset for offset in (NO_OFFSET, 3, 7, 14, 20, 21) if is_accepted(truth, offset, asked)] == [7, 14, 20]
    assert truth.value == 20


def test_who_asks_after_an_acknowledgement_must_be_shown_it(truth):
    commit(truth, 14)
    assert not is_accepted(truth, NO_OFFSET, truth.moment)
    assert is_accepted(truth, 14, truth.moment)


def test_a_late_answer_may_show_what_was_sent_and_overtaken_meanwhile(truth):
    asked = truth.moment
    truth.sent(5)
    commit(truth, 9)
    assert is_accepted(truth, 5, asked)
    assert not is_accepted(truth, 5, truth.moment)


def test_what_was_refused_is_never_shown(truth):
    asked = truth.moment
    truth.sent(5)
    truth.refused(5)
    commit(truth, 9)
    assert not is_accepted(truth, 5, asked)


def test_what_one_was_shown_the_next_is_shown_too(truth):
    truth.sent(5)
    early = truth.moment
    assert is_accepted(truth, NO_OFFSET, truth.moment)
    assert is_accepted(truth, 5, truth.moment)
    assert not is_accepted(truth, NO_OFFSET, truth.moment)
    assert is_accepted(truth, NO_OFFSET, early)


def test_a_commit_from_a_position_that_was_read_too_early_must_not_get_through(truth):
    truth.sent(14)
    truth.sent(5)
    truth.acknowledged(14)
    assert not is_accepted(truth, 5, truth.moment)
    with pytest.raises(Violation, match=r"never go back or vanish: .* 5 is committed, but 14 was acknowledged"):
        truth.acknowledged(5)
