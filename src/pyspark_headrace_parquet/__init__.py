"""Lets Spark find the format `headrace-parquet` by itself; nothing else is here."""

from headrace.spark.sink.tables.sources import ParquetSink as DefaultSource

__all__ = ["DefaultSource"]
