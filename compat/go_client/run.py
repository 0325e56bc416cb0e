"""Runs the test that is a program for a Go client."""

import subprocess
import sys

from compat.environments import ROOT, Missing
from compat.go_client.build import go_program

TESTS_S_MAX = 300


def run_go_client() -> int:
    """The exit status of the tests; 0 where Go cannot be had, which is said."""
    try:
        go_program()
    except Missing as lacking:
        print(f"the program for a Go client: not run, {lacking}", flush=True)
        return 0
    command = [sys.executable, "-m", "pytest", "-q", str(ROOT / "compat" / "go_client")]
    return subprocess.run(command, cwd=ROOT, timeout=TESTS_S_MAX, check=False).returncode
