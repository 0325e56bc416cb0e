"""The pools of transactional ids that owners lend to their tasks: the free ids and the borrowed ones.

A pool is derived from the records of its ids alone.
"""

from headrace.core.transactions.names import owner_of, pooled_id, slot_of
from headrace.core.transactions.records import IN_POOL, Borrower, TransactionMetadata
from headrace.core.transactions.states import AT_REST
from headrace.core.transactions.steps import is_open_writer


class Pool:
    __slots__ = ("attempts", "free", "open", "partition_count", "slots")

    def __init__(self) -> None:
        self.slots: set[int] = set()
        self.free: set[int] = set()
        """Slots at rest, which may be lent."""
        self.open: dict[int, Borrower] = {}
        """Slots that a writer has borrowed and whose end is not decided."""
        self.attempts: dict[Borrower, int] = {}
        """The slot of each open writer."""
        self.partition_count = 0
        """The sum of the partitions of all open writers."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pool) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]


_EMPTY = Pool()


class Pools:
    def __init__(self) -> None:
        self.by_owner: dict[str, Pool] = {}

    def of(self, owner: str) -> Pool:
        """Return the owner's pool, which the caller must not change."""
        return self.by_owner.get(owner, _EMPTY)

    def follow(
        self, transactional_id: str, before: TransactionMetadata | None, after: TransactionMetadata | None
    ) -> None:
        """Update the pool after the record of one id."""
        was_pooled = before is not None and before.writer is not None
        if not was_pooled and (after is None or after.writer is None):
            return
        owner, slot = owner_of(transactional_id), slot_of(transactional_id)
        pool = self.by_owner.setdefault(owner, Pool())
        borrower = pool.open.pop(slot, None)
        if borrower is not None:
            assert before is not None
            del pool.attempts[borrower]
            pool.partition_count -= len(before.partitions)
        pool.free.discard(slot)
        if after is None or after.writer is None:
            pool.slots.discard(slot)
            if not pool.slots:
                del self.by_owner[owner]
            return
        pool.slots.add(slot)
        if is_open_writer(after):
            pool.partition_count += len(after.partitions)
            pool.open[slot] = after.writer
            pool.attempts[after.writer] = slot
        elif after.state in AT_REST and after.writer == IN_POOL:
            pool.free.add(slot)

    def vacant_slot(self, owner: str, transactions: dict[str, TransactionMetadata]) -> int:
        """Return the lowest free slot, so that a pool stays small, or the next unused one."""
        pool = self.of(owner)
        if pool.free:
            return min(pool.free)
        slot = len(pool.slots)
        while pooled_id(owner, slot) in transactions:
            slot += 1
        return slot
