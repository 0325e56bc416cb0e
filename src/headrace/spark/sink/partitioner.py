"""Partitioner of columns: the Java client's murmur2 of all keys at once.

There is one pass per word position, with the longest keys first: each pass works on the rows that have a word at that
position. Rows without a key go to one partition after the other, in runs, so that batches are full.
"""

import numpy as np
from numpy.typing import NDArray

from headrace.client.core.partitioners import murmur2
from headrace.spark.sink.columns import Column, binary_parts

LONG_KEY_BYTES = 4096
"""Longer keys are hashed one by one, which is cheaper than a pass over few rows."""

RUN_BYTES_MIN = 16 * 1024
"""The smallest run of rows without a key to one partition: the batch size of the Java client."""

_SEED = np.uint32(0x9747B28C)
_MULTIPLIER = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)


def murmur2_column(keys: Column) -> NDArray[np.uint32]:
    """Return the hash of every key; the hash of a null has no meaning."""
    if len(keys) == 0:
        return np.zeros(0, dtype=np.uint32)
    offsets, content = binary_parts(keys)
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    long_count = int(np.count_nonzero(lengths > LONG_KEY_BYTES))
    hashes = np.empty(len(keys), dtype=np.uint32)
    for row in order[:long_count].tolist():
        hashes[row] = murmur2(content[offsets[row] : offsets[row + 1]].tobytes())
    rows = order[long_count:]
    hashes[rows] = _mixed(content, starts[rows], lengths[rows].astype(np.uint32))
    return hashes


def _mixed(content: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Hash keys that are sorted by length, longest first."""
    padded = np.concatenate((content, np.zeros(4, dtype=np.uint8)))
    words_at = np.ndarray(
        len(padded) - 3, dtype="<u4", buffer=padded, strides=(1,)
    )  # one for every byte it may begin at
    state = _SEED ^ lengths
    words = lengths >> np.uint32(2)
    alive = len(words)
    for position in range(int(words[0]) if alive else 0):
        alive = int(np.searchsorted(-words.astype(np.int64), -position, side="left"))
        word = words_at[starts[:alive] + 4 * position] * _MULTIPLIER
        word = (word ^ (word >> np.uint32(24))) * _MULTIPLIER
        state[:alive] = state[:alive] * _MULTIPLIER ^ word
    rest = lengths & np.uint32(3)
    ends = starts + 4 * words.astype(np.int64)
    for count in (1, 2, 3):
        chosen = np.flatnonzero(rest == count)
        tail = words_at[ends[chosen]] & np.uint32((1 << 8 * count) - 1)
        state[chosen] = (state[chosen] ^ tail) * _MULTIPLIER
    state = (state ^ (state >> np.uint32(13))) * _MULTIPLIER
    return state ^ (state >> np.uint32(15))


def partitions_for_keys(keys: Column, partition_count: int) -> NDArray[np.int32]:
    """Return the partitions of these keys, as all of Kafka's clients compute them."""
    return ((murmur2_column(keys) & _POSITIVE) % np.uint32(partition_count)).astype(np.int32)


def partitions_in_runs(
    sizes: NDArray[np.int64], partition_count: int, *, first: int, run_bytes_max: int
) -> NDArray[np.int32]:
    """Return partitions of rows without a key: runs of a useful size, distributed evenly, beginning at `first`."""
    total = int(sizes.sum())
    run_bytes = max(RUN_BYTES_MIN, min(run_bytes_max, -(-total // partition_count)))
    runs = (np.cumsum(sizes) - sizes) // run_bytes
    return ((first + runs) % partition_count).astype(np.int32)
