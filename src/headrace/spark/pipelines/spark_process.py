"""The Java process of Spark, seen from the driver: whether it has ended, and why, in one line."""

import signal
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

END_SECONDS_MAX = 5.0
"""Time to wait for the process after its connection closed: Python notices that before the process has ended."""


class SparkDied(Exception):
    """A process of Spark has ended during a run, which cannot continue without it."""


def java_of(spark: "SparkSession") -> "subprocess.Popen[bytes] | None":
    """Return the process that this one has started; None if Spark runs elsewhere, as on a hosted cluster."""
    gateway: Any = spark.sparkContext._gateway
    found = getattr(gateway, "proc", None)
    return found if isinstance(found, subprocess.Popen) else None


def java_death(java: "subprocess.Popen[bytes] | None", *, is_suspected: bool) -> str | None:
    """Describe how the process ended; None while it runs. A process that may be dying is given a moment."""
    if java is None:
        return None
    try:
        status = java.wait(END_SECONDS_MAX if is_suspected else 0)
    except subprocess.TimeoutExpired:
        return None
    return death_text(f"Spark's Java process (pid {java.pid})", status)


def is_lost_connection(error: Exception) -> bool:
    """Return whether an error concerns the connection to Java, and is not an error that Java returned."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    return isinstance(error, OSError) or (isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError))


def death_text(what: str, status: int) -> str:
    """Describe the exit status of a process as given by `subprocess`."""
    if status >= 0:
        return f"{what} ended with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    why = ": the machine may have run out of memory" if -status == signal.SIGKILL else ""
    return f"{what} was killed by {name}{why}"
