"""The comparison of two commits: the change within each round, and its interval."""

from random import Random

import pytest

from tools.commit_figures import change_of


def test_noise_that_both_commits_share_does_not_count():
    chance = Random(1)
    noise = [chance.uniform(0.5, 2.0) for _ in range(20)]
    change = change_of([10 * factor for factor in noise], [10.3 * factor for factor in noise])
    assert change == pytest.approx((0.03, 0.03, 0.03))
    assert str(change) == "+3.0 % (+3.0 to +3.0 %)"


def test_the_interval_holds_the_change_and_is_the_same_each_time():
    chance = Random(2)
    old = [chance.gauss(10, 0.5) for _ in range(20)]
    new = [chance.gauss(10, 0.5) for _ in range(20)]
    change = change_of(old, new)
    assert change.low < 0 < change.high
    assert change.low <= change.middle <= change.high
    assert change == change_of(old, new)


def test_one_disturbed_round_does_not_move_the_change():
    assert change_of([10.0] * 20, [10.1] * 19 + [40.0]).middle == pytest.approx(0.01)
