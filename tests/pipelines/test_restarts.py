"""Restarts are counted within a window, and healthy batches clear the count."""

from headrace.spark.pipelines.definition import Restart
from headrace.spark.pipelines.restarts import HEALTHY_BATCHES, RestartBudget


def budget(now: list[float]) -> RestartBudget:
    return RestartBudget(Restart(attempts=2, backoff_ms=500, window_ms=60_000), lambda: now[0])


def test_attempts_are_used_up_within_the_window_only() -> None:
    now = [0.0]
    found = budget(now)
    assert [found.take(), found.take(), found.take()] == [1, 2, None]
    now[0] = 61.0
    assert [found.take(), found.take(), found.take()] == [1, 2, None]
    assert found.text(1, "x") == "restart 1 of 2 in 0.5 s after: x"


def test_failures_now_and_then_never_use_them_up() -> None:
    now = [0.0]
    found = budget(now)
    for _ in range(1_000):
        now[0] += 40.0
        assert found.take() is not None


def test_healthy_batches_clear_the_count() -> None:
    found = budget([0.0])
    for _ in range(20):
        assert [found.take(), found.take()] == [1, 2]
        for _ in range(HEALTHY_BATCHES):
            found.note_batch()
    assert (found.take(), found.take()) == (1, 2)
    for _ in range(HEALTHY_BATCHES - 1):
        found.note_batch()
    assert found.take() is None


def test_without_attempts_there_is_no_restart() -> None:
    assert RestartBudget(Restart(attempts=0)).take() is None
