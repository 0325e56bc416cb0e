"""Workers get whole test modules, the longest kinds first, and the modules of Spark's session as one unit."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tools.module_scheduler import SPARK_UNIT, rank, unit_of

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS_MAX = 240
MODULE = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_number(number):
    pass
"""


def test_modules_of_one_spark_session_are_one_unit() -> None:
    assert unit_of(ROOT / "tests/spark/source/test_batch.py") == SPARK_UNIT
    assert unit_of(ROOT / "tests/spark/sink/test_lanes.py") == SPARK_UNIT
    assert unit_of(ROOT / "tests/spark/sink/test_rows.py") != SPARK_UNIT


def test_the_longest_kinds_come_first(tmp_path: Path) -> None:
    kinds = {}
    for kind, text in {"process": "pytestmark = pytest.mark.process", "slow": "@pytest.mark.slow", "unit": ""}.items():
        module = tmp_path / f"test_{kind}.py"
        module.write_text(text)
        kinds[kind] = rank(unit_of(module))
    own_driver = rank(str(ROOT / "tests/spark/kills/test_kills.py"))
    assert rank(SPARK_UNIT) < own_driver < kinds["slow"] < kinds["process"] < kinds["unit"]


@pytest.mark.process
def test_a_module_stays_in_one_worker(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(MODULE)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "xdist", "-p", "tools.module_scheduler", "-n2", str(tmp_path)],
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
