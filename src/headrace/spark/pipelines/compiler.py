"""Compile a definition to one DataFrame for Spark: sources, transform, expectations and routing to the sinks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.spark.pipelines import progress
from headrace.spark.pipelines.definition import (
    INPUT_VIEW,
    BadRecordAction,
    CheckedRows,
    ExpectationAction,
    Pipeline,
    ReadAs,
    Source,
    SourceFormat,
    UnknownFields,
)
from headrace.spark.pipelines.durations import spark_interval
from headrace.spark.pipelines.late_rows import is_late
from headrace.spark.pipelines.output_rows import ROW, has_tables, judged_rows, output_rows, rejected_rows
from headrace.spark.pipelines.plans import stateful_operators
from headrace.spark.pipelines.problems import DefinitionError
from headrace.spark.pipelines.shared_rows import shared_rows, unpacked
from headrace.spark.pipelines.source_rows import (
    DRIFT,
    ERROR,
    FAILED,
    MARK,
    QUARANTINE,
    RECORD,
    checked_rows,
    holds,
    routes_rejected,
)
from headrace.spark.pipelines.user_code import call, expression_problem, expression_texts, query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LATE = "__late"
DRIFTED_FIELDS_MAX = 20
"""Unknown fields of one record, and sets of such fields of one batch, that are reported by name."""
FIELD_NAME_LENGTH_MAX = 100

Reader = Callable[[Source], "DataFrame"]
"""Returns the records of a source: a stream, or for a table and a backfill the existing records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    output: "DataFrame"
    """Records for topics and rows for tables."""
    operators: tuple[str, ...]
    """The stateful operators."""
    counted: Mapping[str, str]
    """The names of expectations, by the columns that count the rows violating them."""
    shared: tuple["DataFrame", ...]
    """Rows that are used twice; the writer of a batch job's output unpersists them."""


def compile_pipeline(spark: "SparkSession", pipeline: Pipeline, read: Reader) -> Compiled:
    views, rejected, shared = [], [], []
    for source in pipeline.sources:
        records = read(source)
        if source.read_as is ReadAs.TABLE:
            views.append(_table(records, source, pipeline))
            continue
        checked = checked_rows(records, source, pipeline)
        if routes_rejected(pipeline, source):
            both = shared_rows(checked)
            shared.append(both)
            rejected.append(unpacked(both, f"{progress.SHARED_METRICS}_letters_{source.name}"))
            checked = unpacked(both, f"{progress.SHARED_METRICS}_{source.name}")
        views.append(_good_rows(checked, source, pipeline))
    transformed = _transformed(spark, pipeline, views)
    columns = transformed.columns
    judged = _guarded(pipeline, lambda: judged_rows(transformed, pipeline))
    judged = judged.observe(progress.OUTPUT_METRICS, *_output_counts(pipeline))
    output = _guarded(pipeline, lambda: output_rows(judged, columns, pipeline))
    for number, rows in enumerate(rejected):
        output = output.unionByName(_dead_letters(rows, number, output, pipeline))
    plan: str = output._jdf.queryExecution().analyzed().toString()
    return Compiled(output=output, operators=stateful_operators(plan), counted=_counted(pipeline), shared=tuple(shared))


def _good_rows(checked: "DataFrame", source: Source, pipeline: Pipeline) -> "DataFrame":
    """Return the rows that the transform reads, counted on the way."""
    from pyspark.sql import functions as sql

    rows = checked.observe(f"{progress.INPUT_METRICS}_{source.name}", *_input_counts(pipeline, source))
    rows = rows.where(_refusal(pipeline) & sql.col(ERROR).isNull() & sql.col(FAILED).isNull())
    rows = rows.drop(RECORD, DRIFT, ERROR, FAILED, QUARANTINE)
    mark = source.watermark
    if mark is None:
        return rows
    late = is_late(mark) if MARK in rows.columns else sql.lit(False)
    rows = rows.withWatermark(mark.column, spark_interval(mark.delay_ms))
    # Counting here also keeps Spark from moving filters of the transform below the watermark, which belongs to the
    # source.
    counted = rows.withColumn(LATE, late).observe(
        f"{progress.LATE_METRICS}_{source.name}", sql.count_if(LATE).alias(progress.LATE_COLUMN)
    )
    return counted.drop(LATE, MARK)


def _refusal(pipeline: Pipeline) -> "Column":
    """Return true, or end the query where bad records must not be skipped."""
    from pyspark.sql import functions as sql

    if pipeline.bad_records.action is not BadRecordAction.FAIL:
        return sql.lit(True)
    record = sql.col(RECORD)
    place = [record.getField(name).cast("string") for name in ("topic", "partition", "offset")]
    text = sql.concat(
        sql.lit('bad record in topic "'), place[0], sql.lit('" partition '), place[1], sql.lit(" offset "), place[2],
        sql.lit(": "), sql.col(ERROR),
    )  # fmt: skip
    return sql.when(sql.col(ERROR).isNotNull(), sql.raise_error(text).cast("boolean")).otherwise(sql.lit(True))


def _is_routed(pipeline: Pipeline) -> "Column":
    from pyspark.sql import functions as sql

    is_kept_back = sql.col(QUARANTINE).isNotNull()
    if pipeline.bad_records.action is BadRecordAction.DEAD_LETTER:
        return sql.col(ERROR).isNotNull() | is_kept_back
    return is_kept_back


