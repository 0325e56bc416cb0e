"""Spark's writers of files: tasks write whole Parquet files, and the driver makes them visible together."""

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from headrace.spark.log_once import log_once
from headrace.spark.option_names import OptionError
from headrace.spark.sink.identity import task_identity
from headrace.spark.sink.tables.batch_commits import FileReport, Table, is_repeat
from headrace.spark.sink.tables.folder_columns import FolderColumns
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.parquet import ParquetFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.spark.sink.tables.delta import DeltaFolder

TableKind = Literal["delta", "parquet"]
Messages = Sequence[WriterCommitMessage | None]

PARTITION_TYPES = (StringType, BooleanType, ByteType, ShortType, IntegerType, LongType, DateType)


class _FileWriter:
    """The common part of batch and stream writers. Spark pickles it to the tasks, so it holds plain values only."""

    def __init__(self, kind: TableKind, options: TableOptions, schema: StructType) -> None:
        _check_partition_columns(options, schema)
        self._kind: TableKind = kind
        self._options = options
        self._schema = schema
        self._write_id = uuid.uuid4().hex
        if kind == "delta":
            self._delta().check()
        else:
            self._folder_columns().check()

    def _delta(self) -> "DeltaFolder":
        from pyspark.sql.pandas.types import to_arrow_schema

        from headrace.spark.sink.tables.delta import DeltaFolder

        return DeltaFolder(self._options, to_arrow_schema(self._schema, timezone="UTC"))

    def _folder_columns(self) -> FolderColumns:
        types = {field.name: field.dataType.simpleString() for field in self._schema.fields}
        return FolderColumns(self._options, types)

    def _table(self) -> Table:
        return self._delta() if self._kind == "delta" else ParquetFolder(self._options)

    def _write(self, iterator: Iterator["pa.RecordBatch"]) -> FileReport:
        """Write the rows of a task. Only tasks import the writer of files: the driver makes this writer and commits."""
        from headrace.spark.sink.rows import chunks
        from headrace.spark.sink.tables.files import RollingFiles

        options, table = self._options, self._table()
        identity = task_identity(options, write_id=self._write_id)
        if identity is None:
            log_once("files are written at least once: a batch job without the option idempotenceKey may repeat rows")
        elif is_repeat(table.committed(identity.owner, identity.run), identity, self._write_id):
            # Operators before the sink rely on all rows being consumed.
            passed = sum(rows.num_rows for rows in iterator)
            return FileReport(identity=identity, write_id=self._write_id, files=(), is_skipped=True, passed_rows=passed)
        files = RollingFiles(
            table.staging_folder(identity, self._write_id),
            target_bytes=options.target_file_bytes,
            partition_columns=options.partition_columns,
            compression=options.compression,
        )
        try:
            for rows in chunks(iterator):
                files.write(rows)
            written = tuple(files.close())
        except BaseException:
            files.discard()
            raise
        return FileReport(identity=identity, write_id=self._write_id, files=written, is_skipped=False)

    def _commit(self, messages: Messages) -> None:
        reports = _reports(messages)
        if not reports:
            return
        table, first = self._table(), reports[0]
        counted = [report for report in reports if not report.is_skipped]
        if len(counted) < len(reports):
            assert first.identity is not None, "only a write with an identity is skipped"
            table.discard(counted)  # the batch was committed while some of the tasks ran
            table.finish_commit(first.identity)
            if any(report.passed_rows or report.files for report in reports):
                table.note_repeat(first.identity, first.write_id)
            return
        if self._kind == "parquet" and any(report.files for report in counted):
            self._folder_columns().note()
        table.commit(counted, first.identity, first.write_id)

    def _abort(self, messages: Messages) -> None:
        """Discard the files. Spark calls this also after a commit that raised: files of the table stay."""
        reports = _reports(messages)
        if not reports:
            return
        table, first = self._table(), reports[0]
        if first.identity is not None:
            found = table.committed(first.identity.owner)
            if found is not None and found.batch_id >= first.identity.batch_id:
                return
        table.discard(reports)


class FileWriter(_FileWriter, DataSourceArrowWriter):
    """One write of a batch job, or of a function given to foreachBatch."""

    def write(self, iterator: Iterator[Any]) -> FileReport:
        return self._write(iterator)

    def commit(self, messages: Messages) -> None:
        self._commit(messages)

    def abort(self, messages: Messages) -> None:
        self._abort(messages)


class FileStreamWriter(_FileWriter, DataSourceStreamArrowWriter):
    """One micro-batch of a query."""

    def write(self, iterator: Iterator[Any]) -> FileReport:
        return self._write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:
        self._commit(messages)

    def abort(self, messages: Messages, batchId: int) -> None:
        self._abort(messages)


def _reports(messages: Messages) -> list[FileReport]:
    return [message for message in messages if isinstance(message, FileReport)]


def _check_partition_columns(options: TableOptions, schema: StructType) -> None:
    types = {field.name: field.dataType for field in schema.fields}
    for name in options.partition_columns:
        if name not in types:
            raise OptionError(f"option partitionColumns names {name!r}; the rows have {', '.join(types)}")
        if not isinstance(types[name], PARTITION_TYPES):
            raise OptionError(
                f"column `{name}` of partitionColumns is {types[name].simpleString()}: a string, a whole number, a "
                "boolean or a date can be one"
            )
    if options.partition_columns and len(options.partition_columns) == len(types):
        raise OptionError("option partitionColumns names every column: leave at least one out")
