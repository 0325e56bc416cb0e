"""`headrace bench produce --producers` and `consume --consumers`: clients at a steady rate for evaluation runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.bench.options import Run, circumstances, setup
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from headrace.bench.evaluation import ConsumerOutcome, ProducerOutcome

PRODUCER_COLUMNS = ("producer", "acknowledged", "failed", "p50 us", "p99 us", "longest gap ms", "first failure")
CONSUMER_COLUMNS = ("consumer", "records", "partitions", "file", "failed polls", "first failure")
_TEXTS = ("file", "first failure")


def evaluate_producers(
    run: Run, topic: str, *, partitions: int, producers: int, interval_ms: float, seconds: float
) -> None:
    """Run producers at a steady rate. Exits with 1 if a message was not acknowledged."""
    from headrace.bench.evaluation import make_topic, run_producers

    with setup(run) as made:
        address = made.brokers[0].address
        make_topic(address, topic, partitions=partitions)
        outcomes, is_done = run_producers(address, topic, producers=producers, interval_ms=interval_ms, seconds=seconds)
    _show("producers", PRODUCER_COLUMNS, outcomes, run)
    _exit(is_done, has_failed=any(outcome.failed or not outcome.acknowledged for outcome in outcomes))


def evaluate_consumers(run: Run, topic: str, *, consumers: int, folder: Path | None, seconds: float) -> None:
    from headrace.bench.evaluation import run_consumers

    if run.bootstrap is None or folder is None:
        raise click.UsageError("consumers read from a running broker and write files: give --bootstrap and --to-dir")
    outcomes, is_done = run_consumers(run.bootstrap, topic, consumers=consumers, folder=folder, seconds=seconds)
    _show("consumers", CONSUMER_COLUMNS, outcomes, run)
    _exit(is_done, has_failed=False)


def _show(what: str, columns: Sequence[str], outcomes: "Sequence[ProducerOutcome | ConsumerOutcome]", run: Run) -> None:
    if run.as_json:
        print_json({**circumstances(run.folder), what: [outcome._asdict() for outcome in outcomes]})
        return
    rows = [
        ["" if cell is None else f"{cell:.0f}" if isinstance(cell, float) else cell for cell in outcome]
        for outcome in outcomes
    ]
    print_table(columns, rows, right=[column for column in columns if column not in _TEXTS])


def _exit(is_done: bool, *, has_failed: bool) -> None:
    if not is_done:
        click.get_current_context().exit(EXIT_INTERRUPTED)
    if has_failed:
        click.get_current_context().exit(EXIT_FAILED)
