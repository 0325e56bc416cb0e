"""Many Raft runs by seed: invariants hold, runs repeat, and known faults are noticed."""

import os
import pathlib
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from headrace.sim.machines.raft_cluster import READ_ANSWERED
from headrace.sim.machines.raft_nemesis import MET
from headrace.sim.report import failure_text
from headrace.sim.run import run_seed
from tests.raft.known_bad import KNOWN_BAD, is_noticed
from tests.sim.conftest import virtual_world_only  # noqa: F401 - a fixture
from tests.sim.likely_seeds import likely_first

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
SEEDS_OF_THREE = range(800)
SEEDS_OF_FIVE = range(200)
SEEDS_PER_TEST = 100
SEEDS_TO_NOTICE_MAX = 200


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize(
    ("voters", "seeds"),
    [
        (voters, seeds[first : first + SEEDS_PER_TEST])
        for voters, seeds in ((3, SEEDS_OF_THREE), (5, SEEDS_OF_FIVE))
        for first in range(0, len(seeds), SEEDS_PER_TEST)
    ],
    ids=lambda value: str(value) if isinstance(value, int) else f"{value.start}-{value.stop - 1}",
)
def test_invariants_hold_under_faults(voters, seeds):
    met: Counter[Any] = Counter()
    for seed in seeds:
        result = run_seed(seed, scenario="machines", brokers=voters)
        assert result.ok, failure_text(result)
        assert result.progress
        assert result.met[READ_ANSWERED]
        met.update(fault for fault, times in result.met.items() if times)
    assert not [fault for fault in MET if not met[fault]]


@pytest.mark.usefixtures("virtual_world_only")
def test_a_seed_repeats_its_trace():
    hashes = [run_seed(seed, scenario="machines").trace_hash for seed in range(5)]
    assert hashes == [run_seed(seed, scenario="machines").trace_hash for seed in range(5)]
    assert len({*hashes}) == len(hashes)


def test_the_trace_does_not_depend_on_the_hash_seed_of_the_interpreter():
    command = [sys.executable, "-m", "headrace", "sim", "--seed", "3", "--level", "machines"]
    for hash_seed in ("1", "2"):
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        assert answer.stdout.splitlines()[-1] == run_seed(3, scenario="machines").last_line


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize("put_in", KNOWN_BAD, ids=lambda put_in: put_in.__name__)
def test_a_known_fault_is_noticed(put_in, monkeypatch):
    put_in(monkeypatch)
    seeds = likely_first(put_in.__name__, SEEDS_TO_NOTICE_MAX)
    assert any(map(is_noticed, seeds)), f"{SEEDS_TO_NOTICE_MAX} seeds did not notice"
