"""Run one seed of any scenario: the entry of `headrace sim`, of the tests and of the long campaigns."""

from collections.abc import Callable
from typing import Protocol

from headrace.sim.cluster.run import ClusterRun, ClusterScenario
from headrace.sim.facts import ScenarioFacts
from headrace.sim.machines.raft_run import MachinesScenario, RaftRun
from headrace.sim.node_run import SimulationRun
from headrace.sim.results import TAIL_LINES, SeedResult, violation_of
from headrace.sim.scenarios.batch_commits import BatchCommitsScenario
from headrace.sim.scenarios.compaction import CompactionScenario
from headrace.sim.scenarios.groups import GroupsScenario
from headrace.sim.scenarios.log import LogScenario
from headrace.sim.scenarios.scenario import Scenario
from headrace.sim.scenarios.transactions import TransactionsScenario
from headrace.sim.trace import Trace

MINUTE_MS = 60_000
SINGLE_SCENARIOS: tuple[type[Scenario], ...] = (
    LogScenario,
    GroupsScenario,
    TransactionsScenario,
    BatchCommitsScenario,
    CompactionScenario,
)
"""Scenarios of one broker."""
NODE_SCENARIOS: tuple[type[ScenarioFacts], ...] = (*SINGLE_SCENARIOS, ClusterScenario)
"""Scenarios of whole brokers."""
ALL_SCENARIOS: tuple[type[ScenarioFacts], ...] = (*NODE_SCENARIOS, MachinesScenario)
SCENARIOS = {scenario.name: scenario for scenario in ALL_SCENARIOS}


class SeedRun(Protocol):
    """A run of one seed."""

    def carry_out(self) -> None: ...

    @property
    def trace(self) -> Trace: ...

    @property
    def steps(self) -> int: ...

    @property
    def progress(self) -> int: ...

    @property
    def restarts(self) -> int: ...

    def must_meet(self) -> tuple[str, ...]: ...


def run_seed(
    seed: int,
    *,
    scenario: str = LogScenario.name,
    brokers: int | None = None,
    minutes: float | None = None,
    show: Callable[[str], object] | None = None,
) -> SeedResult:
    """Run one seed; `show` gets every event as it happens."""
    facts = SCENARIOS[scenario]
    minutes = facts.minutes if minutes is None else minutes
    brokers = facts.brokers if brokers is None else brokers
    run = _new_run(facts, seed, brokers=brokers, duration_ms=minutes * MINUTE_MS)
    run.trace.show = show
    violation = violation_of(run.carry_out)
    return SeedResult(
        seed=seed,
        scenario=facts,
        brokers=brokers,
        minutes=minutes,
        trace_hash=run.trace.hash,
        events=run.trace.events,
        steps=run.steps,
        progress=run.progress,
        restarts=run.restarts,
        met=run.trace.met,
        must_meet=run.must_meet(),
        violation=violation,
        tail=tuple(run.trace.tail)[-TAIL_LINES:] if violation else (),
    )


def _new_run(facts: type[ScenarioFacts], seed: int, *, brokers: int, duration_ms: float) -> SeedRun:
    if facts is ClusterScenario:
        return ClusterRun(seed, brokers=brokers, duration_ms=duration_ms)
    if facts is MachinesScenario:
        return RaftRun(seed, voters=brokers, duration_ms=duration_ms)
    assert issubclass(facts, Scenario)
    return SimulationRun(seed, facts(), duration_ms=duration_ms)
