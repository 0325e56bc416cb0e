"""`python -m tools.bench compaction`: the cost of compaction, and a producer beside it."""

from typing import TYPE_CHECKING

import click

from headrace.cli.bench.options import Run, measure, measure_subjects, run_options, setup, show
from headrace.cli.failures import Misuse

if TYPE_CHECKING:
    from headrace.bench.brokers import MeasuredBroker
    from headrace.bench.figures import Measurement
    from headrace.bench.rounds import Measured


@click.command()
@click.option("--megabytes", type=click.IntRange(8), default=64, show_default=True, help="Size of the log to clean.")
@click.option("--seconds", type=click.FloatRange(1), default=5.0, show_default=True, help="Duration of a producer run.")
@run_options(rounds=3)
def compaction(run: Run, megabytes: int, seconds: float) -> None:
    """Measure compaction on one core, and a paced producer alone and beside a compaction."""
    from headrace.bench.brokers import HEADRACE, free_ports
    from headrace.bench.loads import size_name
    from headrace.bench.machine import bench_folder
    from tools.bench import targets
    from tools.bench.compaction import COMPRESSION_NAMES, BesideCompactionRounds, CleaningRounds

    if run.bootstrap is not None:
        raise Misuse("compaction is measured on a new broker: leave out --bootstrap")
    if run.beside:
        raise Misuse("a compaction of Apache Kafka cannot be started on request: leave out --kafka")
    found: list[Measurement] = []
    with bench_folder(run.folder) as folder:
        for record_bytes in (100, 1_000):
            for compression, name in COMPRESSION_NAMES.items():
                rounds = CleaningRounds(
                    folder / f"cleaning-{record_bytes}-{name}",
                    record_bytes=record_bytes,
                    total_bytes=megabytes * 1_000_000,
                    compression=compression,
                )
                load = f"cleaning, {name} records of {size_name(record_bytes)}"
                found += measure_subjects(run, load, {HEADRACE: rounds})
    metrics = ("127.0.0.1", free_ports(1)[0])
    with setup(run, settings={"headrace.metrics.listen": "{}:{}".format(*metrics)}) as made:

        def make(broker: "MeasuredBroker") -> "Measured":
            return BesideCompactionRounds(
                broker,
                made.client,
                topic=made.topic_prefix,
                total_bytes=megabytes * 1_000_000,
                seconds=seconds,
                metrics=metrics,
            )

        found += measure(made, run, targets.BESIDE_COMPACTION, make)
    show(found, run)
