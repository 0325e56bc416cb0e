"""kill -9 at named points and at random moments, a slice of what `python -m tests.disks.chaos` does at length."""

import os

import pytest

from tests.disks.chaos import pauses, plans_of, random_kills, sweep

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

SEED = int(os.environ.get("DISKS_SEED", "1"))
"""Another draw of the points by `DISKS_SEED=7 make test ARGS=tests/disks/test_failpoints.py`."""

POINTS = 6
KILLS = 4


def test_an_end_at_named_points_loses_nothing_and_doubles_nothing(tmp_path):
    _, ends, _, acked = sweep(
        tmp_path, seed=SEED, numbers_max=2, check_every=2, only=POINTS, census_s=1.0, point_s_max=15.0
    )
    assert ends >= POINTS // 2, "the load comes to most of the points"
    assert acked > 100


def test_kills_at_random_moments_lose_nothing_and_double_nothing(tmp_path):
    kills, acked = random_kills(tmp_path, seed=SEED, count=KILLS, check_every=1)
    assert kills == KILLS
    assert acked > 100


def test_a_process_that_was_stopped_continues(tmp_path):
    _, acked = pauses(tmp_path, seed=SEED, count=1, seconds=(0.5, 1.0))
    assert acked > 100


def test_every_point_is_met_before_in_and_after_its_call():
    plans = list(plans_of({"write log": 7, "rename checkpoint": 1}, "ready", numbers_max=3))
    assert {(plan["point"], plan["number"], plan["when"]) for plan in plans} == {
        *(("write log", number, when) for number in (1, 3, 5) for when in ("before", "half", "after")),
        ("rename checkpoint", 1, "before"),
        ("rename checkpoint", 1, "after"),
    }
