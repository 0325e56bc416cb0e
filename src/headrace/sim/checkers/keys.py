"""Keys of a compacted topic as their only writers know them: the last written value, and possible later ones."""

from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.violation import Violation

LATEST_STAYS = "compaction keeps the latest value of every key"
NEVER_WRITTEN = 0


class Key:
    """Values of a key are ascending numbers; a tombstone has a number too, which the writer remembers."""

    __slots__ = ("acknowledged", "name", "sent", "tombstones")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.sent = NEVER_WRITTEN
        self.acknowledged = NEVER_WRITTEN
        self.tombstones: set[int] = set()


Shown = dict[bytes, int | None]
"""The last record of each key that a reader has seen; None for a tombstone."""


class KeyHistory:
    """The keys of one partition."""

    def __init__(self, partition: PartitionHistory) -> None:
        self.partition = partition
        self.keys: dict[bytes, Key] = {}

    def key(self, name: bytes) -> Key:
        return self.keys.setdefault(name, Key(name))

    def acknowledged(self) -> dict[bytes, int]:
        """Return what a reader that begins now must see, or something newer."""
        return {name: key.acknowledged for name, key in self.keys.items() if key.acknowledged}

    def check(self, due: dict[bytes, int], shown: Shown, *, at_rest: bool) -> None:
        """Check a complete read of the partition; `due` was acknowledged before it began.

        While cleaning continues, a tombstone may be removed before a reader that has seen the deleted value reaches it:
        delete.retention.ms exists for that.
        """
        for name, number in due.items():
            key, found = self.keys[name], shown.get(name)
            may_be_gone = any(tombstone >= number for tombstone in key.tombstones)
            if found is None and not may_be_gone:
                raise Violation(LATEST_STAYS, f"{self.partition}: {name.decode()} is missing, but {number} was written")
            missed = not at_rest and found is not None and any(tombstone > found for tombstone in key.tombstones)
            if found is not None and not number <= found <= key.sent and not missed:
                raise Violation(LATEST_STAYS, f"{self.partition}: {name.decode()} is {found}, but {number} was written")
        for name, found in shown.items():
            known = self.keys.get(name)
            if known is None or (found is not None and (found > known.sent or found in known.tombstones)):
                raise Violation(LATEST_STAYS, f"{self.partition}: {found} was never written to {name!r}")