def _dead_letters(checked: "DataFrame", number: int, output: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """Return the dead letters among all rows.

    They are counted before the others are filtered out: otherwise Spark would move the filter below the parsing and
    parse each value again for every condition of the filter.
    """
    from pyspark.sql import functions as sql

    is_routed, is_kept_back = _is_routed(pipeline), sql.col(QUARANTINE).isNotNull()
    counted = checked.observe(
        f"{progress.REJECTED_METRICS}_{number}",
        sql.count_if(is_routed & ~is_kept_back).alias(progress.DEAD_COLUMN),
        sql.count_if(is_routed & is_kept_back).alias(progress.QUARANTINED_COLUMN),
    )
    letters = rejected_rows(counted.where(is_routed), pipeline)
    if has_tables(pipeline):
        letters = letters.withColumn(ROW, sql.lit(None).cast(output.schema[ROW].dataType))
    return letters


def _table(records: "DataFrame", source: Source, pipeline: Pipeline) -> "DataFrame":
    """Return the newest row of every key; keys whose newest record is a tombstone are left out."""
    from pyspark.sql import functions as sql

    newest = records.groupBy("key").agg(
        sql.max_by(sql.struct(*map(sql.col, records.columns)), sql.struct("offset")).alias("newest")
    )
    living = newest.select("newest.*").where(sql.col("value").isNotNull())
    checked = checked_rows(living, source, pipeline)
    rows = checked.where(_refusal(pipeline) & sql.col(ERROR).isNull())
    return rows.drop(RECORD, DRIFT, ERROR, FAILED, QUARANTINE)


def _transformed(spark: "SparkSession", pipeline: Pipeline, views: list["DataFrame"]) -> "DataFrame":
    transform = pipeline.transform
    for source, view in zip(pipeline.sources, views, strict=True):
        view.createOrReplaceTempView(source.name)
    result = views[0]
    if transform.python is not None:
        result = call(transform.python, views)
        result.createOrReplaceTempView(INPUT_VIEW)
    if transform.sql is not None:
        result = query(spark, pipeline)
    return result


def _input_counts(pipeline: Pipeline, source: Source) -> list["Column"]:
    from pyspark.sql import functions as sql

    counts = [sql.count(sql.lit(1)).alias(progress.READ_COLUMN)]
    if source.format is not SourceFormat.BINARY:
        counts.append(sql.count_if(sql.col(ERROR).isNotNull()).alias(progress.BAD_COLUMN))
    if source.unknown_fields is not UnknownFields.ALLOW:
        counts.append(sql.count_if(sql.size(DRIFT) > 0).alias(progress.DRIFTED_COLUMN))
        counts.append(_drifted_fields().alias(progress.DRIFTED_FIELDS_COLUMN))
    return counts + _broken_counts(pipeline, CheckedRows.INPUT)


def _drifted_fields() -> "Column":
    """Return the most frequent unknown fields: Spark keeps a bounded table, whatever names the records have."""
    from pyspark.sql import functions as sql

    length = sql.lit(FIELD_NAME_LENGTH_MAX)
    names = sql.transform(sql.slice(DRIFT, 1, DRIFTED_FIELDS_MAX), lambda name: sql.left(name, length))
    together = sql.coalesce(sql.array_join(names, progress.FIELD_SEPARATOR), sql.lit(""))
    return sql.call_function("approx_top_k", together, sql.lit(DRIFTED_FIELDS_MAX))


def _output_counts(pipeline: Pipeline) -> list["Column"]:
    from pyspark.sql import functions as sql

    written = sql.count_if(sql.col(FAILED).isNull()).alias(progress.WRITTEN_COLUMN)
    kept_back = sql.count_if(sql.col(QUARANTINE).isNotNull()).alias(progress.QUARANTINED_COLUMN)
    return [written, kept_back, *_broken_counts(pipeline, CheckedRows.OUTPUT)]


def _broken_counts(pipeline: Pipeline, checked: CheckedRows) -> list["Column"]:
    from pyspark.sql import functions as sql

    is_good = sql.col(ERROR).isNull() if checked is CheckedRows.INPUT else sql.lit(True)
    return [
        sql.count_if(is_good & ~holds(expectation)).alias(f"{progress.EXPECTATION_PREFIX}{number}")
        for number, expectation in enumerate(pipeline.expectations)
        if expectation.checked_rows is checked and expectation.action is not ExpectationAction.FAIL
    ]


def _counted(pipeline: Pipeline) -> dict[str, str]:
    return {
        f"{progress.EXPECTATION_PREFIX}{number}": expectation.name
        for number, expectation in enumerate(pipeline.expectations)
    }


def _guarded(pipeline: Pipeline, build: Callable[[], "DataFrame"]) -> "DataFrame":
    """Report expressions of the file that Spark refuses by the key that contains them."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        return build()
    except (ParseException, AnalysisException) as error:
        raise DefinitionError([expression_problem(pipeline, _path_of_error(pipeline, str(error)), error)]) from None


def _path_of_error(pipeline: Pipeline, message: str) -> str:
    """Return the key whose text the message is about, as far as the message shows it."""
    named = message.partition("`")[2].partition("`")[0]
    return next((path for path, text in expression_texts(pipeline).items() if named and named in text), "expectations")
