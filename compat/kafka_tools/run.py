"""Runs the tests of Kafka's own commands."""

import subprocess
import sys

from compat.environments import ROOT, Missing, jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION

TESTS_S_MAX = 300


def run_kafka_tools() -> int:
    """The exit status of the tests; 0 where the commands cannot be had, which is said."""
    try:
        jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
    except Missing as lacking:
        print(f"Kafka's own commands: not run, {lacking}", flush=True)
        return 0
    command = [sys.executable, "-m", "pytest", "-q", str(ROOT / "compat" / "kafka_tools")]
    return subprocess.run(command, cwd=ROOT, timeout=TESTS_S_MAX, check=False).returncode
