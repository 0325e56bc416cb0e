"""`headrace bench shards`: the rate and CPU of a machine by its number of shards."""

import os
from contextlib import ExitStack
from dataclasses import replace

import click

from headrace.cli.bench.options import Run, measure_subjects, own_folder, refuse, run_options, show, tell

SHARDS_MIN = 2


@click.command()
@click.option(
    "--shards",
    "shards_max",
    type=click.IntRange(SHARDS_MIN),
    help="Measure 1, 2, 4 and so on up to N shards. [default: the number of cores]",
    metavar="N",
)
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=3.0, show_default=True, help="Duration of a round."
)
@run_options(rounds=3)
def shards(run: Run, shards_max: int | None, seconds: float) -> None:
    """Measure producing with 1 to N shards: the same load on brokers with more and more shards, in alternating rounds.

    N generator processes share the connections. They need cores too, so that on a machine with few cores the rate
    grows less than it would with clients on other machines. Every run is checked by end offsets and checksums.
    """
    from headrace.bench.loads import PRODUCE_LOADS
    from headrace.bench.replay import ReplayClient
    from headrace.bench.shards import ShardedBroker, ShardsProduceRounds, scaling_lines, shard_counts

    refuse("shards are measured on brokers that the benchmark starts", "bootstrap", "broker_pid")
    generators = shards_max or max(SHARDS_MIN, os.cpu_count() or 1)
    found = []
    with own_folder(run.folder, touch=run.touch) as folder, ExitStack() as stack:
        client = ReplayClient(folder)
        brokers = []
        for count in shard_counts(generators):
            tell(f"starting {count} shards")
            brokers.append(stack.enter_context(ShardedBroker(folder / f"shards-{count}", count)).start())
        for number, standard in enumerate(PRODUCE_LOADS):
            load = replace(standard, seconds=seconds, connections=max(standard.connections, generators))
            subjects = {
                broker.name: ShardsProduceRounds(broker, client, load, topic=f"bench-{number}", generators=generators)
                for broker in brokers
            }
            found += measure_subjects(run, load.name, subjects, client=f"{client.description}, {generators} processes")
    show(found, run)
    if not run.as_json:
        for line in scaling_lines(found):
            click.echo(line)
