"""Registers the format "headrace": Spark imports every module named pyspark_* and uses its DefaultSource."""

from headrace.spark.data_source import HeadraceDataSource as DefaultSource

__all__ = ["DefaultSource"]
