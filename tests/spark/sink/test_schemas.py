"""Columns are checked when a write is planned."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.option_names import OptionError
from headrace.spark.sink.schemas import check_schema

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize("kind", [StringType(), BinaryType()])
def test_the_columns_of_the_kafka_connector_are_taken_and_others_left_alone(kind: DataType) -> None:
    check_schema(schema(value=kind), has_topic=True)
    full = schema(
        key=kind, value=kind, topic=StringType(), partition=IntegerType(), headers=HEADERS, timestamp=TimestampType()
    )
    check_schema(full, has_topic=False)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (schema(key=StringType()), "a column `value` is needed; the rows have key"),
        (schema(), "the rows have no columns"),
        (schema(value=LongType()), "column `value` is a string or binary, not bigint: cast it"),
        (schema(value=StringType(), key=IntegerType()), "column `key` is a string or binary, not int"),
        (schema(value=StringType(), partition=LongType()), "column `partition` is an int, not bigint"),
        (schema(value=StringType(), topic=BinaryType()), "column `topic` is a string, not binary"),
        (
            schema(value=StringType(), headers=StringType()),
            "column `headers` is an array<struct<key:string,value:binary>>",
        ),
        (
            schema(value=StringType(), headers=ArrayType(StructType([StructField("value", BinaryType())]))),
            "column `headers` is an array",
        ),
    ],
)
def test_a_wrong_column_says_what_to_do(columns: StructType, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_schema(columns, has_topic=True)


def test_rows_need_a_topic_from_somewhere() -> None:
    with pytest.raises(OptionError, match="no topic: set the option topic"):
        check_schema(schema(value=StringType()), has_topic=False)
