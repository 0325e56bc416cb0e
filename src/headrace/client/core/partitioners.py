"""Which partition a key belongs to, by the hash that the Java client uses."""

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995


def murmur2(key: bytes) -> int:
    """The 32-bit hash of the Java client, as an unsigned number."""
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
    """Where every client of a topic puts this key, so that they agree."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
