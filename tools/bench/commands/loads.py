"""`python -m tools.bench floor|durable|metadata`: bare system calls, syncs before acknowledgements, metadata."""

from functools import partial
from typing import TYPE_CHECKING

import click

from headrace.cli.bench.loads import seconds_option
from headrace.cli.bench.options import Run, measure, measure_subjects, own_folder, refuse, run_options, setup, show

if TYPE_CHECKING:
    from headrace.bench.figures import Measurement
    from headrace.bench.rounds import Measured


@click.command()
@seconds_option
@run_options(rounds=3)
def floor(run: Run, seconds: float) -> None:
    """Measure the bare system calls of each load: a lower bound for any broker."""
    from dataclasses import replace

    from headrace.bench.loads import PRODUCE_LOADS, size_name
    from headrace.bench.replay import ReplayClient
    from tools.bench.floor import BARE, SYNC_SIZES, AppendFloorRounds, GiveFloorRounds, SyncRounds

    refuse("the bare system calls need no broker", "bootstrap", "broker_pid", "beside")
    found: list[Measurement] = []
    with own_folder(run.folder, touch=run.touch) as folder:
        client = ReplayClient(folder)
        loads: dict[str, Measured] = {}
        for load in PRODUCE_LOADS:
            rounds = AppendFloorRounds(folder, client, replace(load, seconds=seconds))
            loads[f"receive, sum, write, answer: {load.name}"] = rounds
        given_bytes = int(seconds * 1e9)
        loads["sendfile of 1 MB pieces"] = GiveFloorRounds(folder, by_sendfile=True, total_bytes=given_bytes)
        loads["send of 1 MB pieces"] = GiveFloorRounds(folder, by_sendfile=False, total_bytes=given_bytes)
        for size in SYNC_SIZES:
            loads[f"write and fdatasync of {size_name(size)}"] = SyncRounds(folder, size=size, seconds=seconds / 3)
        for name, measured in loads.items():
            found += measure_subjects(run, name, {BARE: measured}, client=client.description)
    show(found, run)


@click.command()
@seconds_option
@run_options(rounds=3)
def durable(run: Run, seconds: float) -> None:
    """Measure a sync before every acknowledgement, against one bare sync per request.

    Bare syncs are measured on the disk of --folder: with --bootstrap, choose the disk that the broker uses.
    """
    from dataclasses import replace

    from headrace.bench.machine import require_disk
    from tools.bench.durable import DURABLE_LOADS, DurableRounds

    found: list[Measurement] = []
    with setup(run) as made:
        require_disk(made.folder, "a sync")
        for number, (name, load) in enumerate(DURABLE_LOADS.items()):
            make = partial(DurableRounds, client=made.client, load=replace(load, seconds=seconds), folder=made.folder)
            found += measure(made, run, name, partial(make, topic=f"{made.topic_prefix}-{number}"))
    show(found, run)


@click.command()
@click.option("--topics", type=click.IntRange(1), default=1_000, show_default=True, help="Number of topics.")
@click.option("--partitions", type=click.IntRange(1), default=10, show_default=True, help="Partitions per topic.")
@seconds_option
@run_options(rounds=3)
def metadata(run: Run, topics: int, partitions: int, seconds: float) -> None:
    """Measure the cost of a Metadata request for all topics."""
    from tools.bench.metadata import MetadataRounds

    with setup(run) as made:
        make = partial(
            MetadataRounds, client=made.client, topic=made.topic_prefix, topics=topics, partitions=partitions
        )
        load = f"metadata, {topics:,} topics x {partitions}"
        found = measure(made, run, load, partial(make, seconds=seconds))
    show(found, run)
