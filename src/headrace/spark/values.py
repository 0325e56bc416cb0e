"""Formats of values: bytes, text, or the fields of a JSON object by a schema."""

from dataclasses import dataclass
from typing import Literal, cast

from headrace.spark.option_names import OptionError
from headrace.spark.option_values import OptionReader

ERROR_TYPE = "STRUCT<message: STRING, value: BINARY>"
"""Type of the column `_error`: why a value could not be decoded, and its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFormat:
    kind: Literal["binary", "string", "json"] = "binary"
    schema: str | None = None
    """For JSON: the columns, as in CREATE TABLE."""

    @property
    def can_fail(self) -> bool:
        """Return whether some bytes are not valid in this format."""
        return self.kind != "binary"

    @property
    def spark_type(self) -> str:
        return {"binary": "BINARY", "string": "STRING", "json": f"STRUCT<{self.schema}>"}[self.kind]


def value_format(reader: OptionReader) -> ValueFormat:
    kind = reader.choice("valueFormat", ("binary", "string", "json"), default="binary")
    schema = reader.text("schema")
    if kind == "json" and schema is None:
        raise OptionError(
            'option "valueFormat" is json, so option "schema" is needed, such as "id BIGINT, name STRING"'
        )
    if schema is not None and kind == "json":
        _check_schema(schema)
    if kind != "json" and schema is not None:
        raise OptionError(f'options "schema" and "valueFormat" ({kind}) contradict each other: only json has a schema')
    if kind == "binary" and reader.has("onBadRecord"):
        raise OptionError('option "onBadRecord" needs option "valueFormat": plain bytes are always valid')
    return ValueFormat(kind=cast(Literal["binary", "string", "json"], kind), schema=schema)


def _check_schema(text: str) -> None:
    """Check the schema here: Spark's own message would name neither the option nor the field."""
    from headrace.spark.schema_text import parse_schema

    try:
        parse_schema(f"value STRUCT<{text}>")
    except ValueError as error:
        raise OptionError(f'option "schema" ({text}) is not valid: {error}') from None
