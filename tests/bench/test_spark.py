"""The benchmark of Spark without Spark: its checks, its figures from the answers, and its arguments for Maven."""

import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.bench.brokers import HEADRACE, MeasuredBroker
from headrace.bench.errors import BenchError, RunRejected, ToolMissing
from headrace.bench.figures import FIGURES, Measurement
from tools.bench.commands.spark import PART_NAMES
from tools.bench.maven import Artifact, fetched_jars
from tools.bench.performance_page import verdict_row
from tools.bench.spark.comparison import PARTS, QUICK
from tools.bench.spark.driver import Driver
from tools.bench.spark.rounds import LoadedTopic, MemoryRounds, ReadRounds, Rows, StreamRounds
from tools.bench.spark.subjects import CONNECTOR, EXACTLY_ONCE, FORMATS
from tools.bench.spark.targets import SPARK_TARGETS, WRITE
from tools.bench.targets import verdicts

TOTALS = {"rows": 4, "bytes": 400, "checksum": 17}
TOPIC = LoadedTopic("loaded", Rows(4, 100), TOTALS)
BROKER = MeasuredBroker("headrace", "127.0.0.1:9")


class FakeDriver:
    """Answers every question with the same."""

    def __init__(self, **answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def ask(self, task: str, **arguments: Any) -> Any:
        self.asked.append((task, arguments))
        return self.answer

    def cpu_seconds(self) -> float:
        return 1.0


def driver(**answer: Any) -> Driver:
    return cast(Driver, FakeDriver(**answer))


def test_a_read_has_a_figure_if_its_rows_are_right() -> None:
    right = driver(seconds=2.0, rows=4, bytes=400)
    figures = ReadRounds(right, BROKER, HEADRACE, TOPIC)()
    assert figures["rows_per_second"] == 2.0
    assert set(figures) <= set(FIGURES)


@pytest.mark.parametrize("wrong", [{"rows": 3, "bytes": 400}, {"rows": 4, "bytes": 399}])
def test_a_read_with_a_wrong_answer_has_none(wrong: dict[str, int]) -> None:
    with pytest.raises(RunRejected):
        ReadRounds(driver(seconds=2.0, **wrong), BROKER, HEADRACE, TOPIC)()


def test_every_key_and_value_is_checked_before_a_read_is_measured() -> None:
    ReadRounds(driver(**TOTALS), BROKER, CONNECTOR, TOPIC).check()
    with pytest.raises(RunRejected, match="all rows"):
        ReadRounds(driver(**{**TOTALS, "checksum": 18}), BROKER, CONNECTOR, TOPIC).check()


def stream_rounds(answering: Driver, folder: Path) -> StreamRounds:
    return StreamRounds(answering, BROKER, HEADRACE, TOPIC, batch_rows=1, folder=folder, writes=False)


def test_the_first_micro_batches_do_not_count(tmp_path: Path) -> None:
    steps = [{"triggerExecution": each} for each in (9_000, 900, 90, 90, 90, 10, 20, 30)]
    answering = driver(rows=4, checksum=17, steps_ms=steps)
    assert stream_rounds(answering, tmp_path)() == {"batch_ms": 20}
    answering.answer["steps_ms"] = steps[:5]  # type: ignore[attr-defined]
    with pytest.raises(RunRejected, match="too few"):
        stream_rounds(answering, tmp_path)()


def test_a_query_that_lost_a_row_has_no_figure(tmp_path: Path) -> None:
    steps = [{"triggerExecution": 10}] * 8
    with pytest.raises(RunRejected, match="checksum of the query"):
        stream_rounds(driver(rows=4, checksum=16, steps_ms=steps), tmp_path)()


def test_growth_is_from_a_fifth_of_the_micro_batches_to_their_end(tmp_path: Path) -> None:
    samples = [(batch, 1_000 + batch, 2_000 if batch < 200 else 1_000) for batch in range(500)]
    answering = driver(rows=4, checksum=17, steps_ms=[], memory=samples)
    figures = MemoryRounds(stream_rounds(answering, tmp_path), batches=500)()
    assert figures["broker_growth"] == pytest.approx((1_000 + 474) / 1_100 - 1)
    assert figures["workers_growth"] == -0.5
    answering.answer["memory"] = samples[:400]  # type: ignore[attr-defined]
    with pytest.raises(RunRejected, match="between the micro-batches 449 and 499"):
        MemoryRounds(stream_rounds(answering, tmp_path), batches=500)()


def test_ways_of_ours_are_judged_by_their_own_figures() -> None:
    def written(subject: str, rate: float) -> Measurement:
        return Measurement(load=WRITE, subject=subject, client="", rounds=({"rows_per_second": rate},))

    found = [written(HEADRACE, 100.0), written(EXACTLY_ONCE, 60.0), written("connector 4.2.0", 50.0)]
    judged = [verdict_row(each) for each in verdicts(found, [each for each in SPARK_TARGETS if each.load == WRITE])]
    assert [(row[0], row[4:]) for row in judged] == [
        (WRITE, ("2.00", ">= 1.5 x connector", "reached")),
        (f"{WRITE}: {EXACTLY_ONCE}", ("0.60", ">= 0.7 x headrace", "MISSED")),
    ]


def test_targets_name_what_there_is() -> None:
    for target in SPARK_TARGETS:
        assert target.figure in FIGURES
        assert target.subject in FORMATS
        assert target.against in ("", *FORMATS)
    assert tuple(PARTS) == PART_NAMES


def test_a_quick_run_has_micro_batches_that_count() -> None:
    assert QUICK.batches > 5
    assert QUICK.memory_batches >= 20


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that notes its arguments and leaves a jar."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script, told = tmp_path / "mvn", tmp_path / "told"
    script.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >> {told}\nfor word; do case $word in -DoutputDirectory=*) '
        'mkdir -p "${word#*=}"; touch "${word#*=}/a.jar";; esac; done\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return told


