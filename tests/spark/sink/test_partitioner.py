"""Keys go where the Java client puts them; rows without a key are spread in runs."""

import random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.partitioners import murmur2, partition_for_key
from headrace.spark.sink.partitioner import (
    LONG_KEY_BYTES,
    RUN_BYTES_MIN,
    murmur2_column,
    partitions_for_keys,
    partitions_in_runs,
)


def test_ten_thousand_keys_hash_as_one_by_one() -> None:
    draw = random.Random(7)
    keys = [draw.randbytes(draw.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 100))) for _ in range(9_990)]
    keys += [draw.randbytes(LONG_KEY_BYTES + place) for place in range(-5, 5)]
    draw.shuffle(keys)
    column = pa.array(keys, pa.binary())
    assert murmur2_column(column).tolist() == [murmur2(key) for key in keys]
    assert partitions_for_keys(column, 13).tolist() == [partition_for_key(key, 13) for key in keys]


@given(st.lists(st.none() | st.binary(max_size=30), max_size=30), st.integers(0, 5))
def test_nulls_and_slices_do_not_move_other_keys(keys: list[bytes | None], first: int) -> None:
    column = pa.array(keys, pa.binary()).slice(first)
    hashes = murmur2_column(column).tolist()
    assert len(hashes) == len(column)
    for key, found in zip(keys[first:], hashes, strict=True):
        assert key is None or murmur2(key) == found


def test_fixed_vectors_of_the_java_client() -> None:
    keys = [b"21", b"foobar", b"a-little-bit-long-string", b"abc"]
    expected = [-973932308, -790332482, -985981536, 479470107]
    assert murmur2_column(pa.array(keys, pa.binary())).view(np.int32).tolist() == expected


def test_rows_without_a_key_fill_partitions_in_turn() -> None:
    sizes = np.full(10_000, 100, dtype=np.int64)
    chosen = partitions_in_runs(sizes, 4, first=3, run_bytes_max=1 << 20)
    assert np.bincount(chosen).tolist() == [2500] * 4
    assert chosen[0] == 3
    assert np.count_nonzero(np.diff(chosen)) == 3


def test_few_rows_without_a_key_stay_together() -> None:
    sizes = np.full(RUN_BYTES_MIN // 100, 100, dtype=np.int64)
    assert set(partitions_in_runs(sizes, 50, first=7, run_bytes_max=1 << 20).tolist()) == {7}


def test_a_run_is_no_longer_than_a_batch() -> None:
    sizes = np.full(1_000, 1024, dtype=np.int64)
    chosen = partitions_in_runs(sizes, 2, first=0, run_bytes_max=100 * 1024)
    assert np.count_nonzero(np.diff(chosen)) == 9
