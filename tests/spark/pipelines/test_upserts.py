"""Rows into a Delta table by their keys, also those that nothing orders and those whose keys are null."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.spark.pipelines.definition import DeltaSinkDefinition, WriteMode
from headrace.spark.pipelines.upserts import upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[int, int | None, str]

SINK = DeltaSinkDefinition(name="sink", path="table", mode=WriteMode.UPSERT, keys=("id",), order_by="at")


def test_rows_that_nothing_orders_are_the_oldest_of_their_key(spark: "SparkSession", tmp_path: Path) -> None:
    def after(batch_id: int, *rows: Row) -> list[tuple[Any, ...]]:
        from deltalake import DeltaTable

        given = spark.createDataFrame(list(rows), "id INT, at INT, text STRING")
        upsert(given, str(tmp_path / "table"), SINK, owner="o", batch_id=batch_id)
        found = DeltaTable(str(tmp_path / "table")).to_pyarrow_table().to_pylist()
        return sorted((row["id"], row["at"], row["text"]) for row in found)

    assert after(0, (1, None, "a"), (2, 5, "b"), (2, None, "c")) == [(1, None, "a"), (2, 5, "b")]
    assert after(1, (1, 3, "d"), (2, None, "e")) == [(1, 3, "d"), (2, 5, "b")]


def test_rows_without_a_key_replace_each_other_when_they_come_again(spark: "SparkSession", tmp_path: Path) -> None:
    """As after a rewind: the same rows under another batch."""
    from deltalake import DeltaTable

    path = str(tmp_path / "table")
    sink = replace(SINK, keys=("id", "shop"))
    rows = [(1, "x", 5, "a"), (None, "x", 5, "b"), (1, None, 5, "c"), (None, None, 5, "d"), (None, "x", 6, "newer")]
    given = spark.createDataFrame(rows, "id INT, shop STRING, at INT, text STRING")
    kept = Counter({"a": 1, "newer": 1, "c": 1, "d": 1})
    for owner, batch_id in (("o", 0), ("o", 0), ("o", 1), ("rewound", 0)):
        upsert(given, path, sink, owner=owner, batch_id=batch_id)
        assert Counter(DeltaTable(path).to_pyarrow_table().column("text").to_pylist()) == kept
