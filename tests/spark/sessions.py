"""A Spark session of tests: two cores, everything it writes below one folder, and quiet."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
