"""Workers get whole test modules, the longest kinds first; one worker begins with those that use Spark's session."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tools.module_scheduler import ORDER_OF_FIRST_WORKER, ORDER_OF_OTHER_WORKERS, Kind, kind_of
from tools.test_run import SCHEDULER

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS_MAX = 240
MODULE = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_number(number):
    pass
"""


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("spark/source/test_batch.py", Kind.SESSION),
        ("spark/sink/test_lanes.py", Kind.SESSION),
        ("spark/kills/test_kills.py", Kind.SPARK),
        ("sim/test_seeds.py", Kind.SLOW),
        ("broker_process/test_kill.py", Kind.PROCESS),
        ("spark/sink/test_rows.py", Kind.UNIT),
        ("wire/test_frames.py", Kind.UNIT),
    ],
)
def test_modules_have_the_kind_of_their_longest_tests(module: str, kind: Kind) -> None:
    assert kind_of(ROOT / "tests" / module) is kind


@pytest.mark.parametrize("order", [ORDER_OF_FIRST_WORKER, ORDER_OF_OTHER_WORKERS])
def test_every_worker_ends_with_unit_tests(order: tuple[Kind, ...]) -> None:
    assert set(order) == set(Kind)
    assert order[-1] is Kind.UNIT


def test_only_the_first_worker_begins_with_the_session_of_spark() -> None:
    assert ORDER_OF_FIRST_WORKER.index(Kind.SESSION) == 0
    assert ORDER_OF_OTHER_WORKERS.index(Kind.SESSION) == len(Kind) - 2


def test_test_runs_use_it() -> None:
    assert "tools.module_scheduler" in SCHEDULER


@pytest.mark.process
def test_a_module_stays_in_one_worker(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(MODULE)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "xdist", *SCHEDULER, "-n2", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    workers = defaultdict(set)
    for worker, module in re.findall(r"^\[(gw\d)\].* PASSED .*(test_[abcd])\.py", ran.stdout, re.MULTILINE):
        workers[module].add(worker)
    assert {module: len(found) for module, found in workers.items()} == dict.fromkeys(sorted(workers), 1)
    assert len(workers) == 4
