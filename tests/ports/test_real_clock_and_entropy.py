import time

import pytest

from headrace.ports.real.clock import RealClock
from headrace.ports.real.entropy import RealEntropy

pytestmark = pytest.mark.process


def test_the_monotonic_clock_counts_milliseconds():
    clock = RealClock()
    before = time.monotonic()
    now = clock.monotonic_ms()
    assert before * 1000 <= now <= time.monotonic() * 1000


def test_the_wall_clock_is_whole_milliseconds_since_1970():
    before = time.time_ns()
    now = RealClock().wall_ms()
    assert isinstance(now, int)
    assert before // 1_000_000 <= now <= time.time_ns() // 1_000_000


def test_entropy():
    entropy = RealEntropy()
    assert len(entropy.random_bytes(16)) == 16
    assert entropy.random_bytes(16) != entropy.random_bytes(16)
    assert {entropy.below(3) for _ in range(200)} == {0, 1, 2}
    assert entropy.below(1) == 0
    assert all(0 <= entropy.below(300) < 300 for _ in range(200))
    with pytest.raises(ValueError):
        entropy.below(0)
