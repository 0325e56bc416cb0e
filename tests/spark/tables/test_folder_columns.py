"""A Parquet folder takes no rows that would make it unreadable: types and partition columns stay."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from headrace.spark.option_names import OptionError
from headrace.spark.sink.tables.batch_commits import FileReport
from headrace.spark.sink.tables.files import RollingFiles
from headrace.spark.sink.tables.folder_columns import FolderColumns
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.parquet import ParquetFolder
from headrace.spark.sink.tables.writers import FileWriter


def columns(**types: type) -> StructType:
    return StructType([StructField(name, kind()) for name, kind in types.items()])


def append(path: Path, schema: StructType, row: dict[str, object], *, partitioned_by: tuple[str, ...] = ()) -> None:
    """Do what Spark does for one row: the writer is made on the driver, a task writes, the driver commits."""
    options = TableOptions(path=str(path), partition_columns=partitioned_by)
    writer = FileWriter("parquet", options, schema)
    staged = ParquetFolder(options).staging_folder(None, writer._write_id)
    files = RollingFiles(staged, target_bytes=10_000, partition_columns=partitioned_by, compression="snappy")
    files.write(pa.RecordBatch.from_pylist([row], schema=to_arrow_schema(schema)))
    writer.commit([FileReport(identity=None, write_id=writer._write_id, files=tuple(files.close()), is_skipped=False)])


def test_columns_come_and_go_and_types_stay(tmp_path: Path) -> None:
    append(tmp_path, columns(id=IntegerType, n=StringType), {"id": 1, "n": "a"})
    append(tmp_path, columns(id=IntegerType), {"id": 2})
    append(tmp_path, columns(more=LongType, id=IntegerType), {"id": 3, "more": 7})
    with pytest.raises(OptionError, match=r"`id` is bigint and was int, `more` is string and was bigint; cast them"):
        append(tmp_path, columns(id=LongType, more=StringType), {"id": 4, "more": "8"})
    assert set(ds.dataset(str(tmp_path), format="parquet").to_table()["id"].to_pylist()) == {1, 2, 3}


def test_partition_columns_stay(tmp_path: Path) -> None:
    both = columns(id=IntegerType, day=StringType)
    append(tmp_path, both, {"id": 1, "day": "d"}, partitioned_by=("day",))
    with pytest.raises(OptionError, match="are partitioned by day: set the option partitionColumns to that"):
        append(tmp_path, both, {"id": 2, "day": "d"})
    append(tmp_path, both, {"id": 3, "day": "e"}, partitioned_by=("day",))
    found = ds.dataset(str(tmp_path), format="parquet", partitioning="hive").to_table().to_pylist()
    assert sorted((row["id"], row["day"]) for row in found) == [(1, "d"), (3, "e")]


def test_writers_at_once_lose_no_column(tmp_path: Path) -> None:
    options, count = TableOptions(path=str(tmp_path)), 16
    together = threading.Barrier(count)

    def note(number: int) -> None:
        together.wait()
        FolderColumns(options, {f"c{number}": "int"}).note()

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(note, range(count)))
    for number in range(count):
        with pytest.raises(OptionError, match=f"`c{number}` is string and was int"):
            FolderColumns(options, {f"c{number}": "string"}).check()


def test_of_two_writers_that_began_at_once_the_second_fits_the_first(tmp_path: Path) -> None:
    options = TableOptions(path=str(tmp_path))
    first, second = FolderColumns(options, {"id": "int"}), FolderColumns(options, {"id": "bigint"})
    first.check()
    second.check()
    first.note()
    with pytest.raises(OptionError, match="`id` is bigint and was int"):
        second.note()
