"""The rule that excuses a failed test: few of them, with real processes, and passing when they run again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.test_run import FLAKY_PAGE, RERUN_TESTS_MAX, TESTS_FAILED, Failure, read_flaky_tests, refusal_of_reruns

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS_MAX = 240


def failure(test: str = "tests/a.py::test", *markers: str, assertion: bool = True) -> Failure:
    return Failure(test=test, markers=frozenset(markers), assertion=assertion, text="it failed")


@pytest.mark.parametrize("marker", ["process", "spark"])
def test_a_failed_test_of_real_processes_may_run_again(marker: str) -> None:
    assert refusal_of_reruns(TESTS_FAILED, [failure("tests/a.py::test", marker)]) is None


def test_no_more_than_a_few_failed_tests_run_again() -> None:
    failures = [failure(f"tests/a.py::test[{number}]", "process") for number in range(RERUN_TESTS_MAX)]
    assert refusal_of_reruns(TESTS_FAILED, [*failures, failures[0]]) is None  # a test may fail in two phases
    assert "at most" in str(refusal_of_reruns(TESTS_FAILED, [*failures, failure("tests/b.py::test", "process")]))


@pytest.mark.parametrize(
    "never",
    [
        pytest.param(failure("tests/unit.py::test"), id="a unit test"),
        pytest.param(failure("tests/model.py::test", "process", "hypothesis"), id="a property test"),
        pytest.param(failure("tests/kill.py::test", "process", "record_integrity"), id="a lost record"),
    ],
)
def test_some_failures_are_never_excused(never: Failure) -> None:
    excusable = failure("tests/a.py::test", "process")
    assert never.test in str(refusal_of_reruns(TESTS_FAILED, [excusable, never]))


def test_a_time_out_of_a_test_of_record_integrity_may_run_again() -> None:
    late = failure("tests/kill.py::test", "process", "record_integrity", assertion=False)
    assert refusal_of_reruns(TESTS_FAILED, [late]) is None


@pytest.mark.parametrize("status", [2, 3, 4, 5, -9])
def test_a_run_that_went_wrong_itself_is_not_excused(status: int) -> None:
    assert str(status) in str(refusal_of_reruns(status, [failure("tests/a.py::test", "process")]))


def test_every_flaky_test_has_a_cause_and_a_plan() -> None:
    page = FLAKY_PAGE.read_text()
    entries = read_flaky_tests(page)
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    assert len(entries) == len(rows), "a row of tests/flaky.md lacks the test's name in backquotes or its date"
    for entry in entries:
        assert entry.cause, f"{entry.test} has no cause"
        assert entry.plan, f"{entry.test} has no plan"
        assert (ROOT / entry.test.split("::")[0]).is_file(), f"{entry.test} does not exist"


def test_flaky_tests_are_read_oldest_first() -> None:
    page = "| `b` | 2026-03-02 | slow disk | wait |\n| `a` | 2026-01-01 | | |\n"
    assert [(entry.test, entry.cause) for entry in read_flaky_tests(page)] == [("a", ""), ("b", "slow disk")]


FIRST_RUN_FAILS = """
import pathlib
import pytest

pytestmark = pytest.mark.{marker}
COUNT = pathlib.Path(__file__).with_suffix(".count")

def test_fails_at_first():
    runs = int(COUNT.read_text()) if COUNT.exists() else 0
    COUNT.write_text(str(runs + 1))
    assert runs >= {failing}, "not yet"

def test_passes():
    pass
"""


def run_module(module: Path, *, ci: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "tools.test_run", "-c", str(ROOT / "pyproject.toml"), "-n1", str(module)],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    return ran.returncode, ran.stdout + ran.stderr


def run_tests(folder: Path, *, marker: str, failing: int, ci: str) -> tuple[int, str, int]:
    """Run a module whose first test fails `failing` times; return the status, the output and how often it ran."""
    module = folder / "test_module.py"
    module.write_text(FIRST_RUN_FAILS.format(marker=marker, failing=failing))
    status, printed = run_module(module, ci=ci)
    return status, printed, int(module.with_suffix(".count").read_text())


def test_a_test_that_fails_once_is_reported_as_flaky_and_the_run_is_green(tmp_path: Path) -> None:
    status, printed, runs = run_tests(tmp_path, marker="process", failing=1, ci="true")
    assert status == 0, printed
    assert runs == 1 + 3
    assert re.search(r"^FLAKY .*test_module.py::test_fails_at_first$", printed, re.MULTILINE)
    assert "not yet" in printed.split("FLAKY ")[1]


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    status, printed, runs = run_tests(tmp_path, marker="process", failing=2, ci="true")
    assert (status, runs) == (TESTS_FAILED, 2), printed
    assert "failed again" in printed
    before_the_summary = printed.split("= FAILURES =")[0]
    assert re.search(r"^failed: .*test_module.py::test_fails_at_first$", before_the_summary, re.MULTILINE)


@pytest.mark.parametrize(("marker", "ci"), [("record_integrity", "true"), ("process", "")])
def test_other_failures_run_once(tmp_path: Path, marker: str, ci: str) -> None:
    status, printed, runs = run_tests(tmp_path, marker=marker, failing=1, ci=ci)
    assert (status, runs) == (TESTS_FAILED, 1), printed


DYING_WORKER = """
import os
import pytest

pytestmark = pytest.mark.process

def test_dies():
    os._exit(9)
"""


def test_a_crashed_worker_is_not_excused(tmp_path: Path) -> None:
    module = tmp_path / "test_module.py"
    module.write_text(DYING_WORKER)
    status, printed = run_module(module, ci="true")
    assert status == TESTS_FAILED, printed
    assert "no test runs again" in printed
    assert "FLAKY" not in printed
