"""`headrace bench compare`: all loads, on Headrace and Apache Kafka in turns, against what is to be reached."""

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.bench.options import benchmark_failures, circumstances, end_telling, folder_option, tell
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import EXIT_FAILED
from headrace.cli.options import json_option

if TYPE_CHECKING:
    from headrace.bench.comparison import Comparison
    from headrace.bench.targets import Verdict

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
_STYLES = {"reached": "green", "MISSED": "bold red", "not measured": "yellow"}


@click.command()
@click.option("--quick", is_flag=True, help="Smaller loads, no memory touched: four minutes, figures less steady.")
@click.option("--no-kafka", is_flag=True, help="Without Apache Kafka, even where it could be had.")
@click.option("--only", type=click.Choice(PART_NAMES), multiple=True, help="Only this part; may be repeated.")
@click.option("--touch/--no-touch", default=None, help="Touch the memory first. [default: unless --quick]")
@click.option("--write", "page", type=click.Path(dir_okay=False, path_type=Path), help="A page to put the table into.")
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
    """Run every load beside Apache Kafka and the bare system calls, and say which figures are reached.

    Apache Kafka is fetched by mvn into the cache folder at the first use; without mvn or java its rows are shown as
    not measured. Takes about a quarter of an hour and up to 40 GB of disk. A target that is missed is shown as missed.
    """
    from contextlib import ExitStack

    from headrace.bench.comparison import FULL, QUICK, Comparison
    from headrace.bench.machine import bench_folder, touched_memory
    from headrace.bench.targets import TARGETS, verdicts

    with benchmark_failures(), ExitStack() as stack:
        own_folder = stack.enter_context(bench_folder(folder))
        if touch if touch is not None else not quick:
            tell("touching the memory")
            stack.enter_context(touched_memory(own_folder))
        comparison = Comparison(
            own_folder, extent=QUICK if quick else FULL, with_kafka=not no_kafka and _kafka_is_there(), tell=tell
        )
        comparison.run(only or PART_NAMES)
    measured = {one.load for one in comparison.measurements}
    judged = verdicts(comparison.measurements, [target for target in TARGETS if not only or target.load in measured])
    _show(comparison, judged, folder, page, as_json=as_json)
    if comparison.failures:
        click.get_current_context().exit(EXIT_FAILED)


def _kafka_is_there() -> bool:
    from headrace.bench.errors import BenchError
    from headrace.bench.kafka import kafka_libraries

    tell("fetching Apache Kafka")
    try:
        kafka_libraries()
    except BenchError as missing:
        end_telling()
        click.echo(f"without Apache Kafka: {str(missing).splitlines()[0]}", err=True)
        return False
    return True


def _show(
    comparison: "Comparison", judged: "list[Verdict]", folder: Path | None, page: Path | None, *, as_json: bool
) -> None:
    from headrace.bench.charts import bar_lines
    from headrace.bench.figures import as_json as measurement_json
    from headrace.bench.performance_page import VERDICT_COLUMNS, verdict_row, write_page

    end_telling()
    about = circumstances(folder)
    if page is not None:
        write_page(
            page,
            command=about["command"],
            day=datetime.date.today().isoformat(),
            machine=about["machine"],
            measurements=comparison.measurements,
            verdicts=judged,
            failures=comparison.failures,
        )
    if as_json:
        found = [measurement_json(one) for one in comparison.measurements]
        rows = [dict(zip(VERDICT_COLUMNS, verdict_row(verdict), strict=True)) for verdict in judged]
        print_json({**about, "measurements": found, "verdicts": rows, "failures": comparison.failures})
        return
    columns = VERDICT_COLUMNS
    rows_shown = map(verdict_row, judged)
    print_table(columns, rows_shown, right=columns[2:5], styles={"verdict": lambda word: _STYLES[word]})
    click.echo()
    for line in bar_lines(comparison.measurements):
        click.echo(line)
    for name, reason in comparison.failures.items():
        click.echo(f"{name} does not count: {reason}", err=True)
