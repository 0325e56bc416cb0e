"""Eight kills in `make test`; a hundred by `make chaos ARGS="'Spark kills'"`."""

import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from headrace.client import Admin, NewTopic, Producer
from tests.spark.kills.campaign import DRIVER_S_MAX, ROWS_PER_BATCH, Run, kills, rows_of
from tests.spark.kills.driver import STAGE_RETRY
from tests.spark.kills.points import BROKER, DRIVER, MARKERS, PAUSE, SHUFFLE, WORKER, Plan

pytestmark = [
    pytest.mark.record_integrity,
    pytest.mark.timeout(2 * DRIVER_S_MAX),
    pytest.mark.spark,
]


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


def test_a_query_that_begins_at_the_end_and_dies_in_its_first_batch(tmp_path: Path) -> None:
    """Rows that come between the two drivers are behind the end that the first of them saw."""
    run = Run(tmp_path, [Plan(victim=DRIVER, point="before commit", batch=0)], batches=0)
    try:
        with Admin(run.broker.address) as admin:
            admin.create_topics([NewTopic("in", partitions=2)])
        send(run.broker.address, b"before")
        first = run.start_driver(tasks=2, source="in")
        try:
            assert first.wait(DRIVER_S_MAX) == -signal.SIGKILL, run.complaints()
        finally:
            run.end_session(first)
        send(run.broker.address, *(b"%d" % number for number in range(ROWS_PER_BATCH)))
        assert run.run_to_the_end(tasks=[3], source="in") == 1
        assert run.points.not_met() == []
        assert Counter(rows_of(run.broker.address)) == Counter(range(ROWS_PER_BATCH))
    finally:
        run.close()


def send(address: str, *values: bytes) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for value in values:
            producer.send("in", value)
        producer.flush()


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
        run.wait_until_seen(STAGE_RETRY, first)
        run.run_to_the_end(tasks=[2])
        run.points.resume()
        assert first.wait(DRIVER_S_MAX) != 0
        # The batch is committed already, so it is Spark that stops the older driver when it notes it in its own log.
        assert "CONCURRENT_STREAM_LOG_UPDATE" in run.complaints()
        run.check()
    finally:
        if first is not None:
            run.end_session(first)
        run.close()
