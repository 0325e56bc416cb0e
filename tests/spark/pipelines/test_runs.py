"""Pipelines on a real broker and real Spark: their rows, their reports, and what is refused."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.spark.pipelines.backfill import known_backfills
from headrace.spark.pipelines.checkpoints import Checkpoint, CheckpointInUse, Note
from headrace.spark.pipelines.claims import AlreadyRunning
from headrace.spark.pipelines.problems import DefinitionError
from headrace.spark.pipelines.progress import batch_report
from headrace.spark.pipelines.records import RunRecord, RunState, run_message, stop_message
from headrace.spark.pipelines.runner import IncompatibleChange
from headrace.spark.pipelines.status_topic import opened
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import headers, read_records, rows, run_once, runner_of, send, values, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_SECONDS_MAX = 300
WINDOWS = """\
name: {name}
source:
  topic: {name}
  format: json
  schema: id STRING NOT NULL, at TIMESTAMP, country STRING, amount INT
  rows_per_batch: 100
  unknown_fields: warn
  watermark: {{column: at, delay: 30 seconds, window: 10 seconds}}
transform:
  sql: |
    SELECT window.start AS begin, country, count(*) AS n
    FROM input WHERE country <> 'marker'
    GROUP BY window(at, '10 seconds'), country
expectations:
  - {{name: paid, check: amount > 0, action: drop, quarantine: {name}-unpaid, on: input}}
  - {{name: busy, check: n > 1, action: warn}}
bad_records: {{topic: {name}-dead}}
sinks:
  - {{topic: {name}-out, key: country}}
  - {{parquet: files}}
"""
CLEAN = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT NOT NULL, n INT"}}
transform: {{sql: "SELECT id, n * 2 AS doubled FROM input"}}
sink: {{topic: {name}-out}}
restart: {{attempts: 0}}
{more}
"""


