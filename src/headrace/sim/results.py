"""The result of one seed: a trace hash, or the promise that was broken."""

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.sim.checkers.violation import Violation
from headrace.sim.facts import ScenarioFacts
from headrace.sim.world import RunTooLong

TAIL_LINES = 50
NO_CRASH = "the node does not crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    seed: int
    scenario: type[ScenarioFacts]
    brokers: int = 1
    minutes: float
    trace_hash: str
    events: int
    steps: int
    progress: int
    restarts: int
    met: Counter[str] = field(default_factory=Counter)
    must_meet: tuple[str, ...]
    """Faults and events that its scenario requires of a run that counts."""
    violation: str = ""
    """The promise that was broken and how, or nothing."""
    tail: tuple[str, ...] = ()
    """The last events of a failed run."""

    @property
    def ok(self) -> bool:
        return not self.violation

    @property
    def counts(self) -> bool:
        """Return whether the run was hard enough to prove anything."""
        enough = self.progress >= self.scenario.progress_min and self.restarts > 1
        return enough and all(self.met[fault] for fault in self.must_meet)

    @property
    def last_line(self) -> str:
        outcome = f"FAILED invariant: {self.violation}" if self.violation else "ok"
        return f"seed {self.seed} trace {self.trace_hash} {outcome}"

    @property
    def command(self) -> str:
        options = self.scenario.options.format(brokers=self.brokers)
        return f"headrace sim --seed {self.seed}{options} --minutes {self.minutes:g} --trace"


def violation_of(carry_out: Callable[[], None]) -> str:
    """Carry out a run; return the promise that it broke and how, or nothing."""
    try:
        carry_out()
    except (Violation, RunTooLong) as broken:
        return str(broken).partition("\n")[0]
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = place.filename.rpartition("/headrace/")[2]
        return f"{NO_CRASH}: {type(error).__name__}: {error} in {place.name}, {name}:{place.lineno}"
    return ""
