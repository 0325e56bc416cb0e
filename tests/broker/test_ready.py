"""Order of service when more connections are ready than a turn has time for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.net.ready import Ready
from headrace.model.limits import EVENTS_BETWEEN_LOOKS
from headrace.ports.network import BROKEN, READABLE, WRITABLE


def always(_event):
    return True


def served(ready, fresh, events_max, is_wanted=always):
    order = ready.with_waiting(fresh, is_wanted)
    ready.put_off(order[events_max:])
    return [token for token, _ in order[:events_max]]


def test_who_came_last_is_not_behind_a_thousand_that_came_at_once():
    ready = Ready()
    crowd = [(token, READABLE) for token in range(1000)]
    assert served(ready, crowd, 4) == [0, 1, 2, 3]
    assert ready
    newcomer = (5000, READABLE)
    turn = served(ready, [newcomer, *crowd], 2 * EVENTS_BETWEEN_LOOKS)
    assert turn[0] == 5000
    assert 4 in turn, "the crowd goes on as well"


@given(st.lists(st.tuples(st.sets(st.integers(0, 60)), st.integers(1, 9)), max_size=30))
def test_each_is_served_once_in_each_round(turns):
    """Every ready connection is served after a bounded number of turns, and never twice in one."""
    ready = Ready()
    owed: dict[Any, Any] = {}
    for fresh, events_max in turns:
        for token in fresh:
            owed.setdefault(token, 0)
        turn = served(ready, [(token, READABLE) for token in sorted(fresh)], events_max)
        assert len(turn) == len(set(turn))
        assert set(turn) <= set(owed)
        for token in turn:
            del owed[token]
    rounds = 0
    while ready:
        rounds += 1
        assert rounds <= 61, "those who wait do not come to an end"
        for token in served(ready, [], 1):
            del owed[token]
    assert not owed


def test_what_was_true_a_turn_ago_is_believed_only_if_it_is_still_waited_for():
    ready = Ready()
    few = [(token, READABLE) for token in range(EVENTS_BETWEEN_LOOKS)]
    ready.put_off([(100, READABLE | BROKEN), (101, WRITABLE), (102, BROKEN)])
    order = ready.with_waiting(few, lambda event: event[0] == 100 and bool(event[1] & READABLE))
    assert order == [*few, (100, READABLE)], "only the next poll reports that it broke"
