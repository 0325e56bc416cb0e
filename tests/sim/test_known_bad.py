"""The simulator tested: it must notice every known fault within a few seeds."""

import pytest

from headrace.core.replication.leader import Leader
from headrace.sim.run import run_seed
from tests.sim.known_bad import KNOWN_BAD, SELDOM_MET, is_noticed
from tests.sim.likely_seeds import FIRST_TO_NOTICE, likely_first

pytestmark = pytest.mark.slow

SEEDS_MAX = 90
"""The rarest of these faults needs a jump of the clock between two runs of an owner, and is noticed by seed 74."""
SOON_NOTICED = [(scenario, put_in) for scenario, put_in in KNOWN_BAD if put_in not in SELDOM_MET]


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize(("scenario", "put_in"), SOON_NOTICED, ids=lambda put_in: getattr(put_in, "__name__", put_in))
def test_a_known_fault_is_noticed(scenario, put_in, monkeypatch):
    put_in(monkeypatch)
    seeds = likely_first(put_in.__name__, SEEDS_MAX)
    assert any(is_noticed(seed, scenario) for seed in seeds), f"{SEEDS_MAX} seeds did not notice"


def test_a_fault_that_its_likely_seed_does_not_notice_is_looked_for_with_all_others():
    seeds_max = max(*FIRST_TO_NOTICE.values(), SEEDS_MAX) + 1
    for fault, likely in [*FIRST_TO_NOTICE.items(), ("another fault", 0)]:
        tried = list(likely_first(fault, seeds_max))
        assert (tried[0], sorted(tried)) == (likely, list(range(seeds_max)))


@pytest.mark.usefixtures("virtual_world_only")
def test_a_patch_that_does_not_fit_the_code_is_not_taken_for_a_fault_that_was_noticed(monkeypatch):
    monkeypatch.setattr(Leader, "__init__", lambda leader, **options: leader.no_such_thing)
    assert not run_seed(0).ok
    assert not is_noticed(0, "log")
