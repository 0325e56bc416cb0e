"""`python -m tools.bench cluster`: the figures of clusters and shards, compared with their targets."""

from pathlib import Path

import click

from headrace.cli.bench.options import benchmark_failures, folder_option, own_folder, tell
from headrace.cli.options import json_option
from tools.bench.commands.options import page_option
from tools.bench.commands.report import show_comparison

PART_NAMES = ("start", "metadata", "topics", "shards", "compared")


@click.command()
@click.option("--quick", is_flag=True, help="One short round of everything: a smoke test.")
@click.option(
    "--before", metavar="COMMIT", help="Compare the CPU of one broker with this commit, which git must have here."
)
@click.option("--only", type=click.Choice(PART_NAMES), multiple=True, help="Run only this part; may be repeated.")
@page_option
@folder_option
@json_option
def cluster(
    quick: bool, before: str | None, only: tuple[str, ...], page: Path | None, folder: Path | None, as_json: bool
) -> None:
    """Measure clusters of three brokers, two shards against one, and one broker against an earlier commit.

    Takes about five minutes. A missed target is not a failure of the command.
    """
    from tools.bench.cluster import FULL, QUICK, ClusterFigures, cluster_targets
    from tools.bench.performance_page import CLUSTER
    from tools.bench.targets import verdicts

    with benchmark_failures(), own_folder(folder, touch=False) as place:
        figures = ClusterFigures(place, extent=QUICK if quick else FULL, before=before, report=tell)
        figures.run(only or PART_NAMES)
    measured = {(one.load, one.subject) for one in figures.measurements}
    targets = [each for each in cluster_targets() if not only or (each.load, each.subject) in measured]
    show_comparison(
        figures, verdicts(figures.measurements, targets), CLUSTER, folder=folder, page=page, as_json=as_json
    )
