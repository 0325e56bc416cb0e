"""The scenario of batch commits: queries whose batches many tasks write and one request commits, and readers."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.sim.checkers.coordinators import CoordinatorChecks
from headrace.sim.context import RunContext
from headrace.sim.entropy import SeededEntropy
from headrace.sim.scenarios.transactions import TransactionsScenario
from headrace.sim.workloads.administrator import Administrator
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.committed_readers import CommittedReader
from headrace.sim.workloads.queries import Query


class BatchCommitsScenario(TransactionsScenario):
    name: ClassVar[str] = "batch-commits"
    options: ClassVar[str] = " --scenario batch-commits"
    unmet: ClassVar[tuple[str, ...]] = (*TransactionsScenario.unmet, "offset by time delayed", "unsynced page torn")
    """No client looks offsets up here, and writes are synced at once, so that hardly anything can be torn."""
    progress_unit: ClassVar[str] = "batches committed as one"
    progress_min: ClassVar[int] = 20

    @property
    def with_power_cuts(self) -> bool:
        """Always, since a commit is synced by itself."""
        return True

    def __init__(self) -> None:
        super().__init__()
        self._queries: list[Query] = []

    def clients(self, context: RunContext, entropy: SeededEntropy) -> Sequence[Client]:
        self._checks = CoordinatorChecks(context)
        self._queries = [Query(context, f"query {number}", context.targets) for number in range(2 + entropy.below(2))]
        return [*self._queries, CommittedReader(context, "committed", context.targets), Administrator(context)]

    def progress(self, context: RunContext) -> int:
        return sum(query.committed for query in self._queries)

    def check_ends(self, seen: set[int]) -> None:
        for query in self._queries:
            for batch in query.batches:
                batch.check_once(seen)
