"""The report of a task to the driver, in a separate module: the driver need not import what tasks encode with."""

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from headrace.client.batch_commits import BatchWriter
from headrace.spark.sink.identity import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport(WriterCommitMessage):
    """The report of a task that succeeded."""

    identity: Identity | None
    """None if the rows are written at least once."""
    writer: BatchWriter | None
    """The writer to commit; None if the batch was committed before."""
    records: int
    batch_bytes: int
