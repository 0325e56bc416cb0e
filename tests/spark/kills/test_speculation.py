"""Two attempts at one task, at the same time on two hosts: one of them counts."""

import os
from pathlib import Path

import pytest

from headrace.spark import standalone
from tests.spark.kills.campaign import DRIVER_S_MAX, ROOT, Run, rows_of
from tests.spark.kills.driver import SPECULATION
from tests.spark.kills.points import PAUSE, Plan
from tests.spark.sessions import FAST_START

pytestmark = [
    pytest.mark.record_integrity,
    pytest.mark.timeout(2 * DRIVER_S_MAX),
    pytest.mark.spark,
]

SETTINGS = {
    "spark.executor.extraJavaOptions": FAST_START,
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}


def test_a_task_that_runs_twice_is_written_once(tmp_path: Path) -> None:
    """The first attempt has written all of its rows and hangs; Spark starts another one on the other host."""
    folder = tmp_path / "cluster"
    paths = os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])))
    run = Run(tmp_path, [Plan(victim=PAUSE, point="after flush", batch=1)], batches=3)
    try:
        cluster = standalone.up(folder, workers=2, memory="512m")
        conf = {**SETTINGS, "spark.executorEnv.PYTHONPATH": paths}
        assert run.run_to_the_end(tasks=[4], master=cluster.master, conf=conf) == 1
        assert run.points.has_seen(SPECULATION)
        run.check()
        assert len(rows_of(run.broker.address, isolation="read_uncommitted")) > run.expected, "one attempt wrote only"
    finally:
        standalone.down(folder)
        run.close()
