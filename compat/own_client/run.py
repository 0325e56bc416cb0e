"""Runs the tests of the client's fronts with Apache Kafka as their broker."""

import os
import subprocess
import sys

from compat.environments import ROOT, Missing, jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION

TESTS_S_MAX = 900
TEST_FILES = (
    "test_every_front.py",
    "test_fronts.py",
    "test_newcomers.py",
    "test_consumer_ends.py",
    "test_blocking.py",
    "test_aio.py",
    "test_group_front.py",
    "test_producer_front.py",
    "test_transactions.py",
    "test_raw.py",
)


def run_own_client() -> int:
    """The exit status of the tests; 0 where Apache Kafka cannot be had, which is said."""
    try:
        jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
    except Missing as lacking:
        print(f"the own client against Apache Kafka: not run, {lacking}", flush=True)
        return 0
    tests = [str(ROOT / "tests" / "client" / name) for name in TEST_FILES]
    tests.append(str(ROOT / "compat" / "own_client" / "test_security.py"))
    environment = {**os.environ, "HEADRACE_CLIENT_BROKER": "kafka"}
    command = [sys.executable, "-m", "pytest", "-q", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=TESTS_S_MAX, check=False).returncode
