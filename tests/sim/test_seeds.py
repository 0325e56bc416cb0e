"""Three hundred runs of the simulator, some of each other scenario, and the seeds that once failed."""

import pathlib
import pickle
import tomllib

import pytest

from headrace.sim.report import SeedsReport, failure_text
from headrace.sim.results import SeedResult
from headrace.sim.run import SCENARIOS, SINGLE_SCENARIOS, run_seed
from headrace.sim.scenarios.scenario import UNSYNCED

pytestmark = pytest.mark.slow

SEEDS = 300
SEEDS_PER_TEST = 30
SPARE_SEEDS_MAX = 3
OTHER_PLAYS = [scenario.name for scenario in SINGLE_SCENARIOS if scenario.name != "log"]
SYNCED_BY_COMMITS = {"batch-commits"}
"""Plays whose promises hold after a power cut, even where the topics sync nothing before they answer."""
REGRESSIONS = tomllib.loads((pathlib.Path(__file__).parent / "regressions.toml").read_text())["seed"]


@pytest.fixture
def all_results(tmp_path_factory, worker_id):
    """Of the parts that are done, in whichever worker: adds those of this part, and gives what there is by then."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "seeds"
    folder.mkdir(exist_ok=True)

    def add(first, results):
        part = folder / f"{first}.part"
        part.write_bytes(pickle.dumps(results))
        part.rename(folder / f"{first}.done")
        return [result for path in folder.glob("*.done") for result in pickle.loads(path.read_bytes())]

    return add


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_what_the_broker_promises_holds(first, all_results, virtual_world):
    with virtual_world():
        report = SeedsReport([run_seed(seed) for seed in range(first, first + SEEDS_PER_TEST)])
    assert not report.failed, "\n".join(failure_text(result) for result in report.failed)
    assert not report.uncounted, [result.seed for result in report.uncounted]
    results = all_results(first, report.results)
    assert len(results) < SEEDS or not SeedsReport(results).rare(), "these faults are hardly met"


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize("scenario", OTHER_PLAYS)
def test_what_is_promised_in_other_plays_holds(scenario):
    """A seed that happens to meet too few faults proves little: a later one takes its place."""
    results: list[SeedResult] = []
    for seed in range(SEEDS_PER_TEST + SPARE_SEEDS_MAX):
        if sum(result.counts for result in results) < SEEDS_PER_TEST:
            results.append(run_seed(seed, scenario=scenario))
    report = SeedsReport(results)
    assert not report.failed, "\n".join(failure_text(result) for result in report.failed)
    assert len(report.results) - len(report.uncounted) == SEEDS_PER_TEST, [result.seed for result in report.uncounted]
    assert [fault for fault in SCENARIOS[scenario].met if not report.times(fault)] == []
    loses_unsynced_writes = any(result.met[UNSYNCED] and result.met["power cut"] for result in report.results)
    assert loses_unsynced_writes == (scenario in SYNCED_BY_COMMITS)


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize("found", REGRESSIONS, ids=lambda found: f"{found.get('scenario', 'log')} {found['seed']}")
def test_what_once_failed_holds(found):
    result = run_seed(found["seed"], scenario=found.get("scenario", "log"), minutes=found["minutes"])
    assert result.ok, failure_text(result)
