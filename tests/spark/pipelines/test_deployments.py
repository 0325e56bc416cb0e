"""Changed files after a run: what the run left for the plan, what a run refuses, and secrets that are nowhere shown."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.client import Admin
from headrace.spark.pipelines.change_facts import gather_facts, keeps_state
from headrace.spark.pipelines.change_plan import ChangePlan, StateAction, StorageAction, plan_change
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.problems import DefinitionError
from headrace.spark.pipelines.records import RunState
from headrace.spark.pipelines.runner import IncompatibleChange
from headrace.spark.pipelines.secret_texts import HIDDEN
from headrace.spark.pipelines.status_topic import opened
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import forget_end_of_last_batch, run_once, send, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """\
name: {name}
source:
  topic: {name}
  format: json
  schema: id INT NOT NULL, day STRING
  options: {{kafka.client.id: "${{env:PLAN_SECRET}}"}}
transform: {{sql: "SELECT id, day FROM input"}}
sinks:
  - {{topic: {name}-out}}
  - {{parquet: landed, partition_by: [day]}}
  - {{parquet: copy}}
restart: {{attempts: 0}}
"""
SECRET = "hidden-client-of-the-plan"


def planned(folder: Path, spark: "SparkSession", bootstrap: str, *, decide: bool = False) -> ChangePlan:
    pipeline = read_pipeline(folder)
    with Admin(bootstrap) as admin:
        facts = gather_facts(admin, pipeline)
    if decide:
        facts = replace(facts, keeps_state=keeps_state(lambda: spark, pipeline, bootstrap))
    return plan_change(pipeline, facts)


def test_changes_after_a_run(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAN_SECRET", SECRET)
    servers, text = broker.bootstrap_servers, PIPELINE.format(name=topic)
    folder = write_pipeline(tmp_path / "shop", text)
    send(servers, topic, [{"id": number, "day": "monday"} for number in range(10)])
    assert planned(folder, spark, servers).state is StateAction.BEGIN
    run_once(folder, spark, servers)
    found = planned(folder, spark, servers)
    assert (found.state, found.changes, found.refusals) == (StateAction.CONTINUE, (), ())
    assert [(step.name, step.action) for step in found.tables] == [
        ("landed", StorageAction.KEEP),
        ("copy", StorageAction.KEEP),
    ]

    write_pipeline(folder, text.replace("[day]", "[id]"))
    (reason,) = planned(folder, spark, servers).refusals
    assert reason.startswith("landed: is partitioned by day, and the file has id")
    for query, state in (
        ("SELECT id + 1 AS id, day FROM input", StateAction.CONTINUE),
        ("SELECT DISTINCT id, day FROM input", StateAction.REFUSE),
    ):
        write_pipeline(folder, text.replace("SELECT id, day FROM input", query))
        assert planned(folder, spark, servers).state is StateAction.UNDECIDED
        assert planned(folder, spark, servers, decide=True).state is state

    forget_end_of_last_batch(folder)
    landed, copied = "  - {parquet: landed, partition_by: [day]}\n", "  - {parquet: copy}\n"
    write_pipeline(folder, text.replace(landed + copied, copied + landed))
    with pytest.raises(IncompatibleChange, match="batch 0 is unfinished, and the table copy moved from"):
        run_once(folder, spark, servers)
    write_pipeline(folder, text)
    assert run_once(folder, spark, servers).state is RunState.DONE
    assert spark.read.parquet(str(folder / "landed")).count() == 10

    (folder / "code.py").write_text(f"def change(rows):\n    raise ValueError('{SECRET} is wrong')\n")
    write_pipeline(folder, text.replace('sql: "SELECT id, day FROM input"', "python: code.py:change"))
    with pytest.raises(DefinitionError):
        run_once(folder, spark, servers)
    (folder / "code.py").unlink()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)  # the code names the secret, compiled too
    with opened({"bootstrap.servers": servers}) as bulletin:
        known = bulletin.catch_up().pipelines[topic]
    assert known.holder is not None
    assert known.holder.message.endswith(f"{HIDDEN} is wrong")
    shown = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert shown == []
