"""`python -m tools.bench compare`: all loads on Headrace and Apache Kafka, compared with the targets."""

from pathlib import Path

import click

from headrace.cli.bench.options import (
    benchmark_failures,
    end_telling,
    folder_option,
    own_folder,
    tell,
)
from headrace.cli.options import json_option
from tools.bench.commands.options import page_option, touch_option
from tools.bench.commands.report import show_comparison

PART_NAMES = (
    "produce",
    "consume",
    "latency",
    "cold",
    "durable",
    "metadata",
    "coordinators",
    "groups",
    "compaction",
    "start",
    "idle",
    "recovery",
)


@click.command()
@click.option("--quick", is_flag=True, help="Smaller loads without touching memory: four minutes, less steady figures.")
@click.option("--no-kafka", is_flag=True, help="Do not measure Apache Kafka.")
@click.option("--only", type=click.Choice(PART_NAMES), multiple=True, help="Run only this part; may be repeated.")
@touch_option
@page_option
@folder_option
@json_option
def compare(
    quick: bool,
    no_kafka: bool,
    only: tuple[str, ...],
    touch: bool | None,
    page: Path | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Run every load on Headrace, Apache Kafka and the bare system calls, and compare the figures with the targets.

    Apache Kafka is downloaded by mvn into the cache folder on first use; without mvn or java its rows are shown as not
    measured. Takes about 15 minutes and up to 40 GB of disk. A missed target is not a failure of the command.
    """
    from tools.bench.comparison import FULL, QUICK, Comparison
    from tools.bench.performance_page import COMPARE
    from tools.bench.targets import TARGETS, verdicts

    with benchmark_failures(), own_folder(folder, touch=not quick if touch is None else touch) as place:
        comparison = Comparison(
            place, extent=QUICK if quick else FULL, with_kafka=not no_kafka and _kafka_is_there(), report=tell
        )
        comparison.run(only or PART_NAMES)
    measured = {one.load for one in comparison.measurements}
    judged = verdicts(comparison.measurements, [target for target in TARGETS if not only or target.load in measured])
    show_comparison(comparison, judged, COMPARE, folder=folder, page=page, as_json=as_json)


def _kafka_is_there() -> bool:
    from headrace.bench.errors import BenchError
    from tools.bench.kafka import kafka_libraries

    tell("downloading Apache Kafka")
    try:
        kafka_libraries()
    except BenchError as missing:
        end_telling()
        click.echo(f"without Apache Kafka: {str(missing).splitlines()[0]}", err=True)
        return False
    return True
