"""`headrace bench produce --producers` and `consume --consumers`: steady clients for evaluation runs."""

from pathlib import Path

import click

from headrace.cli.bench.options import Run, circumstances, setup
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import EXIT_FAILED


def evaluate_producers(
    run: Run, topic: str, *, partitions: int, producers: int, interval_ms: float, seconds: float
) -> None:
    """Exits with 1 when a message was not acknowledged."""
    from headrace.bench.evaluation import make_topic, run_producers

    with setup(run) as made:
        address = made.brokers[0].address
        make_topic(address, topic, partitions=partitions)
        outcomes = run_producers(address, topic, producers=producers, interval_ms=interval_ms, seconds=seconds)
    if run.as_json:
        print_json({**circumstances(run.folder), "producers": [outcome._asdict() for outcome in outcomes]})
    else:
        columns = ("producer", "acknowledged", "failed", "p50 us", "p99 us", "longest gap ms", "first failure")
        rows = [[round(cell) if isinstance(cell, float) else cell for cell in outcome] for outcome in outcomes]
        print_table(columns, rows, right=columns[:-1])
    if any(outcome.failed for outcome in outcomes):
        click.get_current_context().exit(EXIT_FAILED)


def evaluate_consumers(run: Run, topic: str, *, consumers: int, folder: Path | None, seconds: float) -> None:
    from headrace.bench.evaluation import run_consumers

    if run.bootstrap is None or folder is None:
        raise click.UsageError("consumers read from a broker that runs and write files: give --bootstrap and --to-dir")
    outcomes = run_consumers(run.bootstrap, topic, consumers=consumers, folder=folder, seconds=seconds)
    if run.as_json:
        print_json({**circumstances(run.folder), "consumers": [outcome._asdict() for outcome in outcomes]})
    else:
        columns = ("consumer", "records", "partitions", "file")
        print_table(columns, outcomes, right=columns[:-1])
