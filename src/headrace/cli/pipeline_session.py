"""Spark sessions of pipeline commands: started without output, or a one-line error."""

import logging
import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failures import Failure, unwritable
from headrace.ports.real.processes import children

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.pipelines.definition import Pipeline

LOG_FILE = "spark.log"
"""The output of Java and the workers of the newest run, beside the checkpoint."""
_STDERR = 2
_CAUSE = re.compile(r"(?:^|: )(?:[\w.$]+\.)*\w*(?:Exception|Error): (?P<said>.+)", re.MULTILINE)


def spark_session(pipeline: "Pipeline", master: str | None, log: Path | None = None) -> "SparkSession":
    """Start a session with the configs in the pipeline's file."""
    chosen = master or pipeline.spark.master
    return started_session(pipeline.name, chosen, pipeline.spark.settings, log or pipeline.checkpoint / LOG_FILE)


def started_session(
    name: str, master: str | None, settings: Mapping[str, str], log: Path, *, extras: str = "spark"
) -> "SparkSession":
    """Start Spark, or fail with what is missing."""
    try:
        from headrace.spark import session
        from headrace.spark.java import JavaMissing
        from headrace.spark.versions import UnsupportedSpark
    except ImportError as error:
        raise _not_installed(error, extras) from None
    quiet = {"spark.log.level": "OFF", "spark.ui.enabled": "false"}
    try:
        with _said_to(log), _whole_or_not_at_all():
            started = session(f"headrace-{name}", master=master, conf={**quiet, **settings})
    except ImportError as error:
        raise _not_installed(error, extras) from None
    except (JavaMissing, UnsupportedSpark) as error:
        raise Failure(str(error)) from None
    except Exception as error:
        cause = _cause(str(error), log)
        with suppress(OSError), log.open("a", encoding="utf-8") as file:
            file.write(f"{error}\n")
        raise Failure(f"Spark cannot start: {cause} (more in {log})") from error
    _hush()
    return started


def _not_installed(error: ImportError, extras: str) -> Failure:
    return Failure(f"Spark is not installed ({error}): pip install 'headrace[{extras}]'")


@contextmanager
def _said_to(log: Path) -> Iterator[None]:
    """Redirect standard error while Java starts. Java and its children keep it, so their output does not hide ours."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("w")
    except OSError as error:
        raise unwritable(log, error) from None
    kept = os.dup(_STDERR)
    with file:
        os.dup2(file.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


@contextmanager
def _whole_or_not_at_all() -> Iterator[None]:
    """Kill a Java process whose start was interrupted: it does not notice the end of this process and would stay."""
    before = children()
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        for process_id in children() - before:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGTERM)
        raise


def _cause(message: str, log: Path) -> str:
    """Return the cause of a Java error; if Java exited at once, the cause is only in the log."""
    found = _CAUSE.search(message.partition("\n")[2])
    if found is not None:
        return found["said"].strip()
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?:Error|Invalid|Exception)\b", line)]
    return (errors or lines or [message])[-1]


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Silence Py4J, which also logs through the root logger."""
    return Path(record.pathname).parent.name != "py4j"


def _hush() -> None:
    """Drop the errors of queries that Spark logs as JSON and Py4J's log of a lost Java: commands report both."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
