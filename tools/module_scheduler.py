"""Hand whole test modules to xdist's workers, those that take longest first, as a pytest plugin.

A module stays in one worker, so that the broker or the client that its tests share is started once. The first worker
begins with the modules that share Spark's session; the others take one of them only when nothing but unit tests is
left beside it, because a second session costs a start of Java. Unit tests, whose modules are small, come last and fill
the end of the run evenly. Tests stay in random order inside a module, and so do modules of the same kind.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK_FOLDER = "tests/spark/"
SPARK_SESSION = re.compile(r"\bspark: .?SparkSession")
MARK = re.compile(r"\bpytest\.mark\.(spark|slow|process)\b")
FIRST_WORKER = "gw0"


class Kind(Enum):
    SESSION = "its tests share Spark's session"
    SPARK = "its tests start Spark in processes of their own"
    SLOW = "some of its tests take seconds"
    PROCESS = "some of its tests start processes"
    UNIT = "unit tests only"


ORDER_OF_FIRST_WORKER = (Kind.SESSION, Kind.SPARK, Kind.SLOW, Kind.PROCESS, Kind.UNIT)
ORDER_OF_OTHER_WORKERS = (Kind.SPARK, Kind.SLOW, Kind.PROCESS, Kind.SESSION, Kind.UNIT)


@cache
def kind_of(module: Path) -> Kind:
    if not module.is_file():  # pytest gives modules outside of the project folder no path
        return Kind.UNIT
    text = module.read_text()
    if SPARK_FOLDER in module.as_posix() and SPARK_SESSION.search(text):
        return Kind.SESSION
    marks = set(MARK.findall(text))
    return next((kind for kind in (Kind.SPARK, Kind.SLOW, Kind.PROCESS) if kind.name.lower() in marks), Kind.UNIT)


class ModuleScheduling(LoadFileScheduling):
    """Assigns to a worker the module of the kind that comes first in the worker's order."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._root = config.rootpath

    def _assign_work_unit(self, node: WorkerController) -> None:
        order = ORDER_OF_FIRST_WORKER if node.gateway.id == FIRST_WORKER else ORDER_OF_OTHER_WORKERS
        chosen = min(self.workqueue, key=lambda scope: order.index(kind_of(self._root / scope)))
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ModuleScheduling:
    return ModuleScheduling(config, log)
