"""A Spark session of tests: two cores, everything it writes below one folder, and quiet."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAST_START = "-XX:TieredStopAtLevel=1"
"""Tests end before Java's optimizing compiler and its parallel collector pay off. A start takes 8.6 s of processor time
with these options, 9.2 s with the first alone, and 4.2 s with the classes that `make test` keeps in `.venv/cache`.
"""
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}
"""Tests have few rows: to compile a query, or to plan it again, costs more than it saves. The recipes of the cookbook
take 43 s of processor time with these settings, and 52 s without them.
"""


@contextmanager
def running_session(name: str, folder: Path, conf: Mapping[str, str]) -> "Iterator[SparkSession]":
    from headrace.spark import session

    logging.getLogger("py4j").setLevel(logging.ERROR)
    started = session(
        name,
        master="local[2]",
        conf={
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.sql.session.timeZone": "UTC",
            **conf,
        },
    )
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()
