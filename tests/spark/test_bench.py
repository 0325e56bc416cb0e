"""`headrace bench spark` in its smallest form, with a Spark of its own: every load is run and checked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.bench.spark.targets import SPARK_TARGETS, STREAM_ADDED

RUN_SECONDS_MAX = 540


@pytest.mark.timeout(RUN_SECONDS_MAX + 20)
@pytest.mark.xdist_group("spark")
def test_every_load_of_a_quick_run_has_a_figure(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    options = ("--quick", "--no-connector", "--json", "--folder", str(tmp_path), "--write", str(page))
    ran = subprocess.run(
        [sys.executable, "-m", "headrace", "bench", "spark", *options],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    assert ran.stdout, ran.stderr
    printed = json.loads(ran.stdout)
    without_helper = {"scan": "scans with the compiled helper"} if printed["failures"] else {}
    assert set(printed["failures"]) == set(without_helper), printed["failures"]
    measured = {(one["load"], one["subject"]) for one in printed["measurements"]}
    expected = {(each.load, each.subject) for each in SPARK_TARGETS}
    assert {pair for pair in expected if pair[1] != "headrace, files"} <= measured
    words = {(row["load"], row["target"]): row["verdict"] for row in printed["verdicts"]}
    assert words[STREAM_ADDED, "<= 80"] in ("reached", "MISSED")
    assert {word for (_, target), word in words.items() if "connector" in target} == {"not measured"}
    assert "headrace bench spark" in page.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("headrace-bench-")] == []
