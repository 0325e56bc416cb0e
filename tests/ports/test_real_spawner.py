import os
import threading

import pytest

from headrace.ports.real.network import RealNetwork
from headrace.ports.real.spawner import SpawnerFull, ThreadSpawner

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


def test_no_thread_before_the_first_operation(spawner):
    assert spawner._threads == []
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
    for number in range(4):
        spawner.submit(lambda: None, lambda _result, _error, number=number: seen.append(number) or 1 // (number % 2))
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
    assert len(spawner._threads) == 1
    hold = threading.Event()
    for _ in range(5):
        spawner.submit(hold.wait, lambda result, error: None)
    assert len(spawner._threads) == 2
    hold.set()
    run_until(spawner, wakes, 5)


def test_a_full_queue_is_an_error_of_a_later_turn(wakes):
    spawner = ThreadSpawner(wakes, threads=1, in_flight_max=2)
    hold = threading.Event()
    seen = []
    for name in "abc":
        spawner.submit(hold.wait, lambda result, error, name=name: seen.append((name, result, error)))
    assert seen == []
    assert spawner.run_completions() == 1
    ((name, result, error),) = seen
    assert (name, result) == ("c", None)
    assert isinstance(error, SpawnerFull)
    hold.set()
    run_until(spawner, wakes, 2)
    assert [name for name, _, _ in seen] == ["c", "a", "b"]
    spawner.close()


def test_close_waits_for_the_running_and_drops_the_queued(wakes):
    spawner = ThreadSpawner(wakes, threads=1)
    begun, closing, ran = threading.Event(), threading.Event(), []

    def first():
        begun.set()
        closing.wait()
        while spawner.in_flight() > 1:  # until what is queued was dropped
            os.sched_yield()
        ran.append("first")

    spawner.submit(first, lambda result, error: ran.append("completed"))
    spawner.submit(lambda: ran.append("second"), lambda result, error: None)
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
