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
@click.option(
    "--manager/--no-manager",
    "with_manager",
    default=None,
    help="Also start a manager: HTTP API and overview. [default: what the cluster had before]",
)
@cluster_folder_option
@json_option
def command(
    brokers: int | None,
    controllers: str | None,
    shards: int | None,
    with_manager: bool | None,
    data_dir: Path,
    as_json: bool,
) -> None:
    """Start a cluster on this machine, and return when it is complete.

    The brokers run in the background and listen on loopback, from port 9092 on where it is free. Run it again to start
    the brokers that have ended, or with a larger --brokers to add some. headrace down stops all of them.
    """
    from headrace.operations.local_cluster import LocalCluster
    from headrace.operations.local_manager import LocalManager

    nodes = LocalCluster(data_dir).up(
        brokers=brokers, controllers=None if controllers is None else int(controllers), shards=shards
    )
    bootstrap = ",".join(node.address for node in nodes)
    manager = LocalManager(data_dir)
    running = manager.up(bootstrap) if (manager.is_known if with_manager is None else with_manager) else None
    if as_json:
        shown = {"bootstrap": bootstrap, "nodes": [node._asdict() for node in nodes]}
        print_json(shown if running is None else {**shown, "manager": running._asdict()})
        return
    click.echo(f"bootstrap {bootstrap}")
    print_table(
        ("node", "address", "process", "data"),
        [(each.id, each.address, each.pid, each.data_dir) for each in nodes],
        right=("node", "process"),
    )
    if running is not None:
        click.echo(f"manager {running.url}")
    option = "" if str(data_dir) == str(Path(CLUSTER_FOLDER)) else f" --data-dir {data_dir}"
    click.echo(f"logs are {data_dir}/*.log; stop the cluster with headrace down{option}")
