"""The transactional ids that each owner's pool has: which may be lent, and which are at work.

It follows from the records of the ids alone.
"""

from headrace.core.transactions.names import member_id, owner_of, slot_of
from headrace.core.transactions.records import IN_POOL, Member, Transaction
from headrace.core.transactions.states import AT_REST
from headrace.core.transactions.steps import is_open_member


class Pool:
    __slots__ = ("attempts", "free", "open", "partition_count", "slots")

    def __init__(self) -> None:
        self.slots: set[int] = set()
        self.free: set[int] = set()
        """At rest, lent to nobody."""
        self.open: dict[int, Member] = {}
        """Lent, and not ending."""
        self.attempts: dict[Member, int] = {}
        """The same by who has it."""
        self.partition_count = 0
        """Of all of these together."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pool) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]


_EMPTY = Pool()


class Pools:
    def __init__(self) -> None:
        self.by_owner: dict[str, Pool] = {}

    def of(self, owner: str) -> Pool:
        """Only to be looked at."""
        return self.by_owner.get(owner, _EMPTY)

    def follow(self, transactional_id: str, before: Transaction | None, after: Transaction | None) -> None:
        """An id has changed from one to the other."""
        was_pooled = before is not None and before.member is not None
        if not was_pooled and (after is None or after.member is None):
            return
        owner, slot = owner_of(transactional_id), slot_of(transactional_id)
        pool = self.by_owner.setdefault(owner, Pool())
        held_by = pool.open.pop(slot, None)
        if held_by is not None:
            assert before is not None
            del pool.attempts[held_by]
            pool.partition_count -= len(before.partitions)
        pool.free.discard(slot)
        if after is None or after.member is None:
            pool.slots.discard(slot)
            if not pool.slots:
                del self.by_owner[owner]
            return
        pool.slots.add(slot)
        if is_open_member(after):
            pool.partition_count += len(after.partitions)
            pool.open[slot] = after.member
            pool.attempts[after.member] = slot
        elif after.state in AT_REST and after.member == IN_POOL:
            pool.free.add(slot)

    def vacant_slot(self, owner: str, transactions: dict[str, Transaction]) -> int:
        """One that is free, the lowest, so that a pool does not wander; else the next that nobody has."""
        pool = self.of(owner)
        if pool.free:
            return min(pool.free)
        slot = len(pool.slots)
        while member_id(owner, slot) in transactions:
            slot += 1
        return slot
