"""`headrace spark`: run a local Spark cluster, and submit scripts to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import click

from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup
from headrace.operations.amounts import count_text

FOLDER_DEFAULT = "headrace-spark"
LOCAL_MASTER = "local[*]"


@click.group("spark", cls=CommandGroup)
def command() -> None:
    """Run a local Spark cluster, and submit scripts to it."""


_folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=FOLDER_DEFAULT,
    show_default=True,
    help="Folder for the logs and process ids of the cluster.",
)


@command.command("up")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Number of workers.")
@click.option("--cores", type=click.IntRange(1), default=1, show_default=True, help="Cores per worker.")
@click.option("--memory", default="1g", show_default=True, help="Memory per worker.")
@_folder_option
def up(folder: Path, workers: int, cores: int, memory: str) -> None:
    """Start a master and workers of the installed pyspark package on the loopback interface."""
    with _telling():
        from headrace.spark import standalone

        cluster = standalone.up(folder, workers=workers, cores=cores, memory=memory)
    click.echo(f"a Spark cluster with {count_text(workers, 'worker')} is up at {cluster.master}")
    click.echo("headrace spark submit SCRIPT runs a script on it, headrace spark down stops it")


@command.command("down")
@_folder_option
def down(folder: Path) -> None:
    """Stop the cluster."""
    with _telling():
        from headrace.spark import standalone

        cluster = standalone.down(folder)
    click.echo(f"the cluster at {cluster.master} is down" if cluster else f"no cluster was running in {folder}")


@command.command(
    "submit", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, no_args_is_help=True
)
@click.option("--master", help="Spark master. [default: the running local cluster, or local[*]]")
@_folder_option
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SCRIPT [ARGUMENTS]...")
@click.pass_context
def submit(ctx: click.Context, arguments: tuple[str, ...], folder: Path, master: str | None) -> None:
    """Run a Python script on the cluster; options of spark-submit may precede it."""
    with _telling():
        from headrace.spark import standalone

        cluster = standalone.current(folder) if master is None else None
        exit_code = standalone.submit(arguments, master=master or (cluster.master if cluster else LOCAL_MASTER))
    ctx.exit(exit_code)


@command.command("archive")
def archive() -> None:
    """Create a class data sharing archive, so that Spark starts faster.

    Needed once for each version of Java and Spark. Runs a small pipeline on a temporary broker. The archive takes
    about 180 MB.
    """
    with _telling():
        from headrace.cli.spark_archive import make_archive

        file = make_archive()
    click.echo(f"{file} has {file.stat().st_size // 1_000_000} MB: Spark on this machine uses it from now on")


@contextmanager
def _telling() -> Iterator[None]:
    """Turn errors of Spark into one-line failures."""
    if find_spec("pyspark") is None:
        raise Failure("Spark is not installed: pip install 'headrace[spark]'")
    from headrace.spark.java import JavaMissing
    from headrace.spark.standalone import ClusterError

    try:
        yield
    except (ClusterError, JavaMissing) as error:
        raise Failure(str(error)) from None
