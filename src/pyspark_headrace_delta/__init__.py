"""Lets Spark find the format `headrace-delta` by itself; nothing else is here."""

from headrace.spark.sink.tables.sources import DeltaSink as DefaultSource

__all__ = ["DefaultSource"]
