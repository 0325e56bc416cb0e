"""Latency histograms with 32 buckets per doubling of nanoseconds, which gives percentiles to within 3 %.

replay.c uses the same buckets.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

Histogram = Mapping[int, int]
"""Counts by bucket number."""

_EXACT_BELOW = 64
_PER_DOUBLING_BITS = 5


def bucket_of(nanoseconds: int) -> int:
    if nanoseconds < _EXACT_BELOW:
        return nanoseconds
    shift = nanoseconds.bit_length() - 1 - _PER_DOUBLING_BITS
    return (shift << _PER_DOUBLING_BITS) + (nanoseconds >> shift)


def middle_of(bucket: int) -> float:
    """Return the middle of a bucket in nanoseconds."""
    if bucket < _EXACT_BELOW:
        return float(bucket)
    shift = (bucket >> _PER_DOUBLING_BITS) - 1
    lowest = (bucket - (shift << _PER_DOUBLING_BITS)) << shift
    return lowest + (1 << shift) / 2


def merged(histograms: Iterable[Histogram]) -> Histogram:
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return total


def percentile_us(histogram: Histogram, fraction: float) -> float:
    """Return the percentile for this fraction in microseconds; 0 for an empty histogram."""
    wanted = fraction * sum(histogram.values())
    seen = 0
    for bucket in sorted(histogram):
        seen += histogram[bucket]
        if seen >= wanted:
            return middle_of(bucket) / 1000
    return 0.0


def histogram_of(times_seconds: Iterable[float]) -> Histogram:
    return Counter(bucket_of(int(seconds * 1e9)) for seconds in times_seconds)
