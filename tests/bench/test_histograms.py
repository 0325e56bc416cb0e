"""Latency buckets: contiguous, narrow, and percentiles that a sorted list agrees with."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.bench.histograms import bucket_of, histogram_of, merged, middle_of, percentile_us

NANOSECONDS = st.integers(0, 1 << 40)


@given(NANOSECONDS)
def test_a_bucket_is_right_to_three_percent(nanoseconds: int) -> None:
    assert abs(middle_of(bucket_of(nanoseconds)) - nanoseconds) <= max(1, nanoseconds / 32)


@given(st.integers(0, 1 << 20))
def test_buckets_follow_one_another(nanoseconds: int) -> None:
    assert bucket_of(nanoseconds + 1) - bucket_of(nanoseconds) in (0, 1)


@given(st.lists(st.floats(1e-6, 10), min_size=1), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_percentiles_are_those_of_the_sorted_times(times: list[float], fraction: float) -> None:
    rank = max(0, -int(-fraction * len(times) // 1) - 1)
    expected_us = sorted(times)[rank] * 1e6
    assert abs(percentile_us(histogram_of(times), fraction) - expected_us) <= expected_us / 16


def test_merged_counts_add_up() -> None:
    assert merged([{1: 2, 5: 1}, {5: 3}]) == {1: 2, 5: 4}
    assert percentile_us(merged([]), 0.5) == 0
