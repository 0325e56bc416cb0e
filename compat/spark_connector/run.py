"""Runs the tests of Spark's connector and keeps what came out."""

import subprocess
import sys
import tempfile
from pathlib import Path

from compat.environments import ROOT
from compat.spark_connector.outcomes import outcomes_in, store
from headrace.bench.errors import BenchError
from headrace.spark.java import JavaMissing, find_java
from tools.bench.spark.connector import connector_jars

TESTS_S_MAX = 900


def run_spark_connector() -> int:
    """The exit status of the tests; 0 where the connector or Java cannot be had, which is said."""
    try:
        find_java()
        connector_jars()
    except (BenchError, JavaMissing) as lacking:
        print(f"Spark's connector: not run, {str(lacking).splitlines()[0]}", flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="compat-spark-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "compat/spark_connector"]
        status = subprocess.run(command, cwd=ROOT, timeout=TESTS_S_MAX, check=False).returncode
        store(outcomes_in(report.read_text()))
    return status
