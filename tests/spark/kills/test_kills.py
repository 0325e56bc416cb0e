"""Eight kills in `make test`; a hundred by `make chaos ARGS="'Spark kills'"`."""

import subprocess
from pathlib import Path

import pytest

from tests.spark.kills.campaign import DRIVER_S_MAX, Run, kills
from tests.spark.kills.driver import STAGE_RETRY
from tests.spark.kills.points import BROKER, DRIVER, MARKERS, PAUSE, SHUFFLE, WORKER, Plan

pytestmark = [pytest.mark.timeout(2 * DRIVER_S_MAX), pytest.mark.xdist_group("spark")]


def test_kills_at_every_phase_lose_and_repeat_no_row(tmp_path: Path) -> None:
    kills(
        tmp_path,
        [
            (WORKER, "after begin"),
            (BROKER, "while writing"),
            (WORKER, "after flush"),
            (BROKER, "before commit"),
            (DRIVER, "before commit"),
            (BROKER, "after commit"),
            (BROKER, MARKERS),
            (DRIVER, "after commit"),
        ],
    )


def test_a_stage_that_is_tried_again_and_two_drivers_of_one_checkpoint(tmp_path: Path) -> None:
    plans = [
        Plan(victim=SHUFFLE, point="after begin", batch=0),
        Plan(victim=PAUSE, point="before commit", batch=1),
    ]
    run = Run(tmp_path, plans, batches=3)
    first: subprocess.Popen[bytes] | None = None
    try:
        first = run.start_driver(tasks=5)
        run.wait_until_paused(first)
        assert run.points.has_seen(STAGE_RETRY)
        run.run_to_the_end(tasks=[2])
        run.points.resume()
        assert first.wait(DRIVER_S_MAX) != 0
        # The epoch is committed already, so it is Spark that stops the older driver when it notes it in its own log.
        assert "CONCURRENT_STREAM_LOG_UPDATE" in run.complaints()
        run.check()
    finally:
        if first is not None:
            run.end_session(first)
        run.close()
