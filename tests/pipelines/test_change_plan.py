"""`headrace pipeline plan` and `deploy`: what a changed file would do to the checkpoint, the topics and the tables."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli import pipeline_run
from headrace.cli.main import cli
from headrace.client import Admin
from headrace.spark.pipelines.change_plan import ChangePlan, Facts, StateAction, StorageAction, TableFacts, plan_change
from headrace.spark.pipelines.checkpoints import Checkpoint, Note
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.identity import identity_of
from headrace.spark.pipelines.records import RunRecord, RunState, run_message
from headrace.spark.pipelines.status_topic import make_topic, opened
from headrace.testing.embedded import EmbeddedBroker
from tests.pipelines.test_rewind_command import log_batch

FILE = """\
name: shop
source:
  topic: orders
  format: json
  schema: id STRING NOT NULL, amount DOUBLE
transform:
  sql: SELECT id, amount FROM input
sinks:
  - {topic: out, partitions: 4}
  - {parquet: landed, partition_by: [id]}
bad_records: {topic: dead}
"""
RUN = """
import sys
from headrace.spark.pipelines.claims import Claim, new_run
from headrace.spark.pipelines.records import RunState
from headrace.spark.pipelines.status_topic import opened
with opened({{"bootstrap.servers": {servers!r}}}) as bulletin:
    claim = Claim(bulletin=bulletin, record=new_run({name!r}))
    claim.take()
    claim.begins()
    while not claim.listen():
        pass
    claim.give_up(RunState.STOPPED)
