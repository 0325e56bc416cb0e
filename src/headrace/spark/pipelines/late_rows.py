"""Identify late rows: Spark drops them silently and counts only the groups that remain.

Spark drops rows of windows that end at or before the watermark of the previous batch, or the rows themselves if there
are no windows. The source adds that watermark to each row (batch_watermarks.py), so each late row can be counted.
"""

from typing import TYPE_CHECKING

from headrace.spark.pipelines.source_rows import MARK

if TYPE_CHECKING:
    from pyspark.sql import Column

    from headrace.spark.pipelines.definition import Watermark


def is_late(watermark: "Watermark") -> "Column":
    """Return a column that is true for late rows."""
    from pyspark.sql import functions as sql

    moment = sql.unix_millis(sql.col(watermark.column).cast("timestamp"))
    if watermark.window_ms is not None:
        length = sql.lit(watermark.window_ms)
        moment = (sql.floor(moment / length) + 1) * length
    elif watermark.session_ms is not None:
        moment = moment + sql.lit(watermark.session_ms)
    return sql.coalesce(moment.cast("bigint") <= sql.col(MARK), sql.lit(False))
