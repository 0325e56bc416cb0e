import functools
from functools import partial
from typing import Any

import pytest

from headrace.sim.entropy import SeededEntropy
from headrace.sim.spawner import VirtualSpawner
from headrace.sim.trace import Trace

pytestmark = pytest.mark.usefixtures("virtual_world_only")
TURNS_MAX = 100


def new_spawner(seed=1, **options):
    return VirtualSpawner(SeededEntropy(seed), Trace(), **options)


def submit_numbers(spawner, count):
    """Operations and completions that note their number: (what ran, what completed)."""
    ran: list[Any] = []
    completed: list[Any] = []
    for number in range(count):
        spawner.submit(
            functools.partial(ran.append, number),
            lambda result, error, number=number: completed.append((number, error)),
        )
        assert completed == []
    return ran, completed


def run_all(spawner):
    for turn in range(TURNS_MAX):
        if not spawner.in_flight():
            return turn
        spawner.run_completions()
    raise AssertionError("still in flight")


def test_every_operation_runs_once_and_completes_in_a_later_turn():
    turns = set()
    for seed in range(30):
        spawner = new_spawner(seed)
        ran, completed = submit_numbers(spawner, 5)
        assert spawner.in_flight() == 5
        turns.add(run_all(spawner))
        assert sorted(ran) == list(range(5))
        assert sorted(completed) == [(number, None) for number in range(5)]
    assert len(turns) > 2


def test_neighbours_may_overtake_but_only_two_are_under_way():
    orders = set()
    for seed in range(60):
        spawner = new_spawner(seed)
        ran, _ = submit_numbers(spawner, 4)
        assert set(ran) <= {0, 1}
        run_all(spawner)
        orders.add(tuple(ran))
    assert (0, 1, 2, 3) in orders
    assert len(orders) > 2


def test_without_delay_it_runs_inline_and_completes_at_the_next_turn():
    spawner = new_spawner(delay_turns_max=0)
    seen = []
    spawner.submit(lambda: seen.append("ran"), lambda result, error: seen.append("completed"))
    assert seen == ["ran"]
    assert spawner.run_completions() == 1
    assert seen == ["ran", "completed"]


def test_an_exception_is_the_second_argument():
    spawner = new_spawner()
    seen = []
    spawner.submit(lambda: 1 // 0, lambda result, error: seen.append((result, type(error))))
    run_all(spawner)
    assert seen == [(None, ZeroDivisionError)]


def test_a_completion_that_raises_keeps_no_other_from_running():
    spawner = new_spawner(delay_turns_max=0)
    seen = []

    def fail_at_first(number, _result, _error):
        seen.append(number)
        assert 1 // number

    for number in range(2):
        spawner.submit(lambda: None, partial(fail_at_first, number))
    with pytest.raises(ZeroDivisionError):
        spawner.run_completions()
    assert seen == [0, 1]
    assert spawner.in_flight() == 0


def sync_metadata():
    return "synced"


def sync_data():
    return "synced"


def test_the_next_matching_operation_can_fail_or_be_lost():
    spawner = new_spawner()
    seen = []
    failure = OSError("planned")
    spawner.fail_next(failure, name_contains="metadata")
    for operation in (sync_data, sync_metadata, sync_metadata):
        spawner.submit(operation, lambda result, error, o=operation: seen.append((o.__name__, result, error)))
    run_all(spawner)
    assert ("sync_metadata", None, failure) in seen
    assert ("sync_metadata", "synced", None) in seen
    assert ("sync_data", "synced", None) in seen
    ran = []
    spawner.lose_next()
    spawner.submit(lambda: ran.append("ran"), lambda result, error: ran.append("completed"))
    for _ in range(TURNS_MAX):
        spawner.run_completions()
    assert ran == ["ran"]
    assert spawner.in_flight() == 1


def test_held_operations_wait_for_release_and_others_pass_them():
    spawner = new_spawner()
    seen = []
    spawner.hold(name_contains="metadata")
    for _ in range(3):
        spawner.submit(sync_metadata, lambda result, error: seen.append("metadata"))
    spawner.submit(sync_data, lambda result, error: seen.append("data"))
    for _ in range(TURNS_MAX):
        spawner.run_completions()
    assert seen == ["data"]
    assert spawner.waiting_names() == ["sync_metadata"] * 3
    spawner.release()
    run_all(spawner)
    assert seen == ["data"] + ["metadata"] * 3


def test_close_ends_the_running_and_kill_ends_nothing():
    outcomes = set()
    for seed in range(20):
        spawner = new_spawner(seed)
        ran, completed = submit_numbers(spawner, 4)
        spawner.close()
        assert sorted(ran) == [0, 1]
        assert completed == []
        assert spawner.in_flight() == 0
        ran, _ = submit_numbers(spawner, 4)
        spawner.kill()
        assert spawner.run_completions() == 0
        outcomes.add(tuple(ran))
    assert outcomes == {(), (0,), (1,), (0, 1)}
