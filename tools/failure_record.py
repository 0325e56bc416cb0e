"""Names failed tests at once and records them in a JSON file, as a pytest plugin (`--failure-record FILE`)."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

OPTION = "--failure-record"
FACTS = "failure-facts"
TIMEOUT_PREFIX = "Timeout (>"
"""pytest-timeout ends a test with pytest.fail, which otherwise counts as an assertion."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, help="write the failed tests to this file as JSON")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption(OPTION)
    if path and not hasattr(config, "workerinput"):  # xdist's workers send their reports to the controller
        config.pluginmanager.register(FailureRecord(Path(path), config), "failure-record-writer")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach what only the process of the test knows: its plain name, its markers and the kind of its failure."""
    report = yield
    if report.failed:
        facts = {
            "test": plain_name(item),
            "markers": sorted({marker.name for marker in item.iter_markers()}),
            "assertion": call.excinfo is None or is_assertion(call.excinfo.value),
        }
        report.user_properties.append((FACTS, facts))
    return report


def plain_name(item: pytest.Item) -> str:
    """Return the name under which pytest finds the test: its path and the rest of its id."""
    name = item.nodeid.partition("::")[2]
    return f"{os.path.relpath(item.path, item.config.invocation_params.dir)}::{name}"


def is_assertion(failure: BaseException) -> bool:
    if isinstance(failure, pytest.fail.Exception):
        return not str(failure.msg).startswith(TIMEOUT_PREFIX)
    return isinstance(failure, AssertionError)


class FailureRecord:
    """Collects the failures on the controller, prints their names as they happen and writes them when the run ends."""

    def __init__(self, path: Path, config: pytest.Config) -> None:
        self._path = path
        self._config = config
        self._failures: list[dict[str, object]] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report, {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report, dict(report.user_properties).get(FACTS, {}))

    def _note(self, report: pytest.CollectReport | pytest.TestReport, facts: object) -> None:
        if report.failed:
            unknown = {"test": report.nodeid, "markers": [], "assertion": True}  # a crashed worker knows no facts
            assert isinstance(facts, dict)
            self._failures.append({**unknown, **facts, "text": report.longreprtext})
            self._print(str(self._failures[-1]["test"]))

    def _print(self, test: str) -> None:
        """Print the name at once: a run that is cut short prints no summary."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(reporter, pytest.TerminalReporter)
        reporter.write_line(f"\nfailed: {test}", red=True)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._failures, indent=1))
