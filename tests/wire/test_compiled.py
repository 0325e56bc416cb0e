"""Compiled helpers: which are in use."""

import subprocess
import sys

import pytest

from headrace.bench.brokers import PurePythonBroker
from headrace.wire import compiled

pytestmark = pytest.mark.process


def test_every_helper_is_named_once() -> None:
    assert [helper.name for helper in compiled.compiled_helpers()] == ["requests", "columns"]
    assert compiled.compiled_helpers()[0].in_use is compiled.has_request_helper()


def test_a_broker_that_is_measured_without_helpers_has_none() -> None:
    option, program = PurePythonBroker.program
    question = "from headrace.wire.compiled import has_request_helper; print(has_request_helper())"
    program = program.replace("runpy.run_module('headrace', run_name='__main__', alter_sys=True)", question)
    said = subprocess.run([sys.executable, option, program], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "False\n"
