"""`python -m tools.bench transactions`: rate and cost of transactions."""

from typing import TYPE_CHECKING

import click

from headrace.cli.bench.loads import seconds_option
from headrace.cli.bench.options import IN_PROCESS, Run, measure, run_options, setup, show

if TYPE_CHECKING:
    from headrace.bench.brokers import MeasuredBroker
    from headrace.bench.rounds import Measured


@click.command()
@click.option(
    "--producers", type=click.IntRange(1), default=8, show_default=True, help="Producers, each on its own connection."
)
@click.option("--records", type=click.IntRange(1), default=10, show_default=True, help="Records per transaction.")
@click.option("--partitions", type=click.IntRange(1), default=4, show_default=True, help="Partitions of the topic.")
@seconds_option
@run_options(rounds=3)
def transactions(run: Run, producers: int, records: int, partitions: int, seconds: float) -> None:
    """Measure transactions: producers that repeatedly write a batch and commit it."""
    from tools.bench.transactions import TransactionLoad, TransactionRounds

    load = TransactionLoad(producers=producers, records=records, partitions=partitions, seconds=seconds)
    with setup(run) as made:

        def make(broker: "MeasuredBroker") -> "Measured":
            return TransactionRounds(broker, load, topic=made.topic_prefix)

        found = measure(made, run, load.name, make, client=IN_PROCESS)
    show(found, run)
