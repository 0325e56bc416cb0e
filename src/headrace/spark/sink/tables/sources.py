"""The formats `headrace-delta` and `headrace-parquet`, for writing only: Spark and others read the files as usual."""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from headrace.spark.option_names import OptionError
from headrace.spark.sink.tables.options import parse_table_options
from headrace.spark.versions import check_version

if TYPE_CHECKING:
    # Versions of Spark that `check_version` refuses do not have all of these.
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter


class _FileSink(DataSource):
    KIND = ""
    READ_WITH = ""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_version()
        self._parsed = parse_table_options(options)

    @classmethod
    def name(cls) -> str:
        return f"headrace-{cls.KIND}"

    def schema(self) -> StructType:
        return StructType([])

    def reader(self, schema: StructType) -> DataSourceReader:
        raise OptionError(f'format "{self.name()}" is for writing: read the folder with {self.READ_WITH}')

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceArrowWriter":
        from headrace.spark.sink.tables.writers import FileWriter

        _refuse_overwrite(overwrite)
        return FileWriter(self.KIND, self._parsed, schema)  # type: ignore[arg-type]  # subclasses name a kind

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamArrowWriter":
        from headrace.spark.sink.tables.writers import FileStreamWriter

        _refuse_overwrite(overwrite)
        return FileStreamWriter(self.KIND, self._parsed, schema)  # type: ignore[arg-type]


def _refuse_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise OptionError('files are only added: use mode("append"), and delete old files by other means')


class DeltaSink(_FileSink):
    KIND = "delta"
    READ_WITH = "deltalake.DeltaTable(path), or any other reader of Delta tables"


class ParquetSink(_FileSink):
    KIND = "parquet"
    READ_WITH = "spark.read.parquet(path)"
