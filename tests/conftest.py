"""Rules for every test: Hypothesis has one profile, and continuous integration (CI=true) accepts no skipped test.

Python's garbage collector leaves alone what is made while pytest collects the tests, 400,000 objects that all stay. It
examined them repeatedly: a quarter of the time of the collection, and a twentieth of the time of the tests.
"""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

IN_CI = os.environ.get("CI") == "true"
QUICK_EXAMPLES = 20
"""Examples of a property in `make quick`, unless the test says how many it needs; `make test` has 100."""

# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine makes any single example slow, so time is bounded per test (pytest-timeout), not per example.
settings.register_profile(
    "headrace", deadline=None, print_blob=True, derandomize=IN_CI, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("headrace-quick", settings.get_profile("headrace"), max_examples=QUICK_EXAMPLES)
settings.load_profile("headrace")


def pytest_sessionstart() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, which CI=true does not allow. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
