"""Runs the tests of Spark's sink with Apache Kafka as its broker."""

import subprocess
import sys

from compat.environments import ROOT, Missing, jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION

TESTS_S_MAX = 600


def run_spark_lanes() -> int:
    """The exit status of the tests; 0 where Apache Kafka cannot be had, which is said."""
    try:
        jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
    except Missing as lacking:
        print(f"Spark's lanes against Apache Kafka: not run, {lacking}", flush=True)
        return 0
    command = [sys.executable, "-m", "pytest", "-q", str(ROOT / "compat" / "spark_lanes")]
    return subprocess.run(command, cwd=ROOT, timeout=TESTS_S_MAX, check=False).returncode
