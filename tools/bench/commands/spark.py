"""`python -m tools.bench spark`: Headrace's format and Spark's connector for Kafka, in alternating rounds on one
broker.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from headrace.cli.bench.options import (
    benchmark_failures,
    end_telling,
    folder_option,
    own_folder,
    tell,
)
from headrace.cli.failures import Failure
from headrace.cli.options import json_option
from tools.bench.commands.options import page_option, touch_option
from tools.bench.commands.report import show_comparison

PART_NAMES = ("read", "scan", "write", "stream", "memory")

_SIZES = {
    "rounds": "Number of rounds, except for streams.",
    "large_rows": "Rows of 1 KB to read.",
    "small_rows": "Rows of 100 B to read.",
    "write_rows": "Rows of 100 B to write.",
    "batch_rows": "Rows per micro-batch.",
    "batches": "Micro-batches per query; the first five do not count.",
    "stream_rounds": "Number of rounds of streams.",
    "memory_batches": "Micro-batches of the query whose memory is measured, after the first fifth.",
    "memory_batch_rows": "Rows per micro-batch of that query.",
}


def size_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each size; the default is that of the full or quick run."""
    for name, text in reversed(_SIZES.items()):
        function = click.option(f"--{name.replace('_', '-')}", type=click.IntRange(1), help=text)(function)
    return function


@click.command()
@click.option("--quick", is_flag=True, help="A few thousand rows, one round: a smoke test.")
@click.option("--no-connector", is_flag=True, help="Do not measure Spark's connector.")
@click.option("--only", type=click.Choice(PART_NAMES), multiple=True, help="Run only this part; may be repeated.")
@touch_option
@size_options
@page_option
@folder_option
@json_option
def spark(
    quick: bool,
    no_connector: bool,
    only: tuple[str, ...],
    touch: bool | None,
    page: Path | None,
    folder: Path | None,
    as_json: bool,
    **sizes: Any,
) -> None:
    """Measure Spark on a broker: reads, scans of files, writes, micro-batches and memory, beside Spark's connector.

    The connector is downloaded by mvn into the cache folder on first use; without mvn only our format is measured.
    Every round is checked by counts and checksums of its rows. Takes about twelve minutes and 5 GB of disk.
    """
    require_spark()
    from tools.bench.performance_page import SPARK
    from tools.bench.spark.comparison import FULL, QUICK, SparkComparison
    from tools.bench.spark.targets import SPARK_TARGETS
    from tools.bench.targets import verdicts

    wanted = replace(QUICK if quick else FULL, **{name: size for name, size in sizes.items() if size is not None})
    with benchmark_failures(), ExitStack() as stack:
        jars = [] if no_connector else _connector()
        place = stack.enter_context(own_folder(folder, touch=not quick if touch is None else touch))
        comparison = stack.enter_context(SparkComparison(place, sizes=wanted, jars=jars, report=tell))
        comparison.run(only or PART_NAMES)
    measured = {one.load for one in comparison.measurements}
    judged = verdicts(comparison.measurements, [each for each in SPARK_TARGETS if not only or each.load in measured])
    show_comparison(comparison, judged, SPARK, folder=folder, page=page, as_json=as_json)


def require_spark() -> None:
    from importlib.util import find_spec

    if find_spec("pyspark") is None:
        raise Failure("Spark is not installed: pip install 'headrace[spark]'")


def _connector() -> list[Path]:
    from headrace.bench.errors import BenchError
    from tools.bench.spark.connector import connector_jars

    tell("downloading Spark's connector")
    try:
        return connector_jars()
    except BenchError as missing:
        end_telling()
        click.echo(f"without Spark's connector: {str(missing).splitlines()[0]}", err=True)
        return []
