"""Rows into a Delta table by their keys, also those that nothing orders."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.spark.pipelines.definition import DeltaMode, DeltaSink
from headrace.spark.pipelines.upserts import upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[int, int | None, str]

SINK = DeltaSink(name="sink", path="table", mode=DeltaMode.UPSERT, keys=("id",), order_by="at")


def test_rows_that_nothing_orders_are_the_oldest_of_their_key(spark: "SparkSession", tmp_path: Path) -> None:
    def after(epoch: int, *rows: Row) -> list[tuple[Any, ...]]:
        from deltalake import DeltaTable

        given = spark.createDataFrame(list(rows), "id INT, at INT, text STRING")
        upsert(given, str(tmp_path / "table"), SINK, owner="o", epoch=epoch)
        found = DeltaTable(str(tmp_path / "table")).to_pyarrow_table().to_pylist()
        return sorted((row["id"], row["at"], row["text"]) for row in found)

    assert after(0, (1, None, "a"), (2, 5, "b"), (2, None, "c")) == [(1, None, "a"), (2, 5, "b")]
    assert after(1, (1, 3, "d"), (2, None, "e")) == [(1, 3, "d"), (2, 5, "b")]
