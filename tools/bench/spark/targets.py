"""Targets of the Spark loads."""

from headrace.bench.brokers import HEADRACE
from tools.bench.spark.subjects import CONNECTOR, EXACTLY_ONCE, FILES, FILES_NUMPY
from tools.bench.targets import Target

READ_LARGE = "batch read, 1 KB"
READ_SMALL = "batch read, 100 B"
SCAN_LARGE = "batch scan, 1 KB"
SCAN_SMALL = "batch scan, 100 B"
WRITE = "batch write, 100 B"
STREAM = "micro-batches into nothing"
STREAM_WRITE = "micro-batches from topic to topic"
STREAM_ADDED = "exactly once above at least once"
MEMORY = "memory over micro-batches"

SPARK_TARGETS = (
    Target(READ_LARGE, "rows_per_second", False, 2.0, CONNECTOR),
    Target(READ_SMALL, "rows_per_second", False, 1.5, CONNECTOR),
    Target(SCAN_LARGE, "rows_per_second", False, 2.0, CONNECTOR, FILES),
    Target(SCAN_SMALL, "rows_per_second", False, 2.0, CONNECTOR, FILES),
    Target(SCAN_LARGE, "rows_per_second", False, 1.2, CONNECTOR, FILES_NUMPY),
    Target(SCAN_SMALL, "rows_per_second", False, 1.2, CONNECTOR, FILES_NUMPY),
    Target(WRITE, "rows_per_second", False, 1.5, CONNECTOR),
    Target(WRITE, "rows_per_second", False, 0.7, HEADRACE, EXACTLY_ONCE),
    Target(STREAM, "batch_ms", True, 1.5, CONNECTOR),
    Target(STREAM_ADDED, "added_ms", True, 80.0),
    Target(MEMORY, "broker_growth", True, 0.05),
    Target(MEMORY, "workers_growth", True, 0.05),
)
