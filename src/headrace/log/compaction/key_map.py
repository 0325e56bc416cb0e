"""Map each key to the offset of its last record, in bounded memory.

Short keys are stored as they are; longer ones as a hash long enough that no two keys collide by chance. When the map is
full, the pass ends at that offset, and the next pass continues from there.
"""

from collections.abc import Iterable
from hashlib import blake2b

from .records import Entry

KEY_BYTES_MAX = 40
"""Longer keys are hashed; a textual UUID has 36 bytes."""
HASH_BYTES = 48
"""Larger than the longest key that is stored as it is, so that a hash is never mistaken for a key."""
ENTRY_BYTES = 240
"""Memory cost of one key: its bytes, its offset and its share of a table that is being enlarged."""


class KeyMap:
    def __init__(self, bytes_max: int) -> None:
        self.entries_max = max(bytes_max // ENTRY_BYTES, 1)
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self.entries_max

    def put(self, base_offset: int, entries: Iterable[Entry]) -> None:
        """HOT. Add the keys of a batch; later batches overwrite earlier ones."""
        offsets = self._offsets
        for _start, _end, delta, _time, key, _has_value in entries:
            if key is not None:
                offsets[key if len(key) <= KEY_BYTES_MAX else _hashed(key)] = base_offset + delta

    def kept(self, base_offset: int, entries: Iterable[Entry], *, tombstones: bool) -> list[Entry]:
        """HOT. Return the records that no later record of the same key replaces; those without a value only with
        `tombstones`.
        """
        last_offset = self._offsets.get
        kept = []
        for entry in entries:
            key = entry[4]
            if key is None:
                continue  # a record without a key can never be replaced; Kafka's cleaner drops such records too
            if len(key) > KEY_BYTES_MAX:
                key = _hashed(key)
            if base_offset + entry[2] >= last_offset(key, -1) and (tombstones or entry[5]):
                kept.append(entry)
        return kept


def _hashed(key: bytes) -> bytes:
    return blake2b(key, digest_size=HASH_BYTES).digest()
