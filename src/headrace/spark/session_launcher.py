"""Start a Spark session that is ready to use: Java found, workers on this interpreter, loopback, few shuffle
partitions.
"""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.spark.class_archive import with_archive
from headrace.spark.java import find_java
from headrace.spark.versions import check_version
from headrace.spark.worker_python import is_worker_python, worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("headrace.spark")

LOOPBACK = "127.0.0.1"
SHUFFLE_PARTITIONS_MIN = 2
SELECTED_DESCRIPTORS_MAX = 1_024
"""The limit of `select`, whatever the limit of open files is."""
_GATEWAY_VARIABLE = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the script that it runs."""


def spark_environment(*, is_local: bool) -> dict[str, str]:
    """Return the environment of Spark's processes; the user's variables stay, those of an earlier session do not."""
    import pyspark

    home = Path(pyspark.__file__).parent
    python = worker_python(home) if is_local else sys.executable
    # The second is what Spark starts for data sources, on workers too.
    found = {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_HOME": str(home),
    }
    if is_local:
        found["SPARK_LOCAL_IP"] = LOOPBACK
    chosen = {name: os.environ[name] for name in found if name in os.environ and not is_worker_python(os.environ[name])}
    return {"JAVA_HOME": str(find_java().home), **found, **chosen}


def default_conf(*, is_local: bool) -> dict[str, str]:
    """Return settings that are better than Spark's defaults for one machine."""
    conf = {
        "spark.sql.shuffle.partitions": str(max(SHUFFLE_PARTITIONS_MIN, os.cpu_count() or 1)),
        "spark.sql.python.filterPushdown.enabled": "true",
        # Less work between Java and Python: a Unix domain socket, and larger batches for writes.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
        "spark.ui.showConsoleProgress": "false",
    }
    if is_local:
        conf |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return conf


def session(
    app_name: str = "headrace", *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> "SparkSession":
    """Return a session on this machine, or on the cluster that `master` names; `conf` overrides the defaults.

    In a script that spark-submit started, its settings are kept.
    """
    check_version()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    settings = dict(conf or {})
    if _GATEWAY_VARIABLE not in os.environ:
        chosen = master or os.environ.get("SPARK_MASTER") or "local[*]"
        is_local = chosen.startswith("local") or f"//{LOOPBACK}" in chosen
        os.environ.update(spark_environment(is_local=is_local))
        builder = builder.master(chosen)
        settings = {**default_conf(is_local=is_local), **settings}
        if is_local:
            settings = with_archive(settings, Path(os.environ["JAVA_HOME"]))
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    if isinstance(started, SparkSession):  # a Spark Connect session has no Java of its own
        _listen_for_calls(started)
    return started


def _listen_for_calls(spark: "SparkSession") -> None:
    """Open the callback socket: Java calls functions of `foreachBatch`, and listeners, through a socket that Python
    watches with `select`.

    `select` supports no descriptor above 1,023: a call through a higher one is never handled. So the socket is opened
    now, and not with the first query, when a program may have many files open.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    if gateway._callback_server.server_socket.fileno() >= SELECTED_DESCRIPTORS_MAX:
        logger.warning(
            "Spark cannot call functions of foreachBatch and would wait for ever: more than %d files are "
            "open; start Spark before opening them, or close some",
            SELECTED_DESCRIPTORS_MAX,
        )
