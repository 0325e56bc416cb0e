"""Full collections come when the loop has time for them, and to the node that runs as a process only."""

import gc

import pytest

from headrace.broker import gc_policy
from headrace.broker.gc_policy import CHECK_INTERVAL_MS, COLLECTION_INTERVAL_MS, COLLECTION_OVERDUE_MS, GcPolicy
from headrace.broker.metrics import Metrics
from headrace.broker.timers import Timers
from headrace.sim.clock import VirtualClock, VirtualTime


class CountedCollections:
    """Python's collector, but for what would change this test's process."""

    def __init__(self):
        self.collections = 0
        self.thresholds = gc.get_threshold()

    def collect(self):
        self.collections += 1

    def freeze(self):
        pass

    def get_threshold(self):
        return self.thresholds

    def set_threshold(self, *thresholds):
        self.thresholds = thresholds


@pytest.fixture
def collector(monkeypatch):
    counted = CountedCollections()
    monkeypatch.setattr(gc_policy, "gc", counted)
    return counted


def pass_time(time, timers, duration_ms, each_check):
    for _ in range(int(duration_ms / CHECK_INTERVAL_MS)):
        each_check()
        time.advance(CHECK_INTERVAL_MS)
        timers.run_due(time.now_ms)


def test_an_idle_loop_collects_and_a_busy_one_only_when_it_is_overdue(collector):
    time, metrics = VirtualTime(), Metrics()
    timers = Timers(VirtualClock(time))
    young = gc.get_threshold()[:2]
    GcPolicy(timers=timers, metrics=metrics).begin()
    assert collector.collections == 1
    assert collector.thresholds[:2] == young
    assert collector.thresholds[2] > 1_000_000, "no full collection comes by itself"

    def busy():
        metrics.loop_turn(100.0)

    pass_time(time, timers, COLLECTION_OVERDUE_MS - CHECK_INTERVAL_MS, busy)
    assert collector.collections == 1
    pass_time(time, timers, 2 * CHECK_INTERVAL_MS, busy)
    assert collector.collections == 2
    pass_time(time, timers, COLLECTION_INTERVAL_MS - 2 * CHECK_INTERVAL_MS, lambda: None)
    assert collector.collections == 2, "not again at once"
    pass_time(time, timers, 3 * CHECK_INTERVAL_MS, lambda: None)
    assert collector.collections == 3
