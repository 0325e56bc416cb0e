"""Imports of the processes beside the driver: they make writers and commit, and each starts for every query."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

FOUND = "import sys, {module}; print([name for name in ('numpy', 'pandas', 'pyarrow') if name in sys.modules])"


@pytest.mark.parametrize(
    "module",
    [
        "pyspark_headrace",
        "headrace.spark.stream_reader",
        "headrace.spark.sink.writers",
        "headrace.spark.sink.tables.writers",
    ],
)
def test_arrow_is_for_those_who_handle_rows(module: str) -> None:
    """It takes half a second of a process, with what it imports itself."""
    said = subprocess.run(
        [sys.executable, "-c", FOUND.format(module=module)], capture_output=True, text=True, check=True
    )
    assert said.stdout == "[]\n"
