"""Which compiled helpers are in use, as users read it."""

import subprocess
import sys

import pytest

from headrace.bench.brokers import PurePythonBroker
from headrace.wire import compiled
from headrace.wire.compiled import CompiledHelper


@pytest.mark.parametrize(
    ("requests", "columns", "text"),
    [
        (True, True, "compiled helpers: requests, columns in use"),
        (False, True, "compiled helpers: columns in use; requests in Python"),
        (True, False, "compiled helpers: requests in use; columns in Python"),
        (False, False, "compiled helpers: none in use (pure Python)"),
    ],
)
def test_the_line_of_a_log(monkeypatch: pytest.MonkeyPatch, requests: bool, columns: bool, text: str) -> None:
    helpers = (CompiledHelper("requests", "", requests), CompiledHelper("columns", "", columns))
    monkeypatch.setattr(compiled, "compiled_helpers", lambda: helpers)
    assert compiled.helpers_text() == text


def test_a_broker_that_is_measured_without_helpers_has_none() -> None:
    option, program = PurePythonBroker.program
    question = "from headrace.wire.compiled import has_request_helper; print(has_request_helper())"
    program = program.replace("runpy.run_module('headrace', run_name='__main__', alter_sys=True)", question)
    said = subprocess.run([sys.executable, option, program], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "False\n"
