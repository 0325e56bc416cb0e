"""Keys of a compacted topic as their only writers know them: what was written last, and what may have been."""

from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.violation import Violation

LATEST_STAYS = "compaction keeps the latest value of every key"
NEVER_WRITTEN = 0


class Key:
    """Values of a key are numbers that rise; a tombstone has a number too, which the writer remembers."""

    __slots__ = ("acknowledged", "name", "sent", "tombstones")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.sent = NEVER_WRITTEN
        self.acknowledged = NEVER_WRITTEN
        self.tombstones: set[int] = set()


Shown = dict[bytes, int | None]
"""The last record of each key that a reader has seen; None for a tombstone."""


class KeyHistory:
    """Of one partition."""

    def __init__(self, partition: PartitionHistory) -> None:
        self.partition = partition
        self.keys: dict[bytes, Key] = {}

    def key(self, name: bytes) -> Key:
        return self.keys.setdefault(name, Key(name))

    def acknowledged(self) -> dict[bytes, int]:
        """What a reader that begins now must see, or something newer."""
        return {name: key.acknowledged for name, key in self.keys.items() if key.acknowledged}

    def check(self, due: dict[bytes, int], shown: Shown, *, at_rest: bool) -> None:
        """A reader has read all of the partition; `due` was acknowledged before it began.

        Unless nothing is cleaned any more, a tombstone may be gone before a reader comes to it that has seen what it
        deletes: that is what delete.retention.ms is for.
        """
        for name, number in due.items():
            key, found = self.keys[name], shown.get(name)
            may_be_gone = any(tombstone >= number for tombstone in key.tombstones)
            if found is None and not may_be_gone:
                raise Violation(LATEST_STAYS, f"{self.partition}: {name.decode()} is gone, {number} was written")
            missed = not at_rest and found is not None and any(tombstone > found for tombstone in key.tombstones)
            if found is not None and not number <= found <= key.sent and not missed:
                raise Violation(LATEST_STAYS, f"{self.partition}: {name.decode()} is {found}, {number} was written")
        for name, found in shown.items():
            known = self.keys.get(name)
            if known is None or (found is not None and (found > known.sent or found in known.tombstones)):
                raise Violation(LATEST_STAYS, f"{self.partition}: nobody wrote {found} to {name!r}")
