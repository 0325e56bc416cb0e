"""The rows of a source: records fetched, values parsed, and the error of a record in a separate column."""

from secrets import token_hex
from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import (
    RECORD_COLUMNS,
    BadRecordAction,
    CheckedRows,
    Expectation,
    ExpectationAction,
    Pipeline,
    ReadAs,
    Source,
    SourceFormat,
    UnknownFields,
)
from headrace.spark.pipelines.misfits import misfits
from headrace.spark.schema_text import ddl_of
from headrace.spark.source_options import WATERMARK_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD, PARSED, ERROR, FAILED, QUARANTINE = "__record", "__parsed", "__error", "__failed", "__quarantine"
"""Internal columns beside those of the user."""
DRIFT = "__drift"
MARK = "__watermark"
"""The watermark by which the batch drops rows, if the source was asked to add it."""
PARTS, END, CORRUPT = f"parts-{token_hex(4)}", f"end-{token_hex(4)}", "__corrupt"
"""Columns of the parsed value: the value and an end mark, which no record can contain; and the text if it is
invalid.
"""
UNPARSABLE = "the value is not JSON that fits the schema"
NOT_TEXT = "the value is not UTF-8"


def routes_rejected(pipeline: Pipeline, source: Source) -> bool:
    """Return whether records of this source may be routed elsewhere: then the query has a second branch for them."""
    is_checked = source.format is not SourceFormat.BINARY and source.read_as is ReadAs.STREAM
    writes_letters = pipeline.bad_records.action is BadRecordAction.DEAD_LETTER and is_checked
    return writes_letters or any(
        each.checked_rows is CheckedRows.INPUT and each.quarantine is not None for each in pipeline.expectations
    )


def checked_rows(records: "DataFrame", source: Source, pipeline: Pipeline) -> "DataFrame":
    """Return the columns of the source with those that contain the errors of a row."""
    from pyspark.sql import functions as sql

    own = sql.struct(*(sql.col(name) for name in RECORD_COLUMNS if name in records.columns)).alias(RECORD)
    mark = [sql.col(WATERMARK_COLUMN).alias(MARK)] if WATERMARK_COLUMN in records.columns else []
    parsed = records.select(own, *mark)
    if source.format is SourceFormat.JSON:
        text = sql.col(f"{RECORD}.value").cast("string")
        parsed = parsed.withColumn(PARSED, _parsed(text, source))
        if source.unknown_fields is not UnknownFields.ALLOW:
            known = sql.array(*(sql.lit(field.name) for field in source.fields))
            parsed = parsed.withColumn(DRIFT, sql.array_except(sql.json_object_keys(text), known))
    kept = [MARK] if mark else []
    rows = parsed.select(RECORD, *kept, *_drift(source), *_columns(source), _error(source).alias(ERROR))
    return _with_expectations(rows, pipeline)


def _parsed(text: "Column", source: Source) -> "Column":
    """Parse the value. Spark stops reading JSON at the end of its object, and ignores fields that it does not know.

    Text after the value would be lost. So the value is read as the first element of an array, whose second and last
    element is a mark: any other text gives the array other elements, no mark, or invalid JSON.
    """
    from pyspark.sql import functions as sql

    wrapped = sql.concat(sql.lit(f'{{"{PARTS}":['), text, sql.lit(f',{{"{END}":true}}]}}'))
    schema = f"`{PARTS}` ARRAY<STRUCT<{ddl_of(source.fields)}, `{END}` BOOLEAN>>, `{CORRUPT}` STRING"
    return sql.from_json(wrapped, schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})


def _value() -> "Column":
    from pyspark.sql import functions as sql

    return sql.get(sql.col(PARSED).getField(PARTS), sql.lit(0))


def _is_whole() -> "Column":
    """Return whether nothing follows the value."""
    from pyspark.sql import functions as sql

    parts = sql.col(PARSED).getField(PARTS)
    return sql.coalesce((sql.size(parts) == 2) & sql.get(parts, sql.lit(1)).getField(END), sql.lit(False))


def _drift(source: Source) -> list["Column"]:
    from pyspark.sql import functions as sql

    return [] if source.unknown_fields is UnknownFields.ALLOW else [sql.col(DRIFT)]


