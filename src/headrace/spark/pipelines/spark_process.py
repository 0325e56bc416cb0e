"""The Java process of Spark, seen from the driver: whether it has ended, and what that means in one line."""

import signal
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

END_SECONDS_MAX = 5.0
"""How long the process is waited for when its connection closed: Python sees that before the process is gone."""


class SparkDied(Exception):
    """A process of Spark has ended under a run, which cannot go on without it."""


def java_of(spark: "SparkSession") -> "subprocess.Popen[bytes] | None":
    """The process that this one has started; None where Spark runs elsewhere, as on a hosted cluster."""
    gateway: Any = spark.sparkContext._gateway
    found = getattr(gateway, "proc", None)
    return found if isinstance(found, subprocess.Popen) else None


def java_death(java: "subprocess.Popen[bytes] | None", *, is_suspected: bool) -> str | None:
    """Say how the process ended; None while it runs, for which one that is suspected to be dying is given a moment."""
    if java is None:
        return None
    try:
        status = java.wait(END_SECONDS_MAX if is_suspected else 0)
    except subprocess.TimeoutExpired:
        return None
    return death_text(f"Spark's Java process (pid {java.pid})", status)


def is_lost_connection(error: Exception) -> bool:
    """Whether an error is about the way to Java, and not one that Java has answered with."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    return isinstance(error, OSError) or (isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError))


def death_text(what: str, status: int) -> str:
    """Explain an exit status of a process as `subprocess` gives it."""
    if status >= 0:
        return f"{what} ended with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    why = ": the machine may have run out of memory" if -status == signal.SIGKILL else ""
    return f"{what} was killed by {name}{why}"
