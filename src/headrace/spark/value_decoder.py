"""Decode values on an executor: text is checked in bulk, JSON value by value against the types of its schema."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict

import msgspec
import pyarrow

from headrace.wire.columns.arrow import Column

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_arrow: Any = pyarrow
_INTEGER_BITS = {"ByteType": 8, "ShortType": 16, "IntegerType": 32, "LongType": 64}


class Values(NamedTuple):
    column: Column
    failures: Mapping[int, str]
    """Why the values of these rows could not be decoded; the column has nulls there."""


Decode = Callable[[Column], Values]


def value_decoder(kind: str, spark_type: "DataType", arrow_type: pyarrow.DataType) -> Decode:
    """Return a decoder for a column of bytes, of this format."""
    if kind == "binary":
        return lambda column: Values(column, {})
    if kind == "string":
        return _texts
    decode = msgspec.json.Decoder(_python_type(spark_type)).decode
    return lambda column: _objects(column, decode, arrow_type)


def _texts(column: Column) -> Values:
    try:
        return Values(column.cast(pyarrow.string()), {})
    except pyarrow.ArrowInvalid:
        return _each(column, lambda value: value.decode(), pyarrow.string())


def _objects(column: Column, decode: Callable[[bytes], Any], arrow_type: pyarrow.DataType) -> Values:
    return _each(column, decode, arrow_type)


def _each(column: Column, decode: Callable[[bytes], Any], arrow_type: pyarrow.DataType) -> Values:
    """Decode value by value; an invalid one is null, with the reason."""
    failures: dict[int, str] = {}
    found: list[Any] = []
    for row, value in enumerate(column.to_pylist()):
        try:
            found.append(None if value is None else decode(value))
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            failures[row] = str(error)
            found.append(None)
    return Values(_as_column(found, arrow_type, failures), failures)


def _as_column(found: list[Any], arrow_type: pyarrow.DataType, failures: dict[int, str]) -> Column:
    """Convert to a column; a value that does not fit its type, such as a decimal of too many digits, fails its row."""
    column: Column
    try:
        column = _arrow.array(found, arrow_type)
    except (pyarrow.ArrowException, OverflowError):
        for row, value in enumerate(found):
            try:
                _arrow.array([value], arrow_type)
            except (pyarrow.ArrowException, OverflowError) as error:
                failures[row] = str(error)
                found[row] = None
        column = _arrow.array(found, arrow_type)
    return column


def _python_type(kind: "DataType") -> Any:
    """Return the type that msgspec checks a JSON value against; every field may be null or missing."""
    import datetime
    import decimal

    from pyspark.sql import types

    name = type(kind).__name__
    if isinstance(kind, types.StructType):
        fields = {each.name: _python_type(each.dataType) for each in kind.fields}
        return TypedDict("JsonObject", fields, total=False) | None  # type: ignore[operator]
    if isinstance(kind, types.ArrayType):
        return list[_python_type(kind.elementType)] | None  # type: ignore[misc]
    if isinstance(kind, types.MapType):
        return dict[str, _python_type(kind.valueType)] | None  # type: ignore[misc]
    if name in _INTEGER_BITS:
        half = 1 << _INTEGER_BITS[name] - 1
        return Annotated[int, msgspec.Meta(ge=-half, le=half - 1)] | None
    simple: dict[str, Any] = {
        "StringType": str,
        "VarcharType": str,
        "BooleanType": bool,
        "FloatType": float,
        "DoubleType": float,
        "DecimalType": decimal.Decimal,
        "DateType": datetime.date,
        "TimestampType": datetime.datetime,
        "TimestampNTZType": datetime.datetime,
        "BinaryType": bytes,
    }
    if name not in simple:
        raise ValueError(f'option "schema" has the type {kind.simpleString()}, which is not supported for JSON values')
    return simple[name] | None
