"""The rows of a source: records fetched, values parsed, and what is wrong with a record said in a column of its own."""

from secrets import token_hex
from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import (
    RECORD_COLUMNS,
    Action,
    BadRecordAction,
    Expectation,
    Format,
    Pipeline,
    ReadAs,
    Source,
    Stage,
    UnknownFields,
)
from headrace.spark.pipelines.misfits import misfits
from headrace.spark.schema_text import ddl_of
from headrace.spark.source_options import WATERMARK_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD, PARSED, ERROR, FAILED, QUARANTINE = "__record", "__parsed", "__error", "__failed", "__quarantine"
"""Columns of ours beside those of the user."""
DRIFT = "__drift"
MARK = "__watermark"
"""The watermark that the batch drops rows by, where the source was asked for it."""
PARTS, END, CORRUPT = f"parts-{token_hex(4)}", f"end-{token_hex(4)}", "__corrupt"
"""Of what is parsed: the value and the mark behind it, which no record can have; and the text if it is not right."""
UNPARSABLE = "the value is not JSON that fits the schema"
NOT_TEXT = "the value is not UTF-8"


def routes_rejected(pipeline: Pipeline, source: Source) -> bool:
    """Whether records of this source may have to go elsewhere: then the query has a second branch for them."""
    is_checked = source.format is not Format.BINARY and source.read_as is ReadAs.STREAM
    writes_letters = pipeline.bad_records.action is BadRecordAction.DEAD_LETTER and is_checked
    return writes_letters or any(
        each.stage is Stage.INPUT and each.quarantine is not None for each in pipeline.expectations
    )


def checked_rows(records: "DataFrame", source: Source, pipeline: Pipeline) -> "DataFrame":
    """The columns of the source with those that tell what is wrong with a row."""
    from pyspark.sql import functions as sql

    own = sql.struct(*(sql.col(name) for name in RECORD_COLUMNS if name in records.columns)).alias(RECORD)
    mark = [sql.col(WATERMARK_COLUMN).alias(MARK)] if WATERMARK_COLUMN in records.columns else []
    parsed = records.select(own, *mark)
    if source.format is Format.JSON:
        text = sql.col(f"{RECORD}.value").cast("string")
        parsed = parsed.withColumn(PARSED, _parsed(text, source))
        if source.unknown_fields is not UnknownFields.ALLOW:
            known = sql.array(*(sql.lit(field.name) for field in source.fields))
            parsed = parsed.withColumn(DRIFT, sql.array_except(sql.json_object_keys(text), known))
    kept = [MARK] if mark else []
    rows = parsed.select(RECORD, *kept, *_drift(source), *_columns(source), _error(source).alias(ERROR))
    return _with_expectations(rows, pipeline)


def _parsed(text: "Column", source: Source) -> "Column":
    """Spark reads JSON up to the end of its object and no further, and passes over fields that it does not know.

    What stands behind the value would be lost. Hence it is read as the first part of an array of ours, whose second and
    last is a mark: with anything else in the text the array has other parts, lacks the mark, or is no JSON.
    """
    from pyspark.sql import functions as sql

    wrapped = sql.concat(sql.lit(f'{{"{PARTS}":['), text, sql.lit(f',{{"{END}":true}}]}}'))
    schema = f"`{PARTS}` ARRAY<STRUCT<{ddl_of(source.fields)}, `{END}` BOOLEAN>>, `{CORRUPT}` STRING"
    return sql.from_json(wrapped, schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})


def _value() -> "Column":
    from pyspark.sql import functions as sql

    return sql.get(sql.col(PARSED).getField(PARTS), sql.lit(0))


def _is_whole() -> "Column":
    """Whether nothing stands behind the value."""
    from pyspark.sql import functions as sql

    parts = sql.col(PARSED).getField(PARTS)
    return sql.coalesce((sql.size(parts) == 2) & sql.get(parts, sql.lit(1)).getField(END), sql.lit(False))


def _drift(source: Source) -> list["Column"]:
    from pyspark.sql import functions as sql

    return [] if source.unknown_fields is UnknownFields.ALLOW else [sql.col(DRIFT)]


def _columns(source: Source) -> list["Column"]:
    """What the transform sees."""
    from pyspark.sql import functions as sql

    if source.format is Format.JSON:
        fields = [_value().getField(field.name).alias(field.name) for field in source.fields]
        return [*fields, *(sql.col(f"{RECORD}.{name}").alias(name) for name in source.columns)]
    value = sql.col(f"{RECORD}.value")
    shown = {"value": value.cast("string") if source.format is Format.STRING else value}
    return [shown.get(name, sql.col(f"{RECORD}.{name}")).alias(name) for name in RECORD_COLUMNS if name != "headers"]


def _error(source: Source) -> "Column":
    """Why a record is bad; null for a good one."""
    from pyspark.sql import functions as sql

    value = sql.col(f"{RECORD}.value")
    nothing = sql.lit(None).cast("string")
    if source.format is Format.BINARY:
        return nothing
    if source.format is Format.STRING:
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
    """Which fields are in an object and could not be read, unless one that is there twice was read once."""
    from pyspark.sql import functions as sql

    wrong = sql.array_join(misfits(text, _value(), ddl_of(source.fields)), ", ")
    named = sql.concat(sql.lit("fields that do not fit the schema: "), sql.nullif(wrong, sql.lit("")))
    return sql.coalesce(named, sql.lit(UNPARSABLE))


def _with_expectations(rows: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """The first expectation of the input that a good row does not meet, and where such a row is to go."""
    from pyspark.sql import functions as sql

    return rows.select("*", *failure_columns(pipeline, Stage.INPUT, sql.col(ERROR).isNull()))


def failure_columns(pipeline: Pipeline, stage: Stage, is_good: "Column") -> list["Column"]:
    """Which expectation drops a row, and the topic it is kept in; an expectation that must hold raises."""
    from pyspark.sql import functions as sql

    failed = topic = sql.lit(None).cast("string")
    for expectation in reversed(pipeline.expectations):
        if expectation.stage is not stage or expectation.action is Action.WARN:
            continue
        broken = is_good & ~holds(expectation)
        if expectation.action is Action.FAIL:
            error = sql.raise_error(sql.lit(failure_text(expectation)))
            failed = sql.when(broken, error.cast("string")).otherwise(failed)
        else:
            failed = sql.when(broken, sql.lit(expectation.name)).otherwise(failed)
            topic = sql.when(broken, sql.lit(expectation.quarantine).cast("string")).otherwise(topic)
    return [failed.alias(FAILED), topic.alias(QUARANTINE)]


def holds(expectation: Expectation) -> "Column":
    """True or false: what is unknown does not hold."""
    from pyspark.sql import functions as sql

    return sql.coalesce(sql.expr(expectation.check).cast("boolean"), sql.lit(False))


def failure_text(expectation: Expectation) -> str:
    return f'expectation "{expectation.name}" does not hold for a row: {expectation.check}'
