"""`headrace up`: start a cluster on this machine, in the background."""

from pathlib import Path

import click

from headrace.cli.console import print_json, print_table
from headrace.cli.options import CLUSTER_FOLDER, cluster_folder_option, json_option

BROKERS_MAX = 100


@click.command("up")
@click.option(
    "--brokers", type=click.IntRange(1, BROKERS_MAX), help="Number of brokers. [default: 3, or what the cluster has]"
)
@click.option(
    "--controllers",
    type=click.Choice(["1", "3", "5"]),
    help="Number of voters of the metadata quorum. [default: 3, or 1 if there are fewer brokers]",
)
@click.option("--shards", type=click.IntRange(1), help="Number of shards of each broker. [default: 1]")
@cluster_folder_option
@json_option
def command(brokers: int | None, controllers: str | None, shards: int | None, data_dir: Path, as_json: bool) -> None:
    """Start a cluster on this machine, and return when it is complete.

    The brokers run in the background and listen on loopback, from port 9092 on where it is free. Run it again to start
    the brokers that have ended, or with a larger --brokers to add some. headrace down stops all of them.
    """
    from headrace.operations.local_cluster import LocalCluster

    nodes = LocalCluster(data_dir).up(
        brokers=brokers, controllers=None if controllers is None else int(controllers), shards=shards
    )
    bootstrap = ",".join(node.address for node in nodes)
    if as_json:
        print_json({"bootstrap": bootstrap, "nodes": [node._asdict() for node in nodes]})
        return
    click.echo(f"bootstrap {bootstrap}")
    print_table(
        ("node", "address", "process", "data"),
        [(each.id, each.address, each.pid, each.data_dir) for each in nodes],
        right=("node", "process"),
    )
    option = "" if str(data_dir) == str(Path(CLUSTER_FOLDER)) else f" --data-dir {data_dir}"
    click.echo(f"logs are {data_dir}/broker-*.log; stop the cluster with headrace down{option}")
