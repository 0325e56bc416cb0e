"""The batches of a query as its driver knows them: the writes of each attempt, and the attempts that may be visible."""

from headrace.sim.checkers.transactions import TransactionHistory
from headrace.sim.checkers.violation import Violation, require

ONCE = "a committed batch is visible once: everything that one commit named, and nothing else"
FENCED_RUN = "a run that a newer one has fenced writes and commits nothing"
KNOWN_COMMIT = "a request for a committed batch gets the result already committed"


class CommittedBatch:
    """One batch id of one owner, over all runs that tried it."""

    __slots__ = ("attempts", "committed", "name", "named")

    def __init__(self, name: str) -> None:
        self.name = name
        self.attempts: list[TransactionHistory] = []
        """The transactions of all writers, named or not."""
        self.named: list[frozenset[TransactionHistory]] = []
        """The sets of writers that commits have named."""
        self.committed = False
        """True if a response has confirmed the commit."""

    def ask(self, writers: frozenset[TransactionHistory]) -> None:
        for writer in writers:
            writer.commit_asked = True
        if writers not in self.named:
            self.named.append(writers)

    def check_once(self, seen: set[int]) -> None:
        """Check the batch against `seen`, the numbers of all record batches that are visible in the end."""
        shown = frozenset(
            attempt for attempt in self.attempts if any(batch.number in seen for batch in attempt.acknowledged)
        )
        for attempt in shown:
            missing = [batch for batch in attempt.acknowledged if batch.number not in seen]
            require(not missing, ONCE, f"{self.name}: {missing[:1]} of {attempt} is not visible, other parts are")
        if not shown and not self.committed:
            return
        wanted = [frozenset(each for each in named if each.acknowledged) for named in self.named]
        if shown not in wanted:
            names = sorted(map(str, shown))
            raise Violation(ONCE, f"{self.name}: {names or 'nothing'} is visible, which no commit has named")
