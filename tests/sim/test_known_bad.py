"""The simulator tested: it must notice every known fault within a few seeds."""

import pytest

from headrace.sim.run import run_seed
from tests.sim.known_bad import KNOWN_BAD

SEEDS_MAX = 60


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize(("play", "put_in"), KNOWN_BAD, ids=lambda put_in: getattr(put_in, "__name__", put_in))
def test_a_known_fault_is_noticed(play, put_in, monkeypatch):
    put_in(monkeypatch)
    assert any(not run_seed(seed, play=play).ok for seed in range(SEEDS_MAX)), f"{SEEDS_MAX} seeds did not notice"
