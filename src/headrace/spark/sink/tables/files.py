"""Writer of Parquet files of about equal size, with separate files for each combination of partition values."""

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.spark.sink.tables.written_files import PartitionValues, WrittenFile

OPEN_FILES_MAX = 100
"""Combinations of partition values that one task writes at once; the least recently used file is closed first."""

_ESCAPED = {letter: f"%{letter:02X}" for letter in (*range(0x20), *b"\"#%'*/:=?\\{[]^", 0x7F)}
"""Characters that Spark and Hive escape in the names of folders."""

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


class _OpenFile(NamedTuple):
    path: str
    file: Any
    writer: Any
    values: PartitionValues


class RollingFiles:
    """Writes the files of one task to one folder; `close` returns them."""

    def __init__(self, folder: str, *, target_bytes: int, partition_columns: tuple[str, ...], compression: str) -> None:
        self._folder = folder
        self._target_bytes = target_bytes
        self._partition_columns = partition_columns
        self._compression = compression
        self._open: dict[PartitionValues, _OpenFile] = {}
        self._written: list[WrittenFile] = []
        self._counts: dict[str, int] = {}

    def write(self, rows: "pa.RecordBatch") -> None:
        for values, part in self._parts(rows):
            for piece in self._pieces(part):
                self._write(values, piece)

    def _write(self, values: PartitionValues, rows: "pa.RecordBatch") -> None:
        opened = self._open.pop(values, None)
        if opened is None:
            if len(self._open) >= OPEN_FILES_MAX:
                self._finish(self._open.pop(next(iter(self._open))))
            opened = self._begin(values, rows.schema)
        opened.writer.write_batch(rows)
        self._counts[opened.path] += rows.num_rows
        if opened.file.tell() >= self._target_bytes:
            self._finish(opened)
        else:
            self._open[values] = opened

    def _pieces(self, rows: "pa.RecordBatch") -> Iterator["pa.RecordBatch"]:
        """Split rows to pieces of at most the target size, so that no file is twice as large."""
        count = max(1, rows.num_rows * self._target_bytes // max(1, rows.nbytes))
        for first in range(0, rows.num_rows, count):
            yield rows.slice(first, count)

    def close(self) -> list[WrittenFile]:
        for opened in self._open.values():
            self._finish(opened)
        self._open.clear()
        return self._written

    def discard(self) -> None:
        """Remove all files of the task after a failure."""
        for opened in self._open.values():
            with suppress(OSError, pa.ArrowException):  # the cause may be a full disk
                opened.writer.close()
            with suppress(OSError):
                opened.file.close()
            os.unlink(os.path.join(self._folder, opened.path))
        self._open.clear()
        for written in self._written:
            os.unlink(os.path.join(self._folder, written.path))
        self._written.clear()

    def _begin(self, values: PartitionValues, schema: "pa.Schema") -> _OpenFile:
        path = os.path.join(*(_folder_of(name, value) for name, value in values), f"part-{uuid.uuid4().hex}.parquet")
        full = os.path.join(self._folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        file = open(full, "xb")  # noqa: SIM115  (closed by _finish or discard)
        self._counts[path] = 0
        compression: Any = self._compression
        writer = pq.ParquetWriter(file, schema, compression=compression)
        return _OpenFile(path, file, writer, values)

    def _finish(self, opened: _OpenFile) -> None:
        opened.writer.close()
        opened.file.flush()
        os.fsync(opened.file.fileno())
        size = opened.file.tell()
        opened.file.close()
        self._written.append(WrittenFile(opened.path, size, self._counts.pop(opened.path), opened.values))

    def _parts(self, rows: "pa.RecordBatch") -> Iterator[tuple[PartitionValues, "pa.RecordBatch"]]:
        if not self._partition_columns:
            yield (), rows
            return
        columns: Mapping[str, Any] = dict(zip(rows.schema.names, rows.columns, strict=True))
        dictionaries = [columns[name].dictionary_encode(null_encoding="encode") for name in self._partition_columns]
        codes = np.stack([each.indices.to_numpy().astype(np.int64) for each in dictionaries])
        combinations, of_row = np.unique(codes, axis=1, return_inverse=True)
        rest = rows.select([name for name in rows.schema.names if name not in self._partition_columns])
        for number in range(combinations.shape[1]):
            values = tuple(
                (name, _text(each.dictionary[int(code)].as_py()))
                for name, each, code in zip(self._partition_columns, dictionaries, combinations[:, number], strict=True)
            )
            yield values, rest.take(np.flatnonzero(of_row.reshape(-1) == number))


def _text(value: Any) -> str | None:
    """Return a partition value as Delta's log and the names of folders have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None or value == "" else str(value)


def _folder_of(name: str, value: str | None) -> str:
    return f"{name.translate(_ESCAPED)}={NULL_FOLDER if value is None else value.translate(_ESCAPED)}"
