"""Rows of a pipeline into tables of a database and of Iceberg: a batch that is repeated, and rows that do not fit."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.spark.pipelines.records import RunState
from headrace.spark.sink.databases.dialects import SQLite
from headrace.spark.sink.iceberg.table import CatalogPlace
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import forget_end_of_last_batch, run_once, send, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT, at INT, text STRING", rows_per_batch: 4}}
transform: {{sql: "SELECT * FROM input"}}
sinks:
  - {{database: "sqlite:///shop.db", table: newest, mode: upsert, keys: [id], order_by: at}}
  - {{database: "sqlite:///shop.db", table: history}}
  - {{iceberg: shop.changes, catalog: "sqlite:///catalog.db", warehouse: lake, partition_by: [id]}}
restart: {{attempts: 0}}
"""


@pytest.mark.record_integrity
def test_rows_reach_tables_once_also_when_a_batch_is_repeated(
    spark: "SparkSession", broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    folder = write_pipeline(tmp_path, PIPELINE.format(name=topic))
    database = SQLite(str(tmp_path / "shop.db"))
    place = CatalogPlace.of("sqlite:///catalog.db", "lake", {}).below(tmp_path)
    changes = [{"id": number % 3, "at": number, "text": f"change {number}"} for number in range(8)]
    send(broker.bootstrap_servers, topic, changes, partitions=2)
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    forget_end_of_last_batch(folder)
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    newest = {row["id"]: row["text"] for row in database.read("newest")}
    assert newest == {0: "change 6", 1: "change 7", 2: "change 5"}
    assert sorted(row["at"] for row in database.read("history")) == list(range(8))
    changes_table = place.load().load_table("shop.changes").scan().to_arrow()
    assert sorted(changes_table["text"].to_pylist()) == sorted(str(each["text"]) for each in changes)

    send(broker.bootstrap_servers, topic, [{"at": 9, "text": "no key"}])
    outcome = run_once(folder, spark, broker.bootstrap_servers)
    assert outcome.state is RunState.FAILED
    assert "RowsDoNotFit: 1 rows of the batch have no `id`, which is a key of newest" in outcome.message
    assert len(database.read("history")) == 8
