"""Batches of a query as its driver knows them: which attempts wrote what, and whose work may be seen in the end."""

from headrace.sim.checkers.transactions import Transaction
from headrace.sim.checkers.violation import Violation, require

ONCE = "a batch that is committed is seen once: all that one commit named, and nothing else"
FENCED_RUN = "a run that a newer one has replaced writes and commits nothing"
KNOWN_COMMIT = "who asks about a batch that was committed is told so"


class CommittedBatch:
    """One batch id of one owner, over all runs that tried it."""

    __slots__ = ("attempts", "committed", "name", "named")

    def __init__(self, name: str) -> None:
        self.name = name
        self.attempts: list[Transaction] = []
        """What every member wrote, named or not."""
        self.named: list[frozenset[Transaction]] = []
        """The sets that commits have asked for."""
        self.committed = False
        """Somebody was told that it is in."""

    def ask(self, members: frozenset[Transaction]) -> None:
        for member in members:
            member.commit_asked = True
        if members not in self.named:
            self.named.append(members)

    def check_once(self, seen: set[int]) -> None:
        """`seen` are the numbers of all record batches that are shown in the end."""
        shown = frozenset(
            attempt for attempt in self.attempts if any(batch.number in seen for batch in attempt.acknowledged)
        )
        for attempt in shown:
            missing = [batch for batch in attempt.acknowledged if batch.number not in seen]
            require(not missing, ONCE, f"{self.name}: {missing[:1]} of {attempt} is not seen, other parts are")
        if not shown and not self.committed:
            return
        wanted = [frozenset(each for each in named if each.acknowledged) for named in self.named]
        if shown not in wanted:
            names = sorted(map(str, shown))
            raise Violation(ONCE, f"{self.name}: {names or 'nothing'} is seen, which no commit has named like this")
