"""`python -m tools.bench spark` in its smallest form, with a Spark of its own: what it reads and streams is checked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.bench.brokers import HEADRACE
from tools.bench.spark.subjects import EXACTLY_ONCE
from tools.bench.spark.targets import READ_LARGE, READ_SMALL, STREAM, STREAM_ADDED, STREAM_WRITE

RUN_SECONDS_MAX = 540
ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(RUN_SECONDS_MAX + 20)
@pytest.mark.spark
def test_reads_and_streams_of_a_quick_run_have_figures(tmp_path: Path) -> None:
    """The other parts differ from these in numbers, and a second Spark, only."""
    page = tmp_path / "page.md"
    options = ("--quick", "--no-connector", "--only", "read", "--only", "stream", "--json")
    ran = subprocess.run(
        [sys.executable, "-m", "tools.bench", "spark", *options, "--folder", str(tmp_path), "--write", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr
    printed = json.loads(ran.stdout)
    assert printed["failures"] == {}
    measured = [(one["load"], one["subject"]) for one in printed["measurements"]]
    assert measured == [
        (READ_LARGE, HEADRACE),
        (READ_SMALL, HEADRACE),
        (STREAM, HEADRACE),
        (STREAM_WRITE, HEADRACE),
        (STREAM_WRITE, EXACTLY_ONCE),
        (STREAM_ADDED, HEADRACE),
    ]
    words = {row["load"]: row["verdict"] for row in printed["verdicts"]}
    assert words.pop(STREAM_ADDED) in ("reached", "MISSED")
    assert set(words.values()) == {"not measured"}
    assert "python -m tools.bench spark" in page.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("headrace-bench-")] == []
