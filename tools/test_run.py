"""Run the tests; in continuous integration, repeat a few failed tests of real processes before the run fails.

A failure is excused only if at most RERUN_TESTS_MAX tests failed, each carries the marker `process` or `spark`, none is
a property test, none asserted that records were lost, repeated or reordered (marker `record_integrity`), and each of
them passes three times alone, once beside processes that keep the cores busy. Such a test is printed as FLAKY.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from tools.unit_tests import MARKS

ROOT = Path(__file__).resolve().parent.parent
FLAKY_PAGE = ROOT / "tests" / "flaky.md"
SEED_MAX = 2**32 - 1
WORKERS = 3
"""One more than the cores of the smallest machine: tests of processes and of Spark wait for a part of their time."""
UNIT_WORKERS = 2
"""Unit tests wait for nothing, and another worker would have to collect them too."""
SCHEDULER = ("--dist=loadfile", "-p", "tools.module_scheduler")
RERUN_TESTS_MAX = 5
RERUN_SECONDS_MAX = 1200
CORES_ARE_BUSY = (False, True, False)
"""A failed test runs again once for each of these, alone."""
TESTS_FAILED = 1
"""pytest's status when tests failed; any other one means that the run itself went wrong."""

UNIT = "--unit"
UNIT_ARGUMENTS = ("-p", "tools.unit_tests", "-m", MARKS, "--hypothesis-profile=headrace-quick")

EXCUSABLE_MARKERS = {"process", "spark"}
NEVER_EXCUSED_MARKERS = {"hypothesis"}
INTEGRITY_MARKER = "record_integrity"

BUSY_LOOP = "import time, sys\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end: pass"
FLAKY_ROW = re.compile(
    r"^\| *`(?P<test>[^`]+)` *\| *(?P<seen>\d{4}-\d{2}-\d{2}) *\| *(?P<cause>.*?) *\| *(?P<plan>.*?) *\|$", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed phase of a test, or a module that could not be collected."""

    test: str
    markers: frozenset[str]
    assertion: bool
    text: str

    def refusal(self) -> str | None:
        """Return why this failure is never excused, or None if repeating the test may excuse it."""
        if not self.markers & EXCUSABLE_MARKERS:
            return "it does not use real processes"
        if self.markers & NEVER_EXCUSED_MARKERS:
            return "it is a property test"
        if INTEGRITY_MARKER in self.markers and self.assertion:
            return "it asserts that no record is lost, repeated or reordered"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyTest:
    """A row of tests/flaky.md."""

    test: str
    seen: str
    cause: str
    plan: str


def read_failures(path: Path) -> list[Failure]:
    if not path.is_file():  # pytest ended before it could write
        return []
    rows = json.loads(path.read_text())
    return [Failure(**{**row, "markers": frozenset(row["markers"])}) for row in rows]


def read_flaky_tests(page: str) -> list[FlakyTest]:
    """Return the rows of tests/flaky.md, oldest first."""
    return sorted((FlakyTest(**row.groupdict()) for row in FLAKY_ROW.finditer(page)), key=lambda entry: entry.seen)


def refusal_of_reruns(status: int, failures: Sequence[Failure]) -> str | None:
    """Return why the failures of a run stand as they are, or None if the failed tests may run again."""
    if status != TESTS_FAILED or not failures:
        return f"pytest ended with status {status}"
    tests = {failure.test for failure in failures}
    if len(tests) > RERUN_TESTS_MAX:
        return f"{len(tests)} tests failed, and at most {RERUN_TESTS_MAX} run again"
    for failure in failures:
        if reason := failure.refusal():
            return f"{failure.test}: {reason}"
    return None


def environment() -> dict[str, str]:
    """Let Python keep what it compiles: a run has hundreds of processes that would compile the same modules again."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def pytest_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-rs", "-p", "tools.failure_record", *arguments]


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy, with processes that end by themselves if this one is killed."""
    command = [sys.executable, "-c", BUSY_LOOP, str(RERUN_SECONDS_MAX)]
    loops = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def passes_alone(test: str, seed: str) -> bool:
    """Run one test by itself as often as the rule asks; stop at the first failure."""
    for busy in CORES_ARE_BUSY:
        print(f"\nrunning again alone{', with busy cores' if busy else ''}: {test}", flush=True)
        with busy_cores() if busy else nullcontext():
            try:
                command = pytest_command("--numprocesses=0", seed, test)
                ran = subprocess.run(command, cwd=ROOT, env=environment(), timeout=RERUN_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                return False
        if ran.returncode != 0:
            return False
    return True


def rerun(failures: Sequence[Failure], seed: str) -> int:
    """Repeat each failed test; return 0 if all of them passed every time."""
    first_failures = {failure.test: failure.text for failure in reversed(failures)}
    for test in first_failures:
        if not passes_alone(test, seed):
            print(f"\n{test} failed again: the run has failed")
            return TESTS_FAILED
    for test, text in first_failures.items():
        print(f"\nFLAKY {test}\n{text}\nadd it to tests/flaky.md with the date, its cause and a plan")
    return 0


def print_flaky_tests() -> None:
    for entry in read_flaky_tests(FLAKY_PAGE.read_text()):
        print(f"known to be flaky since {entry.seen}: {entry.test}; {entry.cause}; plan: {entry.plan}", flush=True)


def main(words: Sequence[str]) -> int:
    """Run the tests that the words name to pytest, or all of them; only unit tests if the first word is `--unit`."""
    is_unit = list(words[:1]) == [UNIT]
    arguments = words[1:] if is_unit else words
    workers = UNIT_WORKERS if is_unit else WORKERS
    seed = f"--randomly-seed={random.randint(0, SEED_MAX)}"  # the order of tests is no secret
    print_flaky_tests()
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "failures.json"
        chosen = UNIT_ARGUMENTS if is_unit else ()
        order = (f"--numprocesses={workers}", *SCHEDULER, seed, *chosen, *arguments)
        command = pytest_command(*order, f"--failure-record={record}")
        status = subprocess.run(command, cwd=ROOT, env=environment()).returncode
        failures = read_failures(record)
    if status != 0 and os.environ.get("CI") == "true":
        refusal = refusal_of_reruns(status, failures)
        if refusal is None:
            status = rerun(failures, seed)
        else:
            print(f"no test runs again: {refusal}")
    if status != 0:
        again = shlex.join((seed, *arguments)).replace('"', r"\"")
        print(f'the same order again: make {"quick" if is_unit else "test"} ARGS="{again}"')
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
