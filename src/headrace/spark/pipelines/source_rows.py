"""The rows of a source: records fetched, values parsed, and what is wrong with a record said in a column of its own."""

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
from headrace.spark.schema_text import ddl_of
from headrace.spark.source_options import WATERMARK_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD, PARSED, ERROR, FAILED, QUARANTINE = "__record", "__parsed", "__error", "__failed", "__quarantine"
"""Columns of ours beside those of the user."""
DRIFT = "__drift"
MARK = "__watermark"
"""The watermark that the batch drops rows by, where the source was asked for it."""
VALUE, WHOLE, CORRUPT = "__value", "__whole", "__corrupt"
"""Of what is parsed: the value, whether nothing stands behind it, and the text if it is not right."""
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
    """Spark reads JSON up to the end of its object and no further, so a second object behind it would be lost.

    Hence the value is read as a field of an object of ours, whose last field is there only if the value is whole.
    """
    from pyspark.sql import functions as sql

    wrapped = sql.concat(sql.lit(f'{{"{VALUE}":'), text, sql.lit(f',"{WHOLE}":true}}'))
    schema = f"`{VALUE}` STRUCT<{ddl_of(source.fields)}>, `{WHOLE}` BOOLEAN, `{CORRUPT}` STRING"
    return sql.from_json(wrapped, schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})


def _drift(source: Source) -> list["Column"]:
    from pyspark.sql import functions as sql

    return [] if source.unknown_fields is UnknownFields.ALLOW else [sql.col(DRIFT)]


def _columns(source: Source) -> list["Column"]:
    """What the transform sees."""
    from pyspark.sql import functions as sql

    if source.format is Format.JSON:
        value = sql.col(PARSED).getField(VALUE)
        fields = [value.getField(field.name).alias(field.name) for field in source.fields]
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
    whole = sql.col(PARSED)
    parsed, is_corrupt = whole.getField(VALUE), whole.getField(CORRUPT).isNotNull()
    reasons = sql.when(value.isNull(), sql.lit("the value is null"))
    reasons = reasons.when(~sql.is_valid_utf8(value.cast("string")), sql.lit(NOT_TEXT))
    reasons = reasons.when(is_corrupt | parsed.isNull() | whole.getField(WHOLE).isNull(), sql.lit(UNPARSABLE))
    for field in source.fields:
        if field.is_required:
            missing = sql.lit(f'field "{field.name}" is missing or null')
            reasons = reasons.when(parsed.getField(field.name).isNull(), missing)
    if source.unknown_fields is UnknownFields.REJECT:
        names = sql.concat(sql.lit("fields that the schema does not have: "), sql.array_join(sql.col(DRIFT), ", "))
        reasons = reasons.when(sql.size(DRIFT) > 0, names)
    return reasons.otherwise(nothing)


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
