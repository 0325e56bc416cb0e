"""Find the fields of a JSON object that do not match its schema, by their paths: `order.items[].price`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

ELEMENTS = "[]"
"""In a path: the elements of an array, or the values of a map. An element that is not an object counts as a whole."""


def misfits(text: "Column", value: "Column", ddl: str) -> "Column":
    """Return an array of distinct paths: fields that are in the text of the object and could not be read into its
    value.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType), "a schema has fields"
    return sql.array_distinct(_of_fields(text, value, schema, ""))


def _of_fields(text: "Column", value: "Column", kind: "StructType", prefix: str) -> "Column":
    """Find misfits of the fields; Spark leaves null fields out of its JSON."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import ArrayType, MapType, StructType

    names = sql.array(*(sql.lit(field.name) for field in kind.fields))
    nested = [field for field in kind.fields if isinstance(field.dataType, (ArrayType, MapType, StructType))]

    def paths(parts: "Column") -> "Column":
        unread = sql.array_except(sql.map_keys(parts), sql.json_object_keys(sql.to_json(value)))
        wrong = sql.transform(sql.array_intersect(names, unread), lambda name: sql.concat(sql.lit(prefix), name))
        within = (
            _within(parts[field.name], value.getField(field.name), field.dataType, prefix + field.name)
            for field in nested
        )
        return sql.concat(*(sql.coalesce(found, _none()) for found in (wrong, *within)))

    parts = sql.map_filter(sql.from_json(text, "MAP<STRING, STRING>"), lambda _name, part: part.isNotNull())
    return _once(parts, paths)


def _within(text: "Column", value: "Column", kind: "DataType", path: str) -> "Column":
    from pyspark.sql import functions as sql
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return _of_fields(text, value, kind, f"{path}.")
    if isinstance(kind, ArrayType):
        return _of_elements(sql.from_json(text, "ARRAY<STRING>"), value, kind.elementType, path + ELEMENTS)
    if isinstance(kind, MapType):
        parts = sql.map_values(sql.from_json(text, "MAP<STRING, STRING>"))
        return _of_elements(parts, sql.map_values(value), kind.valueType, path + ELEMENTS)
    return _none()


def _of_elements(parts: "Column", values: "Column", kind: "DataType", path: str) -> "Column":
    from pyspark.sql import functions as sql

    def paths(part: "Column", value: "Column") -> "Column":
        return sql.coalesce(_within(part, value, kind, path), _none())

    return sql.flatten(sql.zip_with(parts, values, paths))


def _none() -> "Column":
    from pyspark.sql import functions as sql

    return sql.array().cast("ARRAY<STRING>")


def _once(column: "Column", use: "Callable[[Column], Column]") -> "Column":
    """Return the paths found with a column that is evaluated once, however often it is used."""
    from pyspark.sql import functions as sql

    return sql.flatten(sql.transform(sql.array(column), use))