@pytest.fixture
def name(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    """Of a pipeline and of the topic it reads."""
    return broker.create_topic(broker.unused_topic_name(request.node.name[:40]), partitions=2)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many rows Spark's reads of topics gave, batch by batch: a second read counts them again."""
    found: list[int] = []

    def report(told: Mapping[str, Any], expectations: Mapping[str, str]) -> dict[str, Any]:
        found.append(sum(source["numInputRows"] for source in told["sources"]))
        return batch_report(told, expectations)

    monkeypatch.setattr("headrace.spark.pipelines.runner.batch_report", report)
    return found


def orders(seed: int) -> tuple[list[object], dict[str, int]]:
    """Records of four minutes, some of them late, bad or unpaid, and a last one that closes all windows."""
    random_numbers, base, made = random.Random(seed), 1_750_000_000, {"bad": 0, "unpaid": 0, "new": 0}
    found: list[object] = []
    for minute in range(4):
        for number in range(100):
            at = base + minute * 60 + random_numbers.randrange(60)
            at -= random_numbers.randrange(60, 200) if random_numbers.random() < 0.08 else 0
            order = {"id": str(number), "at": at, "country": random_numbers.choice(["de", "fr"]), "amount": 5}
            kind = random_numbers.random()
            if kind < 0.05:
                made["bad"] += 1
                found.append([b"not json", b'{"at": 1}', b'{"id": "x", "amount": "five"}'][number % 3])
                continue
            if kind < 0.10:
                made["unpaid"] += 1
                order["amount"] = -5
            elif kind > 0.97:
                made["new"] += 1
                order["coupon"] = "x"
            found.append(order)
    marker = {"id": "m", "at": base + 100_000, "country": "marker", "amount": 1}
    return [*found, marker, marker], made


def test_every_row_is_read_once_and_aggregated_late_dead_or_kept_back(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, fetched: list[int]
) -> None:
    folder = write_pipeline(tmp_path, WINDOWS.format(name=name))
    sent, made = orders(7)
    send(broker.bootstrap_servers, name, sent, partitions=2)
    outcome = run_once(folder, spark, broker.bootstrap_servers)
    assert outcome.state is RunState.DONE, outcome.message
    # Each minute is a batch. Spark drops what is late by the watermark of two batches ago: from the third minute on.
    assert [batch["rows"]["read"] for batch in outcome.batches if batch["rows"]["read"]] == [100] * 4 + [2]
    windows = values(read_records(broker.bootstrap_servers, f"{name}-out"))
    dead = read_records(broker.bootstrap_servers, f"{name}-dead")
    unpaid = read_records(broker.bootstrap_servers, f"{name}-unpaid")
    late = rows(outcome, "late")
    assert sum(window["n"] for window in windows) + late + len(dead) + len(unpaid) == len(sent) - 2
    assert late > 0
    assert sum(fetched) == len(sent)
    assert (len(dead), len(unpaid)) == (made["bad"], made["unpaid"])
    assert (rows(outcome, "dead"), rows(outcome, "drifted"), rows(outcome, "read")) == (
        made["bad"], made["new"], len(sent),
    )  # fmt: skip
    stored = spark.read.parquet(str(folder / "files")).toPandas()
    assert sorted(zip(stored["country"], stored["n"], strict=True)) == sorted((w["country"], w["n"]) for w in windows)
    letter = headers(dead[0])
    assert (letter["hr-dead-topic"], letter["hr-dead-pipeline"]) == (name, name)
    assert sum(batch["failed_expectations"]["paid"] for batch in outcome.batches) == made["unpaid"]
    again = run_once(folder, spark, broker.bootstrap_servers)
    assert (again.state, rows(again, "read")) == (RunState.DONE, 0)


def test_the_example_of_init_is_as_expected(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.cli.pipeline_test.spark_session", lambda *_: spark)
    folder = tmp_path / "p"
    for command in ("init", "validate", "test"):
        done = CliRunner().invoke(cli, ["pipeline", command, str(folder)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "orders-clean: as expected", "orders-dead: as expected", "orders-quarantine: as expected",
    ]  # fmt: skip
    expected = folder / "expected" / "orders-clean.jsonl"
    expected.write_text(expected.read_text().replace('"DE"', '"AT"'))
    done = CliRunner().invoke(cli, ["pipeline", "test", str(folder)], catch_exceptions=False)
    assert done.exit_code == 1
    first, missing, unexpected, *_ = done.stdout.splitlines()
    assert first == "orders-clean: 2 differences"
    assert ('missing: {"key": "1"' in missing, 'not expected: {"key": "1"' in unexpected) == (True, True), done.stdout
    (folder / "expected" / "orders-dead.jsonl").unlink()
    done = CliRunner().invoke(cli, ["pipeline", "test", str(folder)], catch_exceptions=False)
    assert "orders-dead: 3 differences" in done.stdout
    assert f"{folder}/expected/orders-dead.jsonl is missing: write it, or let --update write it" in done.stdout
    updated = CliRunner().invoke(cli, ["pipeline", "test", str(folder), "--update"], catch_exceptions=False)
    assert updated.stdout.splitlines() == [
        f"wrote {folder}/expected/orders-clean.jsonl (2 records)",
        f"wrote {folder}/expected/orders-dead.jsonl (2 records)",
        f"wrote {folder}/expected/orders-quarantine.jsonl (1 record)",
    ]
    done = CliRunner().invoke(cli, ["pipeline", "test", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def test_a_run_is_reported_and_stopped_from_elsewhere(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path
) -> None:
    folder = write_pipeline(tmp_path, CLEAN.format(name=name, more="trigger: 100 ms"))
    send(broker.bootstrap_servers, name, ({"id": n, "n": n} for n in range(50)))
    runner = runner_of(folder, spark, broker.bootstrap_servers, once=False)
    states: list[RunState] = []
    thread = threading.Thread(target=lambda: states.append(runner.run().state))
    thread.start()
    with opened({"bootstrap.servers": broker.bootstrap_servers}) as bulletin:
        while name not in bulletin.ledger.pipelines or not bulletin.ledger.pipelines[name].batches:
            bulletin.follow(200)
            assert thread.is_alive()
        with pytest.raises(CheckpointInUse):
            run_once(folder, spark, broker.bootstrap_servers)
        elsewhere = write_pipeline(tmp_path / "copy", CLEAN.format(name=name, more=""))
        with pytest.raises(AlreadyRunning, match=f"run {runner.run_id}"):
            run_once(elsewhere, spark, broker.bootstrap_servers)
        call = ["--bootstrap", broker.bootstrap_servers]
        refused = CliRunner().invoke(cli, ["pipeline", "rewind", str(folder), "--to-earliest", "--yes", *call])
        assert refused.exit_code == 1
        assert "in use by another run" in refused.output
        for meant in (name, str(elsewhere)):
            told = CliRunner().invoke(cli, ["pipeline", "status", meant, *call])
            assert "running" in told.output, told.output
        bulletin.publish_and_wait(stop_message(name, runner.run_id))
    thread.join(STOP_SECONDS_MAX)
    assert states == [RunState.STOPPED]
    assert len(read_records(broker.bootstrap_servers, f"{name}-out")) == 50
    lag = CliRunner().invoke(cli, ["pipeline", "lag", str(folder), "--json", *call])
    assert [each["records"] for each in json.loads(lag.output)] == [0, 0]
    shown = CliRunner().invoke(cli, ["pipeline", "checkpoint", "show", str(folder), "--json"])
    batches = json.loads(shown.output)["batches"]
    assert sum(batches[-1]["ends"][0][name].values()) == 50
    metrics = CliRunner().invoke(cli, ["pipeline", "status", name, "--prometheus", *call])
    assert f'headrace_pipeline_up{{pipeline="{name}"}} 0' in metrics.output
    stopped = CliRunner().invoke(cli, ["pipeline", "stop", str(folder), *call])
    assert (stopped.exit_code, "is not running" in stopped.output) == (1, True)


def test_a_dead_run_of_this_machine_leaves_the_pipeline_at_once(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path
) -> None:
    folder = write_pipeline(tmp_path, CLEAN.format(name=name, more=""))
    runner = runner_of(folder, spark, broker.bootstrap_servers)
    gone = RunRecord(
        pipeline=name, run="gone", state=RunState.RUNNING, host=runner._record.host, process_id=2**22 - 1, started_ms=0
    )
    from headrace.client import Admin
    from headrace.spark.pipelines.status_topic import make_topic

    with Admin(broker.bootstrap_servers) as admin:
        make_topic(admin)
    with opened({"bootstrap.servers": broker.bootstrap_servers}) as bulletin:
        bulletin.publish_and_wait(run_message(gone))
    assert runner.run().state is RunState.DONE


def test_changes_that_do_not_fit_the_checkpoint_are_refused(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path
) -> None:
    folder = write_pipeline(tmp_path, CLEAN.format(name=name, more=""))
    send(broker.bootstrap_servers, name, [{"id": 1, "n": 1}])
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    write_pipeline(tmp_path, CLEAN.format(name=name, more="").replace("n * 2", "n * 3"))
    send(broker.bootstrap_servers, name, [{"id": 2, "n": 1}])
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    found = sorted(values(read_records(broker.bootstrap_servers, f"{name}-out")), key=lambda row: row["id"])
    assert found == [{"id": 1, "doubled": 2}, {"id": 2, "doubled": 3}]
    stateful = CLEAN.format(name=name, more="").replace(
        "SELECT id, n * 2 AS doubled FROM input", "SELECT DISTINCT id FROM input"
    )
    write_pipeline(tmp_path, stateful)
    with pytest.raises(IncompatibleChange, match=r"the transform changed.*rewind"):
        run_once(folder, spark, broker.bootstrap_servers)
    assert Checkpoint(folder / "checkpoint").note().identity is not None


BAD_RUNS = [
    ("", [b"nonsense"], 'bad record in topic "{name}" partition'),
    (
        "expectations: [{{name: small, check: doubled < 10, action: fail}}]",
        [{"id": 1, "n": 9}],
        '"small" does not hold',
    ),
]


@pytest.mark.parametrize(("more", "sent", "said"), BAD_RUNS)
def test_what_must_not_be_passed_over_ends_the_run(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, more: str, sent: list[object], said: str
) -> None:
    folder = write_pipeline(tmp_path, CLEAN.format(name=name, more=more.format()))
    send(broker.bootstrap_servers, name, sent)
    outcome = run_once(folder, spark, broker.bootstrap_servers)
    assert outcome.state is RunState.FAILED
    assert said.format(name=name) in outcome.message
    assert read_records(broker.bootstrap_servers, f"{name}-out") == []


def test_mistakes_that_only_spark_sees_are_reported_with_their_line(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = CLEAN.format(name=name, more="")
    queries = {
        '"SELECT id, nn AS doubled FROM input"': (4, "nn"),
        "|\n    SELECT id,\n      n n n\n    FROM input": (6, "Syntax error"),
    }
    for query, (line, said) in queries.items():
        changed = text.replace('{sql: "SELECT id, n * 2 AS doubled FROM input"}', f"\n  sql: {query}")
        folder = write_pipeline(tmp_path, changed)
        with pytest.raises(DefinitionError) as caught:
            run_once(folder, spark, broker.bootstrap_servers)
        (problem,) = caught.value.problems
        assert (problem.line, said in problem.text) == (line, True), problem
    assert Checkpoint(folder / "checkpoint").note() == Note()
    write_pipeline(tmp_path, text.replace("SELECT id, n * 2 AS doubled FROM input", "SELECT DISTINCT id FROM input"))
    with pytest.raises(DefinitionError, match=r"pipeline.yml:3: transform.sql: .* Give the source a `watermark`"):
        run_once(folder, spark, broker.bootstrap_servers)
    (tmp_path / "code.py").write_text("def change(rows):\n    return rows.select('nothing')\n")
    write_pipeline(
        tmp_path, text.replace('{sql: "SELECT id, n * 2 AS doubled FROM input"}', "{python: code.py:change}")
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DefinitionError, match=r"code.py:2: change raised AnalysisException"):
        run_once(Path("."), spark, broker.bootstrap_servers)
    write_pipeline(tmp_path, text.replace(f"topic: {name},", f"topic: {name}-none,"))
    with pytest.raises(DefinitionError, match=r"pipeline.yml:2: source: topic .* does not exist"):
        run_once(tmp_path, spark, broker.bootstrap_servers)


def test_letters_sent_again_and_a_rewind_give_what_was_sent(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, fetched: list[int]
) -> None:
    dead_letters = f"bad_records: {{topic: {name}-dead}}"
    folder = write_pipeline(tmp_path, CLEAN.format(name=name, more=dead_letters))
    call = ["--bootstrap", broker.bootstrap_servers]
    send(broker.bootstrap_servers, name, [{"id": n, "n": n} if n % 10 else {"id": n, "n": str(n)} for n in range(40)])
    assert rows(run_once(folder, spark, broker.bootstrap_servers), "dead") == 4
    assert sum(fetched) == 40
    fixed = (
        CLEAN.format(name=name, more=dead_letters).replace("n INT", "n STRING").replace("n * 2", "CAST(n AS INT) * 2")
    )
    write_pipeline(tmp_path, fixed)
    replayed = CliRunner().invoke(cli, ["pipeline", "replay-dlq", str(folder), "--json", *call])
    assert json.loads(replayed.output) == {"sent": 4, "passed_over": 0, "before_rewind": 0}
    once_more = CliRunner().invoke(cli, ["pipeline", "replay-dlq", str(folder), "--json", *call])
    assert json.loads(once_more.output) == {"sent": 0, "passed_over": 0, "before_rewind": 0}
    assert rows(run_once(folder, spark, broker.bootstrap_servers), "written") == 4
    expected = [{"id": n, "doubled": 2 * n} for n in range(40)]
    found = read_records(broker.bootstrap_servers, f"{name}-out")
    assert sorted(values(found), key=lambda row: row["id"]) == expected
    rewound = CliRunner().invoke(cli, ["pipeline", "rewind", str(folder), "--to-earliest", "--yes", *call])
    assert rewound.exit_code == 0, rewound.output
    assert "4 dead letters after this start" in rewound.output
    outcome = run_once(folder, spark, broker.bootstrap_servers)
    assert (rows(outcome, "read"), rows(outcome, "written")) == (44, 44)
    again = values(read_records(broker.bootstrap_servers, f"{name}-out"))
    # The topic has each letter twice, as it was first and as it was sent again; the mended schema reads both.
    assert Counter((row["id"], row["doubled"]) for row in again) == {(n, 2 * n): 2 if n % 10 else 3 for n in range(40)}


def test_a_backfill_and_its_stream_have_every_record_once(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = "Asia/Tokyo"
    text = CLEAN.format(name=name, more=f"trigger: 100 ms\nspark: {{settings: {{spark.sql.session.timeZone: {zone}}}}}")
    folder = write_pipeline(tmp_path, text.replace("AS doubled", "AS doubled, current_timezone() AS zone"))
    monkeypatch.setattr("headrace.cli.pipeline_rewind.spark_session", lambda *_: spark)
    send(broker.bootstrap_servers, name, ({"id": n, "n": n} for n in range(300)))
    is_live, sent = threading.Event(), [300]

    def produce() -> None:
        while not is_live.is_set():
            send(broker.bootstrap_servers, name, [{"id": n, "n": n} for n in range(sent[0], sent[0] + 10)])
            sent[0] += 10
            time.sleep(0.01)

    producing = threading.Thread(target=produce)
    producing.start()
    call = ["--bootstrap", broker.bootstrap_servers]
    arguments = ["pipeline", "backfill", str(folder), "--chunk-records", "100", *call]
    try:
        filled = CliRunner().invoke(cli, arguments)
        assert filled.exit_code == 0, (filled.output, filled.exception)
        runner = runner_of(folder, spark, broker.bootstrap_servers, once=False)
        running = threading.Thread(target=runner.run)
        running.start()
        while not runner._batches:
            assert running.is_alive()
            time.sleep(0.05)
    finally:
        is_live.set()
        producing.join()
    runner.stop.set()
    running.join()
    run_once(folder, spark, broker.bootstrap_servers)
    found = sorted(values(read_records(broker.bootstrap_servers, f"{name}-out")), key=lambda row: row["id"])
    assert found == [{"id": n, "doubled": 2 * n, "zone": zone} for n in range(sent[0])]
    again = CliRunner().invoke(cli, arguments)
    assert (again.exit_code, "--again" in again.output) == (1, True)


def test_a_backfill_that_is_refused_or_wrong_leaves_the_stream_where_it_was(
    spark: "SparkSession", broker: EmbeddedBroker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.cli.pipeline_rewind.spark_session", lambda *_: spark)
    send(broker.bootstrap_servers, name, [{"id": n // 2, "n": n} for n in range(10)])
    query = "SELECT id, n * 2 AS doubled FROM input"
    for wrong, said in {
        "SELECT DISTINCT id FROM input": "the transform keeps state (Distinct)",
        "SELECT nothing FROM input": "pipeline.yml:3: transform.sql: A column",
    }.items():
        folder = write_pipeline(tmp_path, CLEAN.format(name=name, more="").replace(query, wrong))
        call = ["pipeline", "backfill", str(folder), "--bootstrap", broker.bootstrap_servers]
        refused = CliRunner().invoke(cli, call)
        assert (refused.exit_code > 0, said in refused.output) == (True, True), refused.output
        assert Checkpoint(folder / "checkpoint").note() == Note()
        assert known_backfills(Checkpoint(folder / "checkpoint")) == []
    write_pipeline(tmp_path, CLEAN.format(name=name, more=""))
    assert rows(run_once(folder, spark, broker.bootstrap_servers), "written") == 10
