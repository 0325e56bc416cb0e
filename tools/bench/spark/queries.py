"""Measured Spark queries: generate, read, write and stream rows, and compute totals for checks."""

import os
import time
from collections.abc import Mapping
from functools import reduce
from operator import xor
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headrace.bench import processes

KEY_CHARACTERS = 8
TASKS_AT_ONCE = 4
"""Partitions of generated rows: as many as the topics have."""

LOOK_AGAIN_SECONDS = 0.25
PYTHON = "python"
SEEN = "seen"


def generated(spark: SparkSession, *, rows: int, value_bytes: int) -> DataFrame:
    """Generate distinct rows with keys of 8 bytes; cheap, because generating is part of every write."""
    number = F.col("id").cast("string")
    key, value = F.lpad(number, KEY_CHARACTERS, "0"), F.lpad(number, value_bytes, "v")
    return spark.range(0, rows, 1, TASKS_AT_ONCE).select(
        key.cast("binary").alias("key"), value.cast("binary").alias("value")
    )


def _count() -> Column:
    return F.count(F.lit(1)).alias("rows")


def _checksum() -> Column:
    """Return the checksum of keys and values, independent of their order."""
    return F.bit_xor(F.xxhash64("key", "value")).alias("checksum")


def _totals(frame: DataFrame) -> dict[str, Any]:
    found = frame.agg(_count(), F.sum(F.length("value")).alias("bytes"), _checksum()).first()
    assert found is not None
    return {**found.asDict()}


def generated_totals(spark: SparkSession, *, rows: int, value_bytes: int) -> dict[str, Any]:
    return _totals(generated(spark, rows=rows, value_bytes=value_bytes))


def totals(spark: SparkSession, *, source: str, options: Mapping[str, str]) -> dict[str, Any]:
    return _totals(spark.read.format(source).options(**options).load())


def read(spark: SparkSession, *, source: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Read all rows once, from `load()` to the result; only the lengths of values are used."""
    began = time.perf_counter()
    frame = spark.read.format(source).options(**options).load()
    found = frame.agg(_count(), F.sum(F.length("value")).alias("bytes")).first()
    assert found is not None
    return {"seconds": time.perf_counter() - began, **found.asDict()}


def write(spark: SparkSession, *, sink: str, options: Mapping[str, str], rows: int, value_bytes: int) -> dict[str, Any]:
    frame = generated(spark, rows=rows, value_bytes=value_bytes)
    began = time.perf_counter()
    frame.write.format(sink).options(**options).mode("append").save()
    return {"seconds": time.perf_counter() - began}


def stream(
    spark: SparkSession,
    *,
    source: str,
    source_options: Mapping[str, str],
    sink: str,
    sink_options: Mapping[str, str],
    checkpoint: str,
    broker_process_id: int | None,
) -> dict[str, Any]:
    """Stream all existing rows in micro-batches limited by the source's options; return the duration of each.

    With the process id of the broker, also sample its memory and that of the Python workers.
    """
    frame = spark.readStream.format(source).options(**source_options).load()
    query = (
        frame.observe(SEEN, _count(), _checksum())
        .select("key", "value")
        .writeStream.format(sink)
        .options(**sink_options)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    samples: list[tuple[int, int, int]] = []
    while query.isActive:
        time.sleep(LOOK_AGAIN_SECONDS)
        if broker_process_id is not None:
            samples.append(_memory(query, broker_process_id))
    query.awaitTermination()  # raises the error of the query
    done = [batch for batch in query.recentProgress if SEEN in batch.observedMetrics and batch.numInputRows]
    seen = [batch.observedMetrics[SEEN] for batch in done]
    return {
        "rows": sum(each["rows"] for each in seen),
        "checksum": reduce(xor, (each["checksum"] for each in seen), 0),
        "steps_ms": [batch.durationMs for batch in done],
        "memory": samples,
    }


def _memory(query: StreamingQuery, broker_process_id: int) -> tuple[int, int, int]:
    """Return the number of the last micro-batch, and the memory of the broker and of all Python workers."""
    last = query.lastProgress
    workers = processes.children(os.getpid(), PYTHON)
    batch = -1 if last is None else int(last["batchId"])
    return batch, processes.own_bytes([broker_process_id]), processes.own_bytes(workers)