def test_jars_are_fetched_once(maven: Path) -> None:
    artifacts = [Artifact("g", "a", "1"), Artifact("g", "b", "2")]
    folder = fetched_jars("lone", artifacts, what="it", alone=True)
    assert [path.name for path in folder.iterdir()] == ["a.jar"]
    assert fetched_jars("lone", artifacts, what="it", alone=True) == folder
    told = maven.read_text().splitlines()
    assert [line.split()[2:4] for line in told] == [
        ["dependency:copy", "-Dartifact=g:a:1"],
        ["dependency:copy", "-Dartifact=g:b:2"],
    ]
    fetched_jars("all", artifacts, what="it")
    assert "dependency:copy-dependencies" in maven.read_text().splitlines()[2]


def test_without_maven_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="downloaded with mvn"):
        fetched_jars("lone", [Artifact("g", "a", "1")], what="it")


def test_a_driver_says_why_it_did_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))))
    (tmp_path / "pyspark.py").write_text("raise SystemExit('no Spark here')")
    with Driver(tmp_path / "driver") as starting, pytest.raises(BenchError, match="ended; it said:\nno Spark here"):
        starting.start()


def test_answers_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol alone, with a program in the place of Spark's."""
    program = (
        "import json, sys\nprint(json.dumps({'helper': True}), flush=True)\n"
        "for line in sys.stdin:\n    wanted = json.loads(line)\n"
        "    print(json.dumps({'error': 'out of rows'} if wanted['task'] == 'fail' else wanted), flush=True)\n"
    )
    monkeypatch.setattr("headrace.bench.processes.python_command", lambda *_: [sys.executable, "-c", program])
    with Driver(tmp_path / "driver") as talking:
        assert talking.ask("read", rows=1) == {"task": "read", "rows": 1}
        assert talking.about == {"helper": True}
        with pytest.raises(RunRejected, match="out of rows"):
            talking.ask("fail")
        assert talking.ask("read", rows=2)["rows"] == 2
        assert talking.cpu_seconds() >= 0.0