"""
"""A run without Spark: it claims its pipeline, and ends when `stop` requests it."""

TOPICS = {"orders": 3, "dead": 1}


def write(folder: Path, *replaced: str) -> Path:
    text = FILE
    for old, new in zip(replaced[::2], replaced[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    (folder / "pipeline.yml").write_text(text)
    return folder


def note_of(folder: Path, *, keeps_state: bool = False) -> Note:
    """The note of a run of the file."""
    pipeline = read_pipeline(folder)
    return Note(identity=identity_of(pipeline, is_stateful=keeps_state), texts=pipeline.texts)


def plan(
    folder: Path,
    *replaced: str,
    keeps_state: bool = False,
    is_finished: bool = True,
    decided: bool | None = None,
    **facts: dict[str, TableFacts],
) -> ChangePlan:
    """The plan of a change after a run of the file up to batch 7."""
    note = note_of(write(folder), keeps_state=keeps_state)
    known = Facts(
        note=note,
        last_batch=7,
        is_finished=is_finished,
        topics=TOPICS,
        tables=facts.get("tables", {}),
        keeps_state=decided,
    )
    return plan_change(read_pipeline(write(folder, *replaced)), known)


def test_the_first_run_begins_and_creates(tmp_path: Path) -> None:
    facts = Facts(note=Note(), last_batch=None, is_finished=True, topics=TOPICS, tables={})
    found = plan_change(read_pipeline(write(tmp_path)), facts)
    assert found.state is StateAction.BEGIN
    assert "has no batch: input from earliest" in found.state_text
    assert [(step.name, step.action) for step in found.topics] == [
        ("orders", StorageAction.READ),
        ("dead", StorageAction.KEEP),
        ("out", StorageAction.CREATE),
    ]
    assert [(step.name, step.action, step.text) for step in found.tables] == [
        ("landed", StorageAction.CREATE, "rows are appended")
    ]
    assert (found.changes, found.is_refused) == ((), False)


def test_an_unchanged_file_continues_without_changes(tmp_path: Path) -> None:
    found = plan(tmp_path)
    assert (found.state, found.state_text, found.changes) == (StateAction.CONTINUE, "continues after batch 7", ())
    assert plan(tmp_path, is_finished=False).state_text == "continues with a repeat of batch 7"


CHANGES = [
    (("amount FROM", "amount * 2 AS amount FROM"), False, None, StateAction.UNDECIDED),
    (("amount FROM", "amount * 2 AS amount FROM"), False, False, StateAction.CONTINUE),
    (("amount FROM", "count(*) AS amount FROM"), False, True, StateAction.REFUSE),
    (("amount FROM", "amount * 2 AS amount FROM"), True, None, StateAction.REFUSE),
    (("topic: orders", "topic: dead-orders"), False, None, StateAction.REFUSE),
    (("bad_records: {topic: dead}", "trigger: 5 seconds"), False, None, StateAction.REFUSE),
    (("partitions: 4", "partitions: 5"), True, None, StateAction.CONTINUE),
]


@pytest.mark.parametrize(("change", "keeps_state", "decided", "state"), CHANGES)
def test_what_a_change_does_to_state(
    tmp_path: Path, change: tuple[str, str], keeps_state: bool, decided: bool | None, state: StateAction
) -> None:
    found = plan(tmp_path, *change, keeps_state=keeps_state, decided=decided)
    assert found.state is state
    assert (state is StateAction.REFUSE) <= found.is_refused


def test_changed_keys_have_their_lines_and_effects(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        "format: json",
        "format: json\n  start: latest",
        "partitions: 4",
        "partitions: 5",
        "bad_",
        "trigger: 2 s\nbad_",
    )
    assert [(each.key, each.before, each.after, each.place.line) for each in found.changes] == [
        ("sinks[0].partitions", "4", "5", 10),
        ("source.start", "(absent)", "latest", 5),
        ("trigger", "(absent)", "2 s", 12),
    ]
    partitions, start, trigger = (each.effect for each in found.changes)
    assert "existing ones keep theirs" in partitions
    assert start.startswith("none: the stream has begun")
    assert trigger == "from the next batch on"


def test_topics_and_tables_that_are_no_longer_written_are_named(tmp_path: Path) -> None:
    tables = {"landed": TableFacts(("id",)), "other": TableFacts(("id",))}
    found = plan(tmp_path, "topic: dead", "topic: late", "parquet: landed", "parquet: other", tables=tables)
    assert ("dead", StorageAction.ABANDON) in [(step.name, step.action) for step in found.topics]
    assert [(step.name, step.action) for step in found.tables] == [
        ("other", StorageAction.KEEP),
        ("landed", StorageAction.ABANDON),
    ]


def test_a_table_with_other_folders_is_refused(tmp_path: Path) -> None:
    found = plan(tmp_path, tables={"landed": TableFacts(("day",))})
    assert found.refusals == ("landed: is partitioned by day, and the file has id: use the same, or another folder",)


def test_a_table_that_moves_during_an_unfinished_batch_is_refused(tmp_path: Path) -> None:
    moved = ("  - {topic: out, partitions: 4}\n", "  - {delta: first}\n  - {topic: out, partitions: 4}\n")
    assert not plan(tmp_path, *moved).is_refused
    (reason,) = plan(tmp_path, *moved, is_finished=False).refusals
    assert "batch 7 is unfinished, and the table landed moved from sinks[1] to sinks[2]" in reason


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as started:
        started.create_topic("orders", partitions=2)
        yield started


def command(broker: EmbeddedBroker, name: str, folder: Path, *arguments: str) -> Result:
    called = ["pipeline", name, str(folder), "--bootstrap", broker.bootstrap_servers, *arguments]
    return CliRunner().invoke(cli, called)


@pytest.mark.process
def test_the_command_shows_the_plan_and_changes_nothing(broker: EmbeddedBroker, tmp_path: Path) -> None:
    write(tmp_path)
    log_batch(tmp_path, 3, {"orders": {"0": 1}}, is_finished=True)
    Checkpoint(tmp_path / "checkpoint").write_note(note_of(tmp_path))
    write(tmp_path, "topic: out, partitions: 4", "topic: out2")
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    told = command(broker, "plan", tmp_path)
    assert told.exit_code == 0, told.output
    assert 'pipeline "shop": continues after batch 3' in told.output
    shown = [line.split() for line in told.output.splitlines()]
    assert ["sinks[0].topic", "out", "out2", "from", "the", "next", "batch", "on"] in shown
    assert ["orders", "read", "2", "partitions"] in shown
    answer = json.loads(command(broker, "plan", tmp_path, "--json").output)
    assert answer["state"] == {"action": "continue", "text": "continues after batch 3"}
    assert [(each["key"], each["place"]["line"]) for each in answer["changes"]] == [
        ("sinks[0].partitions", 0),
        ("sinks[0].topic", 9),
    ]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == files


@pytest.mark.process
def test_a_refused_change_is_not_deployed_and_the_run_stays(broker: EmbeddedBroker, tmp_path: Path) -> None:
    write(tmp_path)
    log_batch(tmp_path, 0, {"orders": {"0": 1}}, is_finished=True)
    Checkpoint(tmp_path / "checkpoint").write_note(note_of(tmp_path))
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    write(tmp_path, "topic: orders", "topic: ordres")
    with Admin(config=settings) as admin:
        make_topic(admin)
    run = RunRecord(pipeline="shop", run="r", state=RunState.RUNNING, host="h", process_id=1, started_ms=0)
    with opened(settings) as bulletin:
        bulletin.publish_and_wait(run_message(replace(run, pipeline="shop")))
        refused = command(broker, "plan", tmp_path)
        told = command(broker, "deploy", tmp_path, "--yes")
        known = bulletin.catch_up().pipelines["shop"]
    assert (refused.exit_code, told.exit_code) == (1, 1)
    assert "refused: ordres: does not exist (headrace topics create ordres)" in refused.output
    assert 'pipeline "shop" is not deployed, and nothing has changed' in told.output
    assert not known.stops
    assert known.holder is not None
    assert known.holder.state is RunState.RUNNING


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # as a run in the background is
def test_deploy_stops_the_current_run_and_starts_the_next(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, settings = tmp_path.name, {"bootstrap.servers": broker.bootstrap_servers}
    write(tmp_path, "name: shop", f"name: {name}")
    script = RUN.format(servers=broker.bootstrap_servers, name=name)
    modes: list[list[str]] = []

    def command_of(_target: object, mode: list[str]) -> list[str]:
        modes.append(mode)
        return [sys.executable, "-c", script]

    monkeypatch.setattr(pipeline_run, "_command", command_of)
    with Admin(config=settings) as admin:
        make_topic(admin)
    first = command(broker, "deploy", tmp_path, "--yes")
    assert (first.exit_code, modes) == (0, [[]]), first.output
    try:
        second = command(broker, "deploy", tmp_path, "--yes", "--metrics", "127.0.0.1:0", "--master", "local[1]")
        assert second.exit_code == 0, second.output
        runs = re.findall(r"runs as process \d+, run (\w+)", first.output + second.output)
        assert len(set(runs)) == 2
        assert f'pipeline "{name}": run {runs[0]} stopped' in second.output
        assert second.output.index(f"run {runs[0]} stopped") < second.output.index(f"run {runs[1]}")
        assert modes[1] == ["--master", "local[1]", "--metrics", "127.0.0.1:0"]
    finally:
        assert command(broker, "stop", tmp_path).exit_code == 0
