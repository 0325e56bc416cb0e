"""Runs the tests that are programs for the Java client."""

import shutil
import subprocess
import sys

from compat.environments import ROOT, Missing, jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION

TESTS_S_MAX = 300


def run_java_client() -> int:
    """The exit status of the tests; 0 where the client or a compiler cannot be had, which is said."""
    try:
        jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
        if shutil.which("javac") is None:
            raise Missing("no javac on the PATH: install a JDK")
    except Missing as lacking:
        print(f"programs for the Java client: not run, {lacking}", flush=True)
        return 0
    command = [sys.executable, "-m", "pytest", "-q", str(ROOT / "compat" / "java_client")]
    return subprocess.run(command, cwd=ROOT, timeout=TESTS_S_MAX, check=False).returncode
