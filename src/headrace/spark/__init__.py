"""The Spark data source `headrace`, which reads and writes topics; it needs nothing outside PyPI.

    from headrace.spark import session

    spark = session()
    orders = spark.read.format("headrace").option("kafka.bootstrap.servers", "127.0.0.1:9092")
    orders.option("subscribe", "orders").load().show()

Any other session works too: `pyspark_headrace` registers the format in every PySpark that has it installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.spark.session_launcher import session
    from headrace.spark.sink.lanes import write_lanes

__all__ = ["session", "write_lanes"]

_PLACES = {"session": "headrace.spark.session_launcher", "write_lanes": "headrace.spark.sink.lanes"}


def __getattr__(name: str) -> Any:
    """Import on first use: Spark imports this package in every planner and worker."""
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
