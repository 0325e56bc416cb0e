import os
import threading
from functools import partial

import pytest

from headrace.ports.real.network import RealNetwork
from headrace.ports.real.spawner import ThreadSpawner
from headrace.ports.spawner import LANE_HELPERS, Lane

pytestmark = pytest.mark.process

WAIT_SECONDS = 60


class Wakes:
    def __init__(self):
        self.event = threading.Event()

    def __call__(self):
        self.event.set()

    def await_one(self):
        assert self.event.wait(WAIT_SECONDS)
        self.event.clear()


@pytest.fixture
def wakes():
    return Wakes()


@pytest.fixture
def spawner(wakes):
    spawner = ThreadSpawner(wakes)
    yield spawner
    spawner.close()


def run_until(spawner, wakes, count):
    while count > 0:
        wakes.await_one()
        count -= spawner.run_completions()


def helpers(spawner):
    """Its threads, by their names."""
    return [thread.name for line in spawner._lines for thread in line.threads]


def test_no_thread_before_the_first_operation(spawner):
    assert helpers(spawner) == []
    assert spawner.run_completions() == 0
    assert spawner.in_flight() == 0


def test_results_are_delivered_on_the_loop(spawner, wakes):
    seen = []
    here = threading.get_ident()
    spawner.submit(threading.get_ident, lambda result, error: seen.append((result, error, threading.get_ident())))
    assert spawner.in_flight() == 1
    run_until(spawner, wakes, 1)
    ((there, error, completed_in),) = seen
    assert there != here
    assert error is None
    assert completed_in == here
    assert spawner.in_flight() == 0


def test_exceptions_are_delivered(spawner, wakes):
    seen = []
    spawner.submit(lambda: 1 // 0, lambda result, error: seen.append((result, error)))
    run_until(spawner, wakes, 1)
    ((result, error),) = seen
    assert result is None
    assert isinstance(error, ZeroDivisionError)


def test_a_completion_that_raises_keeps_no_other_from_running(spawner, wakes):
    seen = []

    def fail_if_even(number, _result, _error):
        seen.append(number)
        assert 1 // (number % 2)

    for number in range(4):
        spawner.submit(lambda: None, partial(fail_if_even, number))
    while len(spawner._ended) < 4:
        wakes.await_one()
    with pytest.raises(ExceptionGroup, match="2 completions failed"):
        spawner.run_completions()
    assert sorted(seen) == [0, 1, 2, 3]
    assert spawner.in_flight() == 0


def test_one_thread_until_more_are_needed(spawner, wakes):
    for _ in range(3):
        spawner.submit(lambda: None, lambda result, error: None)
        run_until(spawner, wakes, 1)
    assert helpers(spawner) == ["headrace-other-0"]
    hold = threading.Event()
    for _ in range(5):
        spawner.submit(hold.wait, lambda result, error: None)
    assert helpers(spawner) == ["headrace-other-0", "headrace-other-1"]
    hold.set()
    run_until(spawner, wakes, 5)


@pytest.mark.parametrize("held", Lane)
def test_no_lane_waits_for_another(spawner, wakes, held):
    hold, seen = threading.Event(), []
    for _ in range(200):
        spawner.submit(hold.wait, lambda result, error: seen.append(held), held)
    for lane in Lane:
        if lane is not held:
            spawner.submit(lambda: None, lambda result, error, lane=lane: seen.append(lane), lane)
    run_until(spawner, wakes, len(Lane) - 1)
    assert sorted(seen) == sorted(set(Lane) - {held})
    assert len(helpers(spawner)) == len(Lane) - 1 + LANE_HELPERS[held]
    hold.set()
    run_until(spawner, wakes, 200)


def test_a_resolver_that_hangs_does_not_delay_the_end(wakes):
    spawner, hold = ThreadSpawner(wakes), threading.Event()
    spawner.submit(hold.wait, lambda result, error: None, Lane.NAMES)
    spawner.close()
    hold.set()


def test_no_operation_is_refused_however_many_there_are(spawner, wakes):
    """A queue that was full once told a flush of it, which counted as a failed disk."""
    count, hold, errors = 70_000, threading.Event(), []
    for _ in range(count):
        spawner.submit(hold.wait, lambda result, error: errors.append(error), Lane.SYNC)
    assert spawner.run_completions() == 0
    hold.set()
    run_until(spawner, wakes, count)
    assert set(errors) == {None}


def test_the_state_of_a_lane_shows_what_is_under_way_and_waits(spawner, wakes):
    assert {state[1:] for state in spawner.lanes()} == {(0, 0.0)}
    begun, hold = threading.Event(), threading.Event()

    def operation():
        begun.set()
        hold.wait()

    for _ in range(3):
        spawner.submit(operation, lambda result, error: None, Lane.LOOKUP)
    assert begun.wait(WAIT_SECONDS)
    first, second = (spawner.lanes()[Lane.LOOKUP] for _ in range(2))
    assert (first.lane, first.in_flight) == (Lane.LOOKUP, 3)
    assert 0 < first.longest_ms < second.longest_ms
    hold.set()
    run_until(spawner, wakes, 3)
    assert {state[1:] for state in spawner.lanes()} == {(0, 0.0)}


def test_close_waits_for_the_running_and_drops_the_queued(wakes):
    spawner = ThreadSpawner(wakes)
    begun, closing, ran = threading.Event(), threading.Event(), []

    def first():
        begun.set()
        closing.wait()
        while spawner.in_flight() > 1:  # until what is queued was dropped
            os.sched_yield()
        ran.append("first")

    spawner.submit(first, lambda result, error: ran.append("completed"), Lane.LOOKUP)
    spawner.submit(lambda: ran.append("second"), lambda result, error: None, Lane.LOOKUP)
    assert begun.wait(WAIT_SECONDS)
    closing.set()
    spawner.close()
    assert ran == ["first"]
    assert spawner.run_completions() == 1
    assert ran == ["first", "completed"]
    assert spawner.in_flight() == 0
    spawner.close()
    with pytest.raises(RuntimeError):
        spawner.submit(lambda: None, lambda result, error: None)


def test_it_wakes_the_network():
    network = RealNetwork()
    spawner = ThreadSpawner(network.wake)
    seen = []
    spawner.submit(lambda: 42, lambda result, error: seen.append(result))
    while not seen:
        network.poll(-1)
        spawner.run_completions()
    assert seen == [42]
    spawner.close()
    network.close()
