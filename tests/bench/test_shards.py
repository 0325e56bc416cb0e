"""The numbers of shards that are measured, and the rates in relation to one shard."""

from headrace.bench.figures import Measurement
from headrace.bench.shards import scaling_lines, shard_counts


def test_the_numbers_of_shards_double_up_to_the_largest() -> None:
    assert [shard_counts(number) for number in (1, 2, 3, 4, 6, 16)] == [
        [1],
        [1, 2],
        [1, 2, 3],
        [1, 2, 4],
        [1, 2, 4, 6],
        [1, 2, 4, 8, 16],
    ]


def test_rates_are_shown_in_relation_to_one_shard() -> None:
    found = [
        Measurement(load="small", subject=subject, client="", rounds=({"requests_per_second": rate},))
        for subject, rate in (("1 shard", 100.0), ("2 shards", 170.0), ("4 shards", 310.0))
    ]
    assert scaling_lines(found) == ["small: times the rate of one shard: 2 shards 1.70, 4 shards 3.10"]
