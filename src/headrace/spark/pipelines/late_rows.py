"""Which rows come too late: Spark drops them without a word, and counts only what is left of them after grouping.

In batch N Spark drops what the watermark of batch N-1 has passed: rows of windows that end at or before it, or the rows
themselves where there are no windows. That watermark stands in the checkpoint's log before the batch begins, so each
row can be told while it is worked on, and a replay of the batch tells the same.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column

    from headrace.spark.pipelines.definition import Watermark

BATCH_PROPERTY = "streaming.sql.batchId"
"""Spark tells a task its micro-batch under this name."""


def watermark_before(folder: str, batch: int) -> int:
    """Milliseconds; zero before the second batch."""
    try:
        metadata = (Path(folder) / "offsets" / str(batch - 1)).read_text(encoding="utf-8").splitlines()[1]
    except FileNotFoundError:
        return 0
    return int(json.loads(metadata)["batchWatermarkMs"])


def is_late(watermark: "Watermark", folder: str) -> "Column":
    """A column that is true for late rows; `folder` is Spark's checkpoint, which the executors must reach."""
    from pyspark.sql import functions as sql

    moment = sql.unix_millis(sql.col(watermark.column).cast("timestamp"))
    if watermark.window_ms is not None:
        length = sql.lit(watermark.window_ms)
        moment = (sql.floor(moment / length) + 1) * length
    elif watermark.session_ms is not None:
        moment = moment + sql.lit(watermark.session_ms)
    return sql.coalesce(_comparison(folder)(moment.cast("bigint")), sql.lit(False))


def _comparison(folder: str) -> "Callable[[Column], Column]":
    import pandas as pd
    from pyspark.sql.pandas.functions import pandas_udf

    def passed(moments: Any) -> Any:
        from pyspark import TaskContext

        task = TaskContext.get()
        batch = task.getLocalProperty(BATCH_PROPERTY) if task is not None else None
        return moments <= (watermark_before(folder, int(batch)) if batch is not None else 0)

    # Spark tells the kind of a function by its annotations, and needs the types themselves.
    passed.__annotations__ = {"moments": pd.Series, "return": pd.Series}
    compared: Callable[[Column], Column] = pandas_udf(passed, "boolean")  # type: ignore[call-overload]
    return compared