def _columns(source: Source) -> list["Column"]:
    """Return the columns that the transform sees."""
    from pyspark.sql import functions as sql

    if source.format is SourceFormat.JSON:
        fields = [_value().getField(field.name).alias(field.name) for field in source.fields]
        return [*fields, *(sql.col(f"{RECORD}.{name}").alias(name) for name in source.columns)]
    value = sql.col(f"{RECORD}.value")
    shown = {"value": value.cast("string") if source.format is SourceFormat.STRING else value}
    return [shown.get(name, sql.col(f"{RECORD}.{name}")).alias(name) for name in RECORD_COLUMNS if name != "headers"]


def _error(source: Source) -> "Column":
    """Return why a record is bad; null for a good one."""
    from pyspark.sql import functions as sql

    value = sql.col(f"{RECORD}.value")
    nothing = sql.lit(None).cast("string")
    if source.format is SourceFormat.BINARY:
        return nothing
    if source.format is SourceFormat.STRING:
        return sql.when(~sql.is_valid_utf8(value.cast("string")), sql.lit(NOT_TEXT)).otherwise(nothing)
    parsed, text = _value(), value.cast("string")
    reasons = sql.when(value.isNull(), sql.lit("the value is null"))
    reasons = reasons.when(~sql.is_valid_utf8(text), sql.lit(NOT_TEXT))
    reasons = reasons.when(parsed.isNull() | ~_is_whole(), sql.lit(UNPARSABLE))
    reasons = reasons.when(sql.col(PARSED).getField(CORRUPT).isNotNull(), _misfit(text, source))
    for field in source.fields:
        if field.is_required:
            missing = sql.lit(f'field "{field.name}" is missing or null')
            reasons = reasons.when(parsed.getField(field.name).isNull(), missing)
    if source.unknown_fields is UnknownFields.REJECT:
        names = sql.concat(sql.lit("fields that the schema does not have: "), sql.array_join(sql.col(DRIFT), ", "))
        reasons = reasons.when(sql.size(DRIFT) > 0, names)
    return reasons.otherwise(nothing)


def _misfit(text: "Column", source: Source) -> "Column":
    """Return the fields of an object that could not be read, except duplicates of a field that was read once."""
    from pyspark.sql import functions as sql

    wrong = sql.array_join(misfits(text, _value(), ddl_of(source.fields)), ", ")
    named = sql.concat(sql.lit("fields that do not fit the schema: "), sql.nullif(wrong, sql.lit("")))
    return sql.coalesce(named, sql.lit(UNPARSABLE))


def _with_expectations(rows: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """Return the first input expectation that a good row violates, and where such a row is routed."""
    from pyspark.sql import functions as sql

    return rows.select("*", *failure_columns(pipeline, CheckedRows.INPUT, sql.col(ERROR).isNull()))


def failure_columns(pipeline: Pipeline, checked: CheckedRows, is_good: "Column") -> list["Column"]:
    """Return the expectation that drops a row and its quarantine topic; an expectation with action fail raises."""
    from pyspark.sql import functions as sql

    failed = topic = sql.lit(None).cast("string")
    for expectation in reversed(pipeline.expectations):
        if expectation.checked_rows is not checked or expectation.action is ExpectationAction.WARN:
            continue
        broken = is_good & ~holds(expectation)
        if expectation.action is ExpectationAction.FAIL:
            error = sql.raise_error(sql.lit(failure_text(expectation)))
            failed = sql.when(broken, error.cast("string")).otherwise(failed)
        else:
            failed = sql.when(broken, sql.lit(expectation.name)).otherwise(failed)
            topic = sql.when(broken, sql.lit(expectation.quarantine).cast("string")).otherwise(topic)
    return [failed.alias(FAILED), topic.alias(QUARANTINE)]


def holds(expectation: Expectation) -> "Column":
    """Return true or false: null counts as false."""
    from pyspark.sql import functions as sql

    return sql.coalesce(sql.expr(expectation.check).cast("boolean"), sql.lit(False))


def failure_text(expectation: Expectation) -> str:
    return f'expectation "{expectation.name}" does not hold for a row: {expectation.check}'
