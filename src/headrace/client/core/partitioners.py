"""Partitioners: by the hash of the Java client, by that of librdkafka, or round-robin."""

from collections.abc import Callable
from zlib import crc32

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995


def murmur2(key: bytes) -> int:
    """Return the 32-bit hash of the Java client, as an unsigned number."""
    length = len(key)
    state = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(key[position : position + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ (word >> 24)) * _MULTIPLIER & _MASK
        state = state * _MULTIPLIER & _MASK ^ word
    if length > whole:
        state = (state ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    state = (state ^ (state >> 13)) * _MULTIPLIER & _MASK
    return state ^ (state >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition of this key, on which all clients of a topic agree."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def partition_for_checksum(key: bytes, partition_count: int) -> int:
    """Return the partition of this key by librdkafka's "consistent" partitioners."""
    return crc32(key) % partition_count


Choose = Callable[[str, bytes | None, int], int]
"""(topic, key, number of partitions) -> partition"""


class RoundRobin:
    """Assigns records to partitions in turn, with or without keys."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __call__(self, topic: str, _key: bytes | None, partition_count: int) -> int:
        chosen = self._next.get(topic, 0) % partition_count
        self._next[topic] = chosen + 1
        return chosen
