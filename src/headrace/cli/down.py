"""`headrace down`: stop the cluster that `headrace up` started."""

from pathlib import Path

import click

from headrace.cli.options import cluster_folder_option
from headrace.operations.amounts import count_text


@click.command("down")
@cluster_folder_option
def command(data_dir: Path) -> None:
    """Stop the cluster that headrace up started. Its data stays, and headrace up starts it again."""
    from headrace.operations.local_cluster import LocalCluster
    from headrace.operations.local_manager import LocalManager

    cluster = LocalCluster(data_dir)
    had_manager = LocalManager(data_dir).down()
    stopped = cluster.down()
    with_manager = " and the manager" if had_manager else ""
    click.echo(f"stopped {count_text(stopped, 'broker')}{with_manager}" if stopped else "no broker was running")
