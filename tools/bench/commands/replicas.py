"""`python -m tools.bench replicas`: the figures of topics with three replicas, compared with their targets."""

from pathlib import Path

import click

from headrace.cli.bench.options import benchmark_failures, folder_option, own_folder, tell
from headrace.cli.options import json_option
from tools.bench.commands.options import page_option, touch_option
from tools.bench.commands.report import show_comparison

PART_NAMES = ("messages", "medium", "large", "single", "paced", "commits")


@click.command()
@click.option("--quick", is_flag=True, help="One short round of everything: a smoke test.")
@click.option("--kafka/--no-kafka", "with_kafka", default=True, help="Also measure Apache Kafka. [default: yes]")
@click.option("--before", metavar="COMMIT", help="Also measure three brokers of this commit, which git must have here.")
@click.option("--rounds", type=click.IntRange(1), help="Rounds of each load. [default: 5, with --quick 1]")
@click.option("--only", type=click.Choice(PART_NAMES), multiple=True, help="Run only this part; may be repeated.")
@page_option
@touch_option
@folder_option
@json_option
def replicas(
    quick: bool,
    with_kafka: bool,
    before: str | None,
    rounds: int | None,
    only: tuple[str, ...],
    page: Path | None,
    touch: bool | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Measure three replicas on three brokers, beside three nodes of Apache Kafka.

    Takes about ten minutes. A missed target is not a failure of the command.
    """
    from dataclasses import replace

    from tools.bench.performance_page import REPLICAS
    from tools.bench.replicas import FULL, QUICK, ReplicaFigures, replica_targets
    from tools.bench.targets import verdicts

    extent = QUICK if quick else FULL
    if rounds is not None:
        extent = replace(extent, rounds=rounds)
    with benchmark_failures(), own_folder(folder, touch=not quick if touch is None else touch) as place:
        figures = ReplicaFigures(place, extent=extent, with_kafka=with_kafka, before=before, report=tell)
        figures.run(only or PART_NAMES)
    measured = {one.load for one in figures.measurements}
    targets = [each for each in replica_targets() if not only or each.load in measured]
    show_comparison(
        figures, verdicts(figures.measurements, targets), REPLICAS, folder=folder, page=page, as_json=as_json
    )
