"""Timers: in order, never early, and a cancelled one is gone."""

import gc
import weakref
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.timers import CANCELLED_KEPT_MIN, Timers
from headrace.sim.clock import VirtualClock, VirtualTime


def timers():
    time = VirtualTime()
    return time, Timers(VirtualClock(time))


def test_deadlines_come_in_order_and_never_early():
    _, due = timers()
    called = []
    for delay in (30, 10, 20, 10):
        due.after(delay, lambda delay=delay: called.append(delay))
    assert due.wait_ms(0) == 10
    due.run_due(9.9)
    assert called == []
    due.run_due(20)
    assert called == [10, 10, 20]
    assert due.wait_ms(20) == 10
    assert due.wait_ms(50) == 0
    due.run_due(50)
    assert due.wait_ms(50) == -1


def test_the_next_turn_is_not_this_one():
    _, due = timers()
    called = []

    def first():
        called.append("first")
        due.next_turn(lambda: called.append("second"))

    due.next_turn(first)
    assert due.wait_ms(0) == 0, "the loop must not sleep"
    due.run_due(0)
    assert called == []
    due.run_due(0)
    assert called == ["first"]
    due.run_due(0)
    due.run_due(0)
    assert called == ["first", "second"]
    assert due.wait_ms(0) == -1


def test_a_timer_may_set_another_that_is_due_at_once():
    _, due = timers()
    called = []
    due.at(5, lambda: due.at(5, lambda: called.append("inner")))
    due.run_due(5)
    assert called == ["inner"]


def test_a_cancelled_timer_is_not_called_and_keeps_nothing_alive():
    class Waiter:
        def expired(self):
            raise AssertionError("cancelled timers are not called")

    _, due = timers()
    waiter = Waiter()
    timer = due.after(10, waiter.expired)
    gone = weakref.ref(waiter)
    due.cancel(timer)
    due.cancel(timer)
    del waiter
    gc.collect()
    assert gone() is None
    due.run_due(100)


def test_a_timer_that_was_called_may_be_cancelled():
    _, due = timers()
    timer = due.after(0, lambda: None)
    due.run_due(0)
    due.cancel(timer)
    assert len(due) == 0


def test_the_heap_does_not_keep_what_was_cancelled():
    _, due = timers()
    for _ in range(10_000):
        due.cancel(due.after(300_000, lambda: None))
    assert len(due) <= CANCELLED_KEPT_MIN + 1
    kept = [due.after(300_000, lambda: None) for _ in range(500)]
    for _ in range(10_000):
        due.cancel(due.after(300_000, lambda: None))
    assert len(due) <= 2 * len(kept) + CANCELLED_KEPT_MIN


@given(st.lists(st.tuples(st.sampled_from("acr"), st.integers(0, 50)), max_size=200))
def test_every_timer_is_called_once_unless_cancelled_before(steps):
    _, due = timers()
    now = 0
    called: list[Any] = []
    expected: dict[Any, Any] = {}
    set_timers: list[Any] = []
    for action, number in steps:
        if action == "a":
            name = len(set_timers)
            set_timers.append(due.at(now + number, lambda name=name: called.append(name)))
            expected[name] = now + number
        elif action == "c" and set_timers:
            name = number % len(set_timers)
            due.cancel(set_timers[name])
            if name not in called:
                expected.pop(name, None)
        else:
            now += number
            due.run_due(now)
    due.run_due(now + 51)
    assert called == sorted(expected, key=lambda name: (expected[name], name))


def test_a_turn_that_took_long_enough_leaves_the_rest_to_the_next_one_in_order():
    time, due = timers()
    called = []

    def slow(name):
        def call():
            time.now_ms += 3
            called.append(name)

        return call

    for name in ("one", "two"):
        due.at(0, slow(f"due {name}"))
        due.next_turn(slow(f"next {name}"))
    due.run_due(time.now_ms, until_ms=time.now_ms + 2)
    assert called == ["due one"], "the second would begin after the time"
    due.next_turn(slow("next three"))
    assert due.wait_ms(time.now_ms) == 0
    due.run_due(time.now_ms, until_ms=time.now_ms + 2)
    assert called == ["due one", "due two", "next one"], "one of each comes on, however late it is"
    due.run_due(time.now_ms, until_ms=time.now_ms + 2)
    due.run_due(time.now_ms, until_ms=time.now_ms + 2)
    assert called[3:] == ["next two", "next three"]
