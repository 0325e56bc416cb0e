"""Many runs of the controller with replicated partitions: invariants hold, runs repeat, known faults are noticed."""

from collections import Counter

import pytest

from headrace.sim.checkers.violation import Violation
from headrace.sim.machines.partition_run import PartitionRun
from tests.raft.known_bad_partitions import KNOWN_BAD
from tests.sim.conftest import virtual_world_only  # noqa: F401 - a fixture
from tests.sim.likely_seeds import likely_first

pytestmark = pytest.mark.slow

SEEDS = range(120)
SEEDS_PER_TEST = 40
SEEDS_TO_NOTICE_MAX = 200
MET = (
    "broker fenced",
    "crash",
    "folder lost",
    "in-sync set refused: INELIGIBLE_REPLICA",
    "leader recovered",
    "record committed",
    "unsynced records lost",
)


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize("first", SEEDS[::SEEDS_PER_TEST])
def test_no_committed_record_is_forgotten(first):
    met: Counter[str] = Counter()
    for seed in range(first, first + SEEDS_PER_TEST):
        run = PartitionRun(seed)
        try:
            run.carry_out()
        except Violation as violation:
            pytest.fail(f"seed {seed}: {violation}")
        met.update(fault for fault, times in run.trace.met.items() if times)
    assert not [fault for fault in MET if not met[fault]]


@pytest.mark.usefixtures("virtual_world_only")
def test_a_seed_repeats_its_trace():
    hashes = []
    for seed in (1, 2, 1, 2):
        run = PartitionRun(seed)
        run.carry_out()
        hashes.append(run.trace.hash)
    assert hashes[:2] == hashes[2:]
    assert hashes[0] != hashes[1]


def is_noticed(seed):
    """Return whether a broken invariant is seen; a crash would not count."""
    try:
        PartitionRun(seed).carry_out()
    except Violation:
        return True
    return False


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize("put_in", KNOWN_BAD, ids=lambda put_in: put_in.__name__)
def test_a_known_fault_is_noticed(put_in, monkeypatch):
    put_in(monkeypatch)
    seeds = likely_first(put_in.__name__, SEEDS_TO_NOTICE_MAX)
    assert any(map(is_noticed, seeds)), f"{SEEDS_TO_NOTICE_MAX} seeds did not notice"
