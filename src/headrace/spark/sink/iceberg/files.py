"""The Parquet files that a task writes into the location of an Iceberg table."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.spark.sink.staged_writes import RowsDoNotFit, StagingReport

if TYPE_CHECKING:
    import pyarrow as pa

TARGET_FILE_BYTES = 128 * 1024 * 1024
OPEN_FILES_MAX = 100
"""Combinations of partition values that one task writes at once; the oldest file is closed first."""

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """Stages the rows of a task; it is sent to the tasks, so it holds plain values only."""

    location: str
    io_properties: Mapping[str, str] = field(repr=False)
    schema: "pa.Schema"
    """The columns with the types of the table."""
    partition_by: tuple[str, ...] = ()

    def __call__(self, batches: Iterable["pa.RecordBatch"]) -> StagingReport:
        from pyiceberg.io import load_file_io

        attempt, count = uuid.uuid4().hex, 0
        files = _OpenFiles(load_file_io(dict(self.io_properties), self.location), f"{self.location}/data/{attempt}")
        try:
            for batch in batches:
                for values, rows in self._parts(self._cast(batch)):
                    files.write(values, rows)
                count += batch.num_rows
            files.close()
        except BaseException:
            files.discard()
            raise
        return StagingReport(attempt, count, tuple(files.paths))

    def _cast(self, batch: "pa.RecordBatch") -> "pa.Table":
        import pyarrow as pa

        try:
            return pa.Table.from_batches([batch]).select(self.schema.names).cast(self.schema)
        except (pa.ArrowInvalid, ValueError) as error:
            raise RowsDoNotFit(f"the rows do not fit the Iceberg table: {error}") from None

    def _parts(self, rows: "pa.Table") -> "Iterator[tuple[Values, pa.Table]]":
        """Split rows by their partition values."""
        import pyarrow as pa

        if not self.partition_by or not rows.num_rows:
            if rows.num_rows:
                yield (), rows
            return
        columns = [rows.column(name).to_pylist() for name in self.partition_by]
        places: dict[Values, list[int]] = {}
        for place, values in enumerate(zip(*columns, strict=True)):
            places.setdefault(values, []).append(place)
        for values, found in places.items():
            yield values, rows.take(pa.array(found))


class _OpenFiles:
    """The files of one task: one open file for each combination of partition values."""

    def __init__(self, io: Any, stem: str) -> None:
        self.paths: list[str] = []
        self._io, self._stem = io, stem
        self._open: dict[Values, tuple[Any, Any]] = {}

    def write(self, values: Values, rows: "pa.Table") -> None:
        opened = self._open.pop(values, None)
        if opened is None:
            if len(self._open) >= OPEN_FILES_MAX:
                self._finish(self._open.pop(next(iter(self._open))))
            opened = self._begin(rows.schema)
        stream, writer = opened
        writer.write_table(rows)
        if stream.tell() >= TARGET_FILE_BYTES:
            self._finish(opened)
        else:
            self._open[values] = opened

    def _begin(self, schema: "pa.Schema") -> tuple[Any, Any]:
        import pyarrow.parquet as pq

        path = f"{self._stem}-{len(self.paths)}.parquet"
        self.paths.append(path)
        stream = self._io.new_output(path).create()
        return stream, pq.ParquetWriter(stream, schema)

    def _finish(self, opened: tuple[Any, Any]) -> None:
        stream, writer = opened
        writer.close()
        stream.close()

    def close(self) -> None:
        while self._open:
            self._finish(self._open.popitem()[1])

    def discard(self) -> None:
        """Delete the files after a failure; what cannot be deleted belongs to no snapshot."""
        for opened in self._open.values():
            with suppress(Exception):
                self._finish(opened)
        for path in self.paths:
            with suppress(Exception):
                self._io.delete(path)
