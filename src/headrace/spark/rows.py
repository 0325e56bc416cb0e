"""Build rows of a DataFrame from decoded records: the requested columns, as Arrow arrays."""

from collections.abc import Iterator
from typing import Any

import numpy
import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.model.ids import TopicPartition
from headrace.spark.batch_watermarks import watermark_of_task
from headrace.spark.source_options import ERROR_COLUMN, SourceOptions
from headrace.spark.value_decoder import Values, value_decoder
from headrace.wire.columns.arrow import Column, binary_column, constant_column, headers_column, timestamp_column
from headrace.wire.columns.decoder import Decoded

_arrow: Any = pyarrow


class BadRecord(RuntimeError):
    """A value is not of the requested format, and the policy is to fail."""


class RowMaker:
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._schema: pyarrow.Schema = to_arrow_schema(schema, timezone="UTC")
        self._columns = options.columns
        self._bad_records = options.bad_records
        self._kind = options.values.kind
        self._watermark_ms = 0 if options.watermark_folder is None else watermark_of_task(options.watermark_folder)
        self._decode = None
        if "value" in options.columns:
            value_type = schema["value"].dataType
            self._decode = value_decoder(options.values.kind, value_type, self._schema.field("value").type)

    def rows(self, partition: TopicPartition, decoded: Decoded) -> Iterator[pyarrow.RecordBatch]:
        count = len(decoded.places.offset)
        if not count:
            return
        raw, values = self._values(partition, decoded)
        columns = [self._column(name, partition, decoded, raw, values) for name in self._columns]
        batch = _arrow.RecordBatch.from_arrays(columns, schema=self._schema)
        if values is not None and values.failures and self._bad_records == "drop":
            keep = numpy.ones(count, bool)
            keep[list(values.failures)] = False
            batch = batch.filter(_arrow.array(keep))
        yield batch

    def _values(self, partition: TopicPartition, decoded: Decoded) -> tuple[Column | None, Values | None]:
        if self._decode is None:
            return None, None
        raw = binary_column(decoded.plain, decoded.places.value_at, decoded.places.value_size)
        values = self._decode(raw)
        if values.failures and self._bad_records == "fail":
            row, reason = min(values.failures.items())
            raise BadRecord(
                f"the value of {partition} at offset {decoded.places.offset[row]} is not {self._kind}: "
                f'{reason}; set option "onBadRecord" to drop or column to continue'
            )
        return raw, values

    def _column(
        self, name: str, partition: TopicPartition, decoded: Decoded, raw: Column | None, values: Values | None
    ) -> Column:
        plain, places, headers = decoded
        count = len(places.offset)
        match name:
            case "key":
                return binary_column(plain, places.key_at, places.key_size)
            case "value":
                assert values is not None
                return values.column
            case "topic":
                return constant_column(partition.topic, pyarrow.string(), count)
            case "partition":
                return constant_column(partition.partition, pyarrow.int32(), count)
            case "offset":
                return _of(places.offset)
            case "timestamp":
                return timestamp_column(places.timestamp_ms)
            case "timestampType":
                return _of(places.is_log_time.astype(numpy.int32))
            case "headers":
                assert headers is not None
                return headers_column(plain, places, headers)
            case "_watermark":
                return constant_column(self._watermark_ms, pyarrow.int64(), count)
            case _:
                assert name == ERROR_COLUMN
                assert values is not None
                return _errors(values, raw, self._schema.field(name).type)


def _of(numbers: Any) -> Column:
    column: Column = _arrow.array(numbers)
    return column


def _errors(values: Values, raw: Any, kind: pyarrow.DataType) -> Column:
    found: list[dict[str, object] | None] = [None] * len(values.column)
    for row, reason in values.failures.items():
        found[row] = {"message": reason, "value": raw[row].as_py()}
    column: Column = _arrow.array(found, kind)
    return column
