"""`headrace bench`: rates, CPU and latency of a broker on this machine."""

import click

from headrace.cli.bench.loads import consume, latency, produce
from headrace.cli.bench.shards import shards
from headrace.cli.group import CommandGroup
from headrace.cli.termination import end_in_order


@click.group("bench", cls=CommandGroup)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Measure the rates, CPU and latency of a broker.

    Without --bootstrap a benchmark starts its own broker on temporary data. Every run is checked by end offsets and
    checksums; a run with an error has no result.
    """
    end_in_order(ctx)


for _subcommand in (produce, consume, latency, shards):
    command.add_command(_subcommand)
