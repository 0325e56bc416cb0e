"""The columns of the sink of topics: those of Spark's Kafka connector; others are ignored."""

from collections.abc import Mapping

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from headrace.spark.option_names import OptionError

_TEXT_OR_BINARY = (StringType, BinaryType)
_TYPES: Mapping[str, tuple[tuple[type[DataType], ...], str]] = {
    "key": (_TEXT_OR_BINARY, "a string or binary"),
    "value": (_TEXT_OR_BINARY, "a string or binary"),
    "topic": ((StringType,), "a string"),
    "partition": ((IntegerType,), "an int"),
}
LANE_COLUMN = "__hr_lane"
HEADERS = "an array<struct<key:string,value:binary>>"


def check_schema(schema: StructType, *, has_topic: bool, has_lanes: bool = False) -> None:
    """Refuse rows that cannot be written, before any row is written."""
    types = {field.name: field.dataType for field in schema.fields}
    if has_lanes and not isinstance(types.get(LANE_COLUMN), IntegerType):
        raise OptionError("lanes are written by headrace.spark.write_lanes(df), which distributes the rows to them")
    if "value" not in types:
        raise OptionError(f"a column `value` is needed; the rows have {', '.join(types) or 'no columns'}")
    if not has_topic and "topic" not in types:
        raise OptionError("no topic: set the option topic, or give the rows a column `topic`")
    for name, (kinds, text) in _TYPES.items():
        if name in types and not isinstance(types[name], kinds):
            raise OptionError(f"column `{name}` is {text}, not {types[name].simpleString()}: cast it")
    if "headers" in types and not _are_headers(types["headers"]):
        raise OptionError(f"column `headers` is {HEADERS}, not {types['headers'].simpleString()}: cast it")


def _are_headers(found: DataType) -> bool:
    if not isinstance(found, ArrayType) or not isinstance(found.elementType, StructType):
        return False
    fields = found.elementType.fields
    return [field.name for field in fields] == ["key", "value"] and (
        isinstance(fields[0].dataType, StringType) and isinstance(fields[1].dataType, BinaryType)
    )
