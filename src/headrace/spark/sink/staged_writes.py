"""Writes in two steps: tasks stage their rows where no reader sees them, and the driver commits what they report."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

REPORT_SCHEMA = "attempt STRING, rows BIGINT, files ARRAY<STRING>"


class RowsDoNotFit(RuntimeError):
    """The rows or their keys do not fit the table: the same rows would fail again."""


class StagingReport(NamedTuple):
    """The rows that one task has staged, under an id that no other attempt has."""

    attempt: str
    rows: int
    files: tuple[str, ...] = ()


Stage = Callable[[Iterable["pa.RecordBatch"]], StagingReport]
"""Stages the rows of a task. It is sent to the tasks, so it holds plain values only."""


class StagedTable(Protocol):
    def prepare(self, schema: "pa.Schema") -> Stage:
        """Create what is missing, and refuse rows that do not fit, on the driver before the tasks begin."""
        ...

    def commit(self, reports: Sequence[StagingReport], batch_id: int) -> bool:
        """Commit the rows of these attempts, once per batch; return False if the table has the batch already."""
        ...


def write_staged(rows: "DataFrame", table: StagedTable, batch_id: int) -> bool:
    """Write one batch; return False if the table has it already.

    The rows are evaluated in any case: operators before the sink rely on that.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    stage = table.prepare(to_arrow_schema(rows.schema, timezone="UTC"))

    def reported(batches: Iterable["pa.RecordBatch"]) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        report = stage(batches)
        files = pa.array([list(report.files)], pa.list_(pa.string()))
        columns: list[pa.Array[Any]] = [
            pa.array([report.attempt], pa.string()),
            pa.array([report.rows], pa.int64()),
            files,
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["attempt", "rows", "files"])

    found = rows.mapInArrow(reported, REPORT_SCHEMA).collect()
    return table.commit([StagingReport(row.attempt, row.rows, tuple(row.files)) for row in found], batch_id)
