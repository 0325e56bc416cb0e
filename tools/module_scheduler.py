"""Hand whole test modules to xdist's workers, those that take longest first, as a pytest plugin.

A module stays in one worker, so that the broker or the client that its tests share is started once. Spark and long
simulations come before other processes, and those before unit tests, whose small modules fill the end of the run
evenly. Tests stay in random order inside a module, and so do modules of the same kind.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK_FOLDER = "tests/spark/"
SPARK_SESSION = re.compile(r"\bspark: .?SparkSession")
SPARK_UNIT = "Spark's session"
"""All modules whose tests share Spark's session are one unit of work: a second session costs a start of Java."""
MARKS_LONGEST_FIRST = ("slow", "process")


@cache
def unit_of(path: Path) -> str:
    """Return the unit of work that a test module belongs to: itself, or all modules that use Spark's session."""
    name = path.as_posix()
    return SPARK_UNIT if SPARK_FOLDER in name and SPARK_SESSION.search(path.read_text()) else name


@cache
def rank(unit: str) -> int:
    """Return the place of a unit in the order of work; units with a smaller number start earlier."""
    if unit == SPARK_UNIT:
        return 0
    if SPARK_FOLDER in unit:
        return 1
    text = Path(unit).read_text()
    marks = (place for place, mark in enumerate(MARKS_LONGEST_FIRST, 2) if f"pytest.mark.{mark}" in text)
    return next(marks, 2 + len(MARKS_LONGEST_FIRST))


class ModuleScheduling(LoadFileScheduling):
    """Assigns the unit of the smallest rank that is left; nodes ask for another one when they have almost finished."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._root = config.rootpath

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(self._root / super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=rank), last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ModuleScheduling:
    return ModuleScheduling(config, log)
