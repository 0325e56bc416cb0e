"""The data source "headrace" as Spark uses it: it takes options and provides the schema, readers and writers."""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from headrace.spark.log_once import log_once
from headrace.spark.option_names import STREAM_NAMES, OptionError, check_names
from headrace.spark.option_values import OptionReader
from headrace.spark.sink.options import is_sink, parse_sink_options
from headrace.spark.source_options import (
    DEFAULT_COLUMNS,
    ERROR_COLUMN,
    WATERMARK_COLUMN,
    SourceOptions,
    is_source,
    parse_source_options,
)
from headrace.spark.values import ERROR_TYPE
from headrace.spark.versions import check_version
from headrace.spark.workers import freeze_imports

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TYPES = {
    "key": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestampType": "INT",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    ERROR_COLUMN: ERROR_TYPE,
    WATERMARK_COLUMN: "BIGINT",
}


class HeadraceDataSource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Errors raised here reach the user at `load()`; those of later calls are wrapped in Spark's own errors."""
        super().__init__(options)
        check_version()
        freeze_imports()
        check_names(options)
        self._source = parse_source_options(options) if is_source(options) else None
        if self._source is None and is_sink(options):
            parse_sink_options(options)

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> str:
        """Return the schema; also called for writes, and by CREATE TABLE, whose options come with each SELECT."""
        if self._source is None:
            return _ddl(DEFAULT_COLUMNS, "BINARY")
        return _ddl(self._source.columns, self._source.values.spark_type)

    def reader(self, schema: "StructType") -> DataSourceReader:
        from headrace.spark.batch_reader import batch_reader

        freeze_imports()
        given = OptionReader(self.options)
        for name in filter(given.has, STREAM_NAMES):
            log_once(f'option "{name}" applies only to streams: leave it out of a batch read')
        return batch_reader(self._source_options(), self._own(schema))

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        """Return a reader. The reader reports errors itself: an error raised here would be hidden by one of Spark's."""
        from headrace.spark.stream_reader import RefusingReader, StreamReader

        try:
            return StreamReader(self._source_options(), self._own(schema))
        except OptionError as error:
            return RefusingReader(error)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        from headrace.spark.sink.writers import topic_writer

        return topic_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        from headrace.spark.sink.writers import topic_stream_writer

        return topic_stream_writer(self.options, schema)

    def _source_options(self) -> SourceOptions:
        if self._source is None:
            raise OptionError(
                'one of the options "subscribe", "subscribePattern" and "assign" is needed to read; in SQL '
                "give them as in SELECT * FROM t WITH (subscribe = 'orders'), because CREATE TABLE ... "
                "OPTIONS does not pass them on"
            )
        return self._source

    def _own(self, schema: "StructType") -> "StructType":
        """Accept a schema from the user only if it is the actual one."""
        names = tuple(schema.fieldNames())
        if names != self._source_options().columns:
            raise OptionError(
                f"the columns are {', '.join(self._source_options().columns)}, not {', '.join(names)}: leave "
                'out .schema(...), and use option "schema" for the fields of JSON values'
            )
        return schema


def _ddl(columns: tuple[str, ...], value_type: str) -> str:
    types = {**_TYPES, "value": value_type}
    return ", ".join(f"`{name}` {types[name]}" for name in columns)
