"""`headrace bench connections|partitions|start|recovery`: what a broker holds, and how fast it is there."""

from functools import partial
from typing import TYPE_CHECKING

import click

from headrace.cli.bench.options import Run, measure, run_options, setup, show, tell
from headrace.cli.failures import Misuse

if TYPE_CHECKING:
    from headrace.bench.brokers import BrokerProcess, MeasuredBroker
    from headrace.bench.figures import Measurement
    from headrace.bench.rounds import Measured

IN_PROCESS = "this process"


@click.command()
@click.option("--count", type=click.IntRange(1), default=1_000, show_default=True, help="How many.")
@run_options(rounds=1)
def connections(run: Run, count: int) -> None:
    """Measure the memory of idle connections."""
    from headrace.bench.idle import connections_round

    def make(broker: "MeasuredBroker") -> "Measured":
        return partial(connections_round, broker, connections=count)

    with setup(run) as made:
        found = measure(made, run, f"{count:,} idle connections", make, client=IN_PROCESS)
    show(found, run)


@click.command()
@click.option("--count", type=click.IntRange(100), default=4_000, show_default=True, help="How many, in hundreds.")
@run_options(rounds=1)
def partitions(run: Run, count: int) -> None:
    """Measure the memory of many partitions, and a start with them."""
    from headrace.bench.idle import partitions_round

    def make(broker: "MeasuredBroker") -> "Measured":
        return partial(partitions_round, _own(broker), partitions=count)

    with setup(run._replace(rounds=1)) as made:
        found = measure(made, run._replace(rounds=1), f"{count:,} partitions", make, client=IN_PROCESS)
    show(found, run)


@click.command()
@run_options(rounds=5)
def start(run: Run) -> None:
    """Measure the start of a broker on an empty folder, and of one embedded in a test."""
    from headrace.bench import targets
    from headrace.bench.brokers import HeadraceBroker
    from headrace.bench.kafka import KAFKA_NAME, KafkaBroker
    from headrace.bench.machine import bench_folder
    from headrace.bench.rounds import in_turns
    from headrace.bench.startup import StartRounds, embedded_round

    if run.bootstrap is not None:
        raise Misuse("a start is measured on a new broker: leave out --bootstrap")
    found: list[Measurement] = []
    with bench_folder(run.folder) as folder:
        starts = {targets.HEADRACE: StartRounds(HeadraceBroker, folder / "headrace")}
        if run.with_kafka:
            starts[KAFKA_NAME] = StartRounds(KafkaBroker, folder / "kafka")
        found += in_turns(targets.START, starts, rounds=run.rounds, client=IN_PROCESS, tell=tell)
        embedded = {targets.HEADRACE: partial(embedded_round, folder)}
        found += in_turns(targets.EMBEDDED, embedded, rounds=run.rounds, client=IN_PROCESS, tell=tell)
    show(found, run)


@click.command()
@click.option("--megabytes", type=click.IntRange(8), default=500, show_default=True, help="Written before the kill.")
@run_options(rounds=3)
def recovery(run: Run, megabytes: int) -> None:
    """Measure the time until a broker serves again after kill -9, with small and with large batches."""
    from dataclasses import replace

    from headrace.bench import targets
    from headrace.bench.recovery import LARGE_BATCHES, SMALL_BATCHES, SMALL_SHARE, RecoveryRounds

    loads = {
        targets.RECOVERY_SMALL: replace(SMALL_BATCHES, bytes_max=megabytes * 1_000_000 // SMALL_SHARE),
        targets.RECOVERY_LARGE: replace(LARGE_BATCHES, bytes_max=megabytes * 1_000_000),
    }
    found: list[Measurement] = []
    with setup(run) as made:
        for number, (name, load) in enumerate(loads.items()):

            def make(broker: "MeasuredBroker", load=load, number=number) -> "Measured":  # type: ignore[no-untyped-def]
                return RecoveryRounds(_own(broker), made.client, load, topic=f"{made.topics}-{number}")

            found += measure(made, run, name, make)
    show(found, run)


def _own(broker: "MeasuredBroker") -> "BrokerProcess":
    from headrace.bench.brokers import BrokerProcess

    if not isinstance(broker, BrokerProcess):
        raise Misuse("this stops and starts the broker, so it is done with a new one: leave out --bootstrap")
    return broker
