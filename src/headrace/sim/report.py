"""Report on many seeds: failures, runs that were hard enough to count, and the faults that happened."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.sim.facts import ScenarioFacts
from headrace.sim.results import SeedResult

MET_PERCENT_MIN = 5
"""A fault that fewer seeds meet is not tested, whatever the runs show."""
SEEDS_TO_JUDGE_MIN = 30
"""With fewer seeds the shares prove nothing."""


def faults_of(scenarios: Sequence[type[ScenarioFacts]]) -> list[str]:
    """Return all faults that these scenarios can meet."""
    common = [fault for scenario in scenarios for fault in scenario.common_faults if fault not in scenario.unmet]
    return list(dict.fromkeys((*common, *(fault for scenario in scenarios for fault in scenario.met))))


@dataclass(frozen=True, slots=True)
class SeedsReport:
    results: Sequence[SeedResult]

    @property
    def failed(self) -> list[SeedResult]:
        return [result for result in self.results if not result.ok]

    @property
    def uncounted(self) -> list[SeedResult]:
        """Return seeds that passed without a restart, a torn page, a cut frame, or enough progress."""
        return [result for result in self.results if result.ok and not result.counts]

    @property
    def progress(self) -> int:
        return sum(result.progress for result in self.results)

    @property
    def restarts(self) -> int:
        return sum(result.restarts for result in self.results)

    @property
    def minutes(self) -> float:
        """Return virtual minutes."""
        return sum(result.minutes for result in self.results)

    @property
    def scenarios(self) -> list[type[ScenarioFacts]]:
        return list(dict.fromkeys(result.scenario for result in self.results))

    def met(self) -> dict[str, int]:
        """Return the number of seeds that met each fault."""
        return {fault: sum(result.met[fault] > 0 for result in self.results) for fault in faults_of(self.scenarios)}

    def times(self, fault: str) -> int:
        """Return how often all seeds together met each fault."""
        return sum(result.met[fault] for result in self.results)

    def rare(self) -> list[str]:
        """Return faults that too few seeds met."""
        if len(self.results) < SEEDS_TO_JUDGE_MIN:
            return []
        enough = len(self.results) * MET_PERCENT_MIN / 100
        return [fault for fault, seeds in self.met().items() if seeds < enough]

    @property
    def ok(self) -> bool:
        return not self.failed and not self.rare()


def failure_text(result: SeedResult) -> str:
    """Return everything needed to find the cause."""
    lines = [
        f"seed {result.seed} failed; the last {len(result.tail)} events:",
        *(f"  {line}" for line in result.tail),
        f"invariant: {result.violation}",
        f"again: {result.command}",
    ]
    return "\n".join(lines)
