"""Write one micro-batch to every sink: called by Spark for each batch, and again for one whose end it did not log.

Each sink identifies a write by query, sink and batch, so repeating a completed write has no effect. A kill between two
sinks leaves the first with the batch and the second without it; the repeat writes it to the second.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import (
    BadRecordAction,
    ConsoleSink,
    DatabaseSinkDefinition,
    DeltaSinkDefinition,
    IcebergSinkDefinition,
    ParquetSinkDefinition,
    Pipeline,
    Sink,
    TopicSink,
    WriteMode,
)
from headrace.spark.pipelines.failpoints import Failpoint, reach
from headrace.spark.pipelines.output_rows import RECORDS, ROW
from headrace.spark.pipelines.upserts import upsert
from headrace.spark.sink.databases.dialects import dialect_of
from headrace.spark.sink.databases.table import DatabaseTable
from headrace.spark.sink.iceberg.table import CatalogPlace, IcebergTable
from headrace.spark.sink.staged_writes import write_staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[["DataFrame", int], None]


class StoppedAtBoundary(Exception):
    """The run was asked to stop: the batch that Spark has begun is left to the next run, and nothing of it is
    written.
    """


@dataclass(slots=True, kw_only=True)
class MicroBatchWriter:
    pipeline: Pipeline
    bootstrap: str
    generation: int
    batch_key: str | None = None
    """Outside of a stream, the runner numbers the batches of a write under this name."""
    stop: threading.Event = field(default_factory=threading.Event)

    def __call__(self, batch: "DataFrame", number: int) -> None:
        if self.stop.is_set():
            raise StoppedAtBoundary
        reach(Failpoint.BATCH_PLANNED)
        writes = self.writes()
        if len(writes) > 1:
            batch.persist()  # evaluating a stateful query twice would change its state twice
        try:
            for count, write in enumerate(writes):
                if count == 1:
                    reach(Failpoint.BETWEEN_SINKS)
                write(batch, number)
        finally:
            if len(writes) > 1:
                batch.unpersist()
        reach(Failpoint.SINKS_WRITTEN)

    def writes(self) -> list[Write]:
        """Return the writes: all topics are one write; every table is a separate one."""
        records: list[Write] = [self._write_records] if writes_topics(self.pipeline) else []
        return records + [self._table_write(sink) for sink in self.pipeline.sinks if not isinstance(sink, TopicSink)]

    def _write_records(self, batch: "DataFrame", number: int) -> None:
        from pyspark.sql import functions as sql

        topics = [sink for sink in self.pipeline.sinks if isinstance(sink, TopicSink)]
        options = {
            "kafka.bootstrap.servers": self.bootstrap,
            **(topics[0].options if topics else {}),
            **({"delivery": str(topics[0].delivery)} if topics else {}),
            **self._identity("topics", number),
        }
        records = batch.select(sql.explode(RECORDS).alias("record")).select("record.*")
        records.write.format("headrace").mode("append").options(**options).save()

    def _table_write(self, sink: Sink) -> Write:
        def write(batch: "DataFrame", number: int) -> None:
            rows = batch.where(f"{ROW} IS NOT NULL").select(f"{ROW}.*")
            if isinstance(sink, ConsoleSink):
                rows.show(sink.rows, truncate=False)
                return
            if isinstance(sink, DatabaseSinkDefinition):
                write_staged(rows, self._database_table(sink, rows), number)
                return
            if isinstance(sink, IcebergSinkDefinition):
                write_staged(rows, self._iceberg_table(sink, rows), number)
                return
            assert isinstance(sink, ParquetSinkDefinition | DeltaSinkDefinition)
            path = str(self.pipeline.folder.absolute() / sink.path)  # workers have other current directories
            if isinstance(sink, DeltaSinkDefinition) and sink.mode is WriteMode.UPSERT:
                upsert(rows, path, sink, owner=self._owner(sink, rows), batch_id=number)
                return
            kind = "headrace-parquet" if isinstance(sink, ParquetSinkDefinition) else "headrace-delta"
            partitioned = {"partitionColumns": ",".join(sink.partition_by)} if sink.partition_by else {}
            options = {**sink.options, **partitioned, **self._identity(_label(sink), number)}
            rows.write.format(kind).mode("append").options(**options).save(path)

        return write

    def _database_table(self, sink: DatabaseSinkDefinition, rows: "DataFrame") -> DatabaseTable:
        return DatabaseTable(
            dialect=dialect_of(sink.database, sink.options).below(self.pipeline.folder),
            table=sink.table,
            owner=self._owner(sink, rows),
            keys=sink.keys,
            order_by=sink.order_by,
        )

    def _iceberg_table(self, sink: IcebergSinkDefinition, rows: "DataFrame") -> IcebergTable:
        return IcebergTable(
            table=sink.table,
            place=CatalogPlace.of(sink.catalog, sink.warehouse, sink.options).below(self.pipeline.folder),
            owner=self._owner(sink, rows),
            partition_by=sink.partition_by,
        )

    def _owner(self, sink: Sink, rows: "DataFrame") -> str:
        """Return the name under which a table that the driver merges into knows the batches of this sink."""
        return f"{self.batch_key or _query_id(rows)}.{self._sink_name(_label(sink))}"

    def _sink_name(self, sink: str) -> str:
        return f"{self.pipeline.name}.{self.generation}.{sink}"

    def _identity(self, sink: str, number: int) -> Mapping[str, str]:
        """Return the identity of this write for the sink; the sink identifies a stream's batches by itself."""
        name = self._sink_name(sink)
        if self.batch_key is None:
            return {"sinkName": name}
        return {"sinkName": name, "idempotenceKey": self.batch_key, "idempotenceBatchId": str(number)}


def _label(sink: Sink) -> str:
    """Return the place of the sink in the file, in letters that the name of a sink can have."""
    return sink.name.replace("[", "-").replace("]", "")


def _query_id(rows: "DataFrame") -> str:
    from headrace.spark.sink.identity import QUERY_ID

    found: str | None = rows.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    assert found is not None, "Spark sets the query id when it calls the function for a batch"
    return found


def writes_topics(pipeline: Pipeline) -> bool:
    """Return whether any output of the pipeline can go to a topic."""
    return (
        any(isinstance(sink, TopicSink) for sink in pipeline.sinks)
        or pipeline.bad_records.action is BadRecordAction.DEAD_LETTER
        or any(expectation.quarantine is not None for expectation in pipeline.expectations)
    )
