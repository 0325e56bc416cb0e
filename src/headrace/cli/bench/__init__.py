"""`headrace bench`: what a broker costs on this machine, what the bare machine costs, and Apache Kafka beside it."""

import click

from headrace.cli.bench.compaction import compaction
from headrace.cli.bench.compare import compare
from headrace.cli.bench.groups import groups
from headrace.cli.bench.loads import consume, durable, floor, latency, metadata, produce
from headrace.cli.bench.pipeline import pipeline
from headrace.cli.bench.spark import spark
from headrace.cli.bench.states import connections, partitions, recovery, start
from headrace.cli.bench.transactions import transactions
from headrace.cli.group import CommandGroup
from headrace.cli.termination import end_in_order


@click.group("bench", cls=CommandGroup)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Measure a broker: rates, CPU, latency, memory and start, also beside Apache Kafka.

    A load starts a broker of its own, on data that vanishes, unless --bootstrap names one that runs. Results are
    checked by end offsets and checksums, and a run with one error has no figure.
    """
    end_in_order(ctx)


for _subcommand in (
    *(floor, produce, consume, latency, durable, metadata, groups, transactions),
    *(connections, partitions, start, recovery, compaction, compare, spark, pipeline),
):
    command.add_command(_subcommand)
