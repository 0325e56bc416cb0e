"""Modules that Spark's Python processes have imported are left out of the collections that follow every task."""

import gc
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from headrace.spark import workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def name_of_program(_row: object) -> str:
    return str(sys.modules["__main__"].__spec__.name)


@pytest.mark.parametrize(("program", "expected"), [(workers.DAEMON, workers.FIRST_USES), ("pytest", 0)])
def test_only_processes_of_the_daemon_settle_and_only_at_first(
    monkeypatch: pytest.MonkeyPatch, program: str, expected: int
) -> None:
    settled: list[None] = []
    monkeypatch.setattr(workers, "_first_uses", iter(range(workers.FIRST_USES)))
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=program))
    monkeypatch.setattr(gc, "freeze", lambda: settled.append(None))
    for _ in range(3 * workers.FIRST_USES):
        workers.freeze_imports()
    assert len(settled) == expected


def test_the_name_of_the_daemon_is_what_spark_calls_it(spark: "SparkSession") -> None:
    assert spark.sparkContext.parallelize([0], 1).map(name_of_program).collect() == [workers.DAEMON]
