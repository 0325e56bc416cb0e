"""`python -m tools.bench failover`: how long nothing is acknowledged around a fault, compared with the targets."""

from pathlib import Path

import click

from headrace.cli.bench.options import benchmark_failures, folder_option, own_folder, tell
from headrace.cli.options import json_option
from tools.bench.commands.options import page_option
from tools.bench.commands.report import show_comparison

PART_NAMES = ("kills", "controllers", "many", "followers", "groups", "pauses", "stops", "steady")


@click.command()
@click.option("--quick", is_flag=True, help="Two faults of each kind: a smoke test.")
@click.option("--only", type=click.Choice(PART_NAMES), multiple=True, help="Run only this part; may be repeated.")
@page_option
@folder_option
@json_option
def failover(quick: bool, only: tuple[str, ...], page: Path | None, folder: Path | None, as_json: bool) -> None:
    """Measure failovers of three brokers: leaders, controllers, followers and coordinators that die, hang or stop.

    Takes about half an hour. A missed target is not a failure of the command.
    """
    from tools.bench.failover import FULL, QUICK, TARGETS, FailoverFigures
    from tools.bench.performance_page import FAILOVER
    from tools.bench.targets import verdicts

    with benchmark_failures(), own_folder(folder, touch=False) as place:
        figures = FailoverFigures(place, extent=QUICK if quick else FULL, report=tell)
        figures.run(only or PART_NAMES)
    measured = {one.load for one in figures.measurements}
    targets = [each for each in TARGETS if not only or each.load in measured]
    show_comparison(
        figures, verdicts(figures.measurements, targets), FAILOVER, folder=folder, page=page, as_json=as_json
    )
