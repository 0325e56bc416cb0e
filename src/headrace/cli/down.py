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

    stopped = LocalCluster(data_dir).down()
    click.echo(f"stopped {count_text(stopped, 'broker')}" if stopped else "no broker was running")
