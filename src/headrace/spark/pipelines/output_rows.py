"""Route each output row: its records for topics, and the row itself for tables.

Good rows, rows rejected by an expectation and dead letters leave the query together, so that one write and one batch
commit contains all or none of them.
"""

from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import (
    CheckedRows,
    Pipeline,
    TopicSink,
)
from headrace.spark.pipelines.source_rows import ERROR, FAILED, QUARANTINE, RECORD, failure_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORDS, ROW = "records", "row"
RECORD_TYPE = (
    "struct<topic: string, key: binary, value: binary, "
    "headers: array<struct<key: string, value: binary>>, partition: int>"
)
DEAD_PREFIX = "hr-dead-"
QUARANTINE_PREFIX = "hr-quarantine-"


def has_tables(pipeline: Pipeline) -> bool:
    """Return whether a sink takes rows as they are."""
    return any(not isinstance(sink, TopicSink) for sink in pipeline.sinks)


def judged_rows(transformed: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """Return the rows of the transform with the results of their expectations."""
    from pyspark.sql import functions as sql

    return transformed.select("*", *failure_columns(pipeline, CheckedRows.OUTPUT, sql.lit(True)))


def output_rows(judged: "DataFrame", columns: list[str], pipeline: Pipeline) -> "DataFrame":
    """Return `records` for topics and `row` for tables."""
    from pyspark.sql import functions as sql

    whole = sql.struct(*(sql.col(quoted(name)) for name in columns))
    sinks = [sink for sink in pipeline.sinks if isinstance(sink, TopicSink)]
    good = sql.array(*(_record(judged, columns, sink) for sink in sinks)) if sinks else _no_records()
    kept_back = sql.struct(
        sql.col(QUARANTINE).alias("topic"),
        sql.lit(None).cast("binary").alias("key"),
        sql.to_json(whole).cast("binary").alias("value"),
        _headers(QUARANTINE_PREFIX, {"pipeline": sql.lit(pipeline.name), "expectation": sql.col(FAILED)}).alias(
            "headers"
        ),
        sql.lit(None).cast("int").alias("partition"),
    ).cast(RECORD_TYPE)
    quarantined = sql.when(sql.col(QUARANTINE).isNotNull(), sql.array(kept_back)).otherwise(_no_records())
    records = sql.when(sql.col(FAILED).isNull(), good).otherwise(quarantined).alias(RECORDS)
    row = sql.when(sql.col(FAILED).isNull(), whole).alias(ROW)
    return judged.select(records, row) if has_tables(pipeline) else judged.select(records)


def rejected_rows(rejected: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """Return records that never reached the transform, unchanged, with their origin and the reason of the rejection."""
    from pyspark.sql import functions as sql

    record = sql.col(RECORD)
    reasons = {
        "pipeline": sql.lit(pipeline.name),
        "reason": sql.coalesce(
            sql.col(ERROR), sql.concat(sql.lit("it does not meet the expectation "), sql.col(FAILED))
        ),
        "topic": record.getField("topic"),
        "partition": record.getField("partition").cast("string"),
        "offset": record.getField("offset").cast("string"),
        "timestamp": sql.unix_millis(record.getField("timestamp")).cast("string"),
    }
    came_with = sql.coalesce(record.getField("headers"), sql.array().cast("array<struct<key: string, value: binary>>"))
    letter = sql.struct(
        sql.coalesce(sql.col(QUARANTINE), sql.lit(pipeline.bad_records.topic)).alias("topic"),
        record.getField("key").alias("key"),
        record.getField("value").alias("value"),
        sql.concat(came_with, _headers(DEAD_PREFIX, reasons)).alias("headers"),
        sql.lit(None).cast("int").alias("partition"),
    ).cast(RECORD_TYPE)
    return rejected.select(sql.array(letter).alias(RECORDS))


def _record(judged: "DataFrame", columns: list[str], sink: TopicSink) -> "Column":
    """Return the record of a good row for the topic of one sink."""
    from pyspark.sql import functions as sql

    whole = sql.struct(*(sql.col(quoted(name)) for name in columns))
    # As in Spark's Kafka connector, the columns value, key and headers become the record.
    is_record = sink.value is None and "value" in columns
    value = sql.to_json(whole) if sink.value is None else sql.expr(sink.value)
    value = sql.col("value") if is_record else value
    key = sql.expr(sink.key) if sink.key is not None else sql.lit(None)
    if is_record and sink.key is None and "key" in columns:
        key = sql.col("key")
    headers = sql.expr(sink.headers) if sink.headers is not None else sql.lit(None)
    if is_record and sink.headers is None and "headers" in columns:
        headers = sql.col("headers")
    topic = sql.expr(sink.topic_from) if sink.topic_from is not None else sql.lit(sink.topic)
    partition = sql.expr(sink.partition) if sink.partition is not None else sql.lit(None)
    return sql.struct(
        topic.cast("string").alias("topic"),
        _bytes(judged, key).alias("key"),
        _bytes(judged, value).alias("value"),
        headers.cast("array<struct<key: string, value: binary>>").alias("headers"),
        partition.cast("int").alias("partition"),
    ).cast(RECORD_TYPE)


def _bytes(rows: "DataFrame", column: "Column") -> "Column":
    """Return binary unchanged, anything else as text."""
    kind = rows.select(column).schema[0].dataType.typeName()
    return column if kind == "binary" else column.cast("string").cast("binary")


def _headers(prefix: str, values: dict[str, "Column"]) -> "Column":
    from pyspark.sql import functions as sql

    return sql.array(
        *(
            sql.struct(sql.lit(prefix + name).alias("key"), value.cast("binary").alias("value"))
            for name, value in values.items()
        )
    )


def _no_records() -> "Column":
    from pyspark.sql import functions as sql

    return sql.array().cast(f"array<{RECORD_TYPE}>")


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
