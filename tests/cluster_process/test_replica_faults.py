"""A slice of the chaos campaigns: each fault once, at a rate that leaves room for the tests beside it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cluster_process.replica_faults import FAULTS, command

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

RATE = 1_000
RUN_S_MAX = 280
ROOT = Path(__file__).resolve().parents[2]
SLICE = ("one-way cuts", "full disks", "failing syncs", "bit flips")
"""Kills are tests of test_failover, and pauses last longer than a session."""


@pytest.mark.parametrize("fault", SLICE)
def test_nothing_acknowledged_is_lost(fault: str) -> None:
    if lacking := FAULTS[fault].lacks():
        pytest.skip(lacking)
    words = command(fault, count=1, seed=1, rate=RATE)
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["faults"] == 1
