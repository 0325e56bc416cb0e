"""Run the tests of Spark's source and sink with the oldest release of PySpark that is allowed."""

import os
import re
import subprocess
import tomllib

from compat.environments import ROOT, Missing, python_with

OLDEST = "4.2.0"
"""The lowest version that pyproject.toml allows."""

TESTS = ("source", "sink", "tables", "kills/test_kills.py")
TESTS_S_MAX = 1_800
RUNNER = ("pytest", "pytest-asyncio", "pytest-randomly", "pytest-timeout", "pytest-xdist", "hypothesis")
CLIENTS = ("confluent-kafka", "psutil")
EXTRAS = ("spark", "delta")


def requirements() -> list[str]:
    """Return what a user of that release installs, and what the tests need beside it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for name in EXTRAS for each in project["optional-dependencies"][name]]
    others = [each for each in (*project["dependencies"], *extras) if not re.match(r"pyspark\b|headrace\b", each)]
    return [f"pyspark[connect]=={OLDEST}", *others, *RUNNER, *CLIENTS]


def run_oldest_spark() -> int:
    """The exit status of the tests; 0 where that release cannot be installed, which is said."""
    try:
        python = python_with(f"pyspark-{OLDEST}", *requirements())
    except Missing as lacking:
        print(f"PySpark {OLDEST}: not run, {lacking}", flush=True)
        return 0
    tests = [str(ROOT / "tests" / "spark" / name) for name in TESTS]
    paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    ours = {name: text for name, text in os.environ.items() if "SPARK" not in name}
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, env={**ours, "PYTHONPATH": paths}, timeout=TESTS_S_MAX, check=False)
    return done.returncode
