"""`python -m tools.bench connections|partitions|start|recovery`: memory, start and recovery of a broker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.bench.options import IN_PROCESS, Run, measure, measure_subjects, own_folder, run_options, setup, show
from headrace.cli.failures import Misuse

if TYPE_CHECKING:
    from headrace.bench.brokers import BrokerProcess, MeasuredBroker
    from headrace.bench.figures import Measurement
    from headrace.bench.rounds import Measured


@click.command()
@click.option("--count", type=click.IntRange(1), default=1_000, show_default=True, help="Number of connections.")
@run_options(rounds=1)
def connections(run: Run, count: int) -> None:
    """Measure the memory of idle connections."""
    from tools.bench.idle import ConnectionRounds

    def make(broker: "MeasuredBroker") -> "Measured":
        return ConnectionRounds(broker, connections=count)

    if run.bootstrap is not None and run.rounds > 1:
        raise Misuse("a process reuses its memory, so a running broker is measured once: leave out --rounds")
    with setup(run) as made:
        found = measure(made, run, f"{count:,} idle connections", make, client=IN_PROCESS)
    show(found, run)


def _in_hundreds(_ctx: click.Context, _parameter: click.Parameter, count: int) -> int:
    if count % 100:
        raise click.BadParameter(f"{count} is not a multiple of 100: topics have 100 partitions each")
    return count


@click.command()
@click.option(
    "--count",
    type=click.IntRange(100),
    default=4_000,
    show_default=True,
    callback=_in_hundreds,
    help="Number of partitions, a multiple of 100.",
)
@run_options(rounds=1)
def partitions(run: Run, count: int) -> None:
    """Measure the memory of many partitions, and a start with them."""
    from tools.bench.idle import PartitionRounds

    with _new_brokers(run) as (folder, makers):
        found = measure_subjects(
            run,
            f"{count:,} partitions",
            {name: PartitionRounds(make, folder / name, partitions=count) for name, make in makers.items()},
        )
    show(found, run)


@click.command()
@run_options(rounds=5)
def start(run: Run) -> None:
    """Measure the start of a broker on an empty folder, and of an embedded broker."""
    from headrace.bench.brokers import HEADRACE
    from tools.bench import targets
    from tools.bench.startup import StartRounds, embedded_round

    with _new_brokers(run) as (folder, makers):
        starts = {name: StartRounds(make, folder / name) for name, make in makers.items()}
        found = measure_subjects(run, targets.START, starts)
        found += measure_subjects(run, targets.EMBEDDED, {HEADRACE: partial(embedded_round, folder)})
    show(found, run)


@click.command()
@click.option(
    "--megabytes", type=click.IntRange(8), default=500, show_default=True, help="Megabytes written before the kill."
)
@run_options(rounds=3)
def recovery(run: Run, megabytes: int) -> None:
    """Measure the time until a broker serves again after kill -9, with small and large batches."""
    from dataclasses import replace

    from tools.bench import targets
    from tools.bench.recovery import LARGE_BATCHES, SMALL_BATCHES, SMALL_SHARE, RecoveryRounds

    loads = {
        targets.RECOVERY_SMALL: replace(SMALL_BATCHES, bytes_max=megabytes * 1_000_000 // SMALL_SHARE),
        targets.RECOVERY_LARGE: replace(LARGE_BATCHES, bytes_max=megabytes * 1_000_000),
    }
    found: list[Measurement] = []
    with setup(run) as made:
        for number, (name, load) in enumerate(loads.items()):

            def make(broker: "MeasuredBroker", load=load, number=number) -> "Measured":
                return RecoveryRounds(_own(broker), made.client, load, topic=f"{made.topic_prefix}-{number}")

            found += measure(made, run, name, make)
    show(found, run)


@contextmanager
def _new_brokers(run: Run) -> "Iterator[tuple[Path, dict[str, Callable[[Path], BrokerProcess]]]]":
    """Yield a folder and the constructor of each kind of broker, for loads that start new brokers in every round."""
    from headrace.bench.brokers import HEADRACE, HeadraceBroker
    from tools.bench.kafka import KAFKA_NAME, KafkaBroker

    if run.bootstrap is not None:
        raise Misuse("this is measured on new brokers: leave out --bootstrap")
    makers: dict[str, Callable[[Path], BrokerProcess]] = {HEADRACE: HeadraceBroker}
    if run.beside:
        makers[KAFKA_NAME] = KafkaBroker
    with own_folder(run.folder, touch=run.touch) as folder:
        yield folder, makers


def _own(broker: "MeasuredBroker") -> "BrokerProcess":
    from headrace.bench.brokers import BrokerProcess

    if not isinstance(broker, BrokerProcess):
        raise Misuse("this load restarts the broker, so it needs a new one: leave out --bootstrap")
    return broker
