"""Merge the rows of a DataFrame into a table of a database: tasks copy them, the driver commits."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.spark.sink.databases.table import DatabaseTable, StagingReport

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

REPORT_SCHEMA = "attempt STRING, rows BIGINT"


def merge_rows(rows: "DataFrame", table: DatabaseTable, batch_id: int) -> bool:
    """Merge one batch; return False if the table has it already.

    The rows are evaluated in any case: operators before the sink rely on that.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    table.prepare(to_arrow_schema(rows.schema, timezone="UTC"))

    def stage(batches: Iterable["pa.RecordBatch"]) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        report = table.stage(batches)
        yield pa.RecordBatch.from_pydict({"attempt": [report.attempt], "rows": [report.rows]})

    reports = [StagingReport(row.attempt, row.rows) for row in rows.mapInArrow(stage, REPORT_SCHEMA).collect()]
    return table.commit(reports, batch_id)
