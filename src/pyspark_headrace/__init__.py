"""How Spark finds the format "headrace": it imports every module called pyspark_* and takes its DefaultSource."""

from headrace.spark.data_source import HeadraceDataSource as DefaultSource

__all__ = ["DefaultSource"]
