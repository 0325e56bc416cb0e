"""Transactions as their producers know them: what was written in each, and what may be visible."""

from typing import TYPE_CHECKING

from headrace.sim.checkers.violation import Violation

if TYPE_CHECKING:
    from headrace.sim.checkers.history import SentBatch

ALL_OR_NOTHING = "a reader of committed records sees all of a transaction or nothing"
FENCED_PRODUCER = "a producer whose transactional id was taken over writes nothing"


class TransactionHistory:
    """Visible only after its commit was requested, and for sure once that was acknowledged."""

    __slots__ = ("acknowledged", "commit_asked", "committed", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.acknowledged: list[SentBatch] = []
        """Batches that partitions have accepted."""
        self.commit_asked = False
        self.committed = False

    def __str__(self) -> str:
        return f"transaction {self.name}"

    def shown(self, batch: "SentBatch") -> None:
        """Check a batch that a reader of committed records was shown."""
        if not self.commit_asked:
            raise Violation(ALL_OR_NOTHING, f"{batch} is shown, but no commit of {self} was requested")

    def check_whole(self, seen: set[int]) -> None:
        """Check visibility; `seen` are the numbers of all batches that are shown in the end."""
        found = [batch for batch in self.acknowledged if batch.number in seen]
        if len(found) == len(self.acknowledged) or (not found and not self.committed):
            return
        missing = next(batch for batch in self.acknowledged if batch.number not in seen)
        outcome = "was committed" if self.committed else f"is visible in part ({len(found)} batches)"
        raise Violation(ALL_OR_NOTHING, f"{missing} is not shown, although {self} {outcome}")
