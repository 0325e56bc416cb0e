"""`python -m tools.bench`: the loads of `headrace bench` and those that only this project needs."""

import click

from headrace.cli.bench.loads import consume, latency, produce
from headrace.cli.bench.shards import shards
from headrace.cli.group import RootGroup
from headrace.cli.termination import end_in_order
from tools.bench.commands.cluster import cluster
from tools.bench.commands.compaction import compaction
from tools.bench.commands.compare import compare
from tools.bench.commands.failover import failover
from tools.bench.commands.groups import groups
from tools.bench.commands.loads import durable, floor, metadata
from tools.bench.commands.options import with_kafka_option
from tools.bench.commands.pipeline import pipeline
from tools.bench.commands.replicas import replicas
from tools.bench.commands.spark import spark
from tools.bench.commands.states import connections, partitions, recovery, start
from tools.bench.commands.transactions import transactions

PROGRAM = "python -m tools.bench"


@click.group("bench", cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.pass_context
def bench(ctx: click.Context) -> None:
    """Measure a broker: rates, CPU, latency, memory and start, also beside Apache Kafka.

    Without --bootstrap a benchmark starts its own broker on temporary data. Every run is checked by end offsets and
    checksums; a run with an error has no result.
    """
    end_in_order(ctx)


for _command in (
    *(floor, produce, consume, latency, durable, metadata, groups, transactions),
    *(connections, partitions, start, recovery, compaction),
):
    bench.add_command(with_kafka_option(_command))
for _command in (shards, cluster, failover, replicas, compare, spark, pipeline):
    bench.add_command(_command)

if __name__ == "__main__":
    bench.main(prog_name=PROGRAM)
