"""`python -m tools.bench pipeline`: a pipeline on Spark, run as users run it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.bench.options import benchmark_failures, folder_option, tell
from headrace.cli.options import json_option
from tools.bench.commands.options import page_option
from tools.bench.commands.report import show_comparison
from tools.bench.commands.spark import require_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.bench.figures import Measurement, Round

CLIENT = "headrace pipeline"
STEP = 0.8
"""Factor to the next lower rate after a rate that was not sustained."""
STEPS_MAX = 6
EVENTS_MAX = 20_000_000
"""Events of a steady stream, which is kept in memory."""


@dataclass(slots=True)
class Measured:
    measurements: "list[Measurement]" = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Record the failure of a part and continue with the others."""
        from headrace.bench.errors import BenchError

        try:
            yield
        except BenchError as error:
            self.failures[name] = str(error)


@click.command("pipeline")
@click.option(
    "--events", type=click.IntRange(10_000), default=1_000_000, show_default=True, help="Number of existing events."
)
@click.option(
    "--rate",
    type=click.IntRange(1_000),
    default=50_000,
    show_default=True,
    help="Events per second of the steady stream.",
)
@click.option(
    "--seconds", type=click.IntRange(20), default=60, show_default=True, help="Duration of the steady stream."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=3, show_default=True, help="Number of rounds, except for the stream."
)
@page_option
@folder_option
@json_option
def pipeline(
    events: int, rate: int, seconds: int, rounds: int, page: Path | None, folder: Path | None, as_json: bool
) -> None:
    """Measure the pipeline of the demo: start, rate, and the waits of orders in a steady stream.

    A rate that is not sustained is reported as such, and lower rates are tried until one is sustained. A round counts
    only if every order is in a window, late or dead. Takes about eight minutes.
    """
    require_spark()
    if rate * seconds > EVENTS_MAX:
        raise click.UsageError(f"--rate times --seconds is above {EVENTS_MAX:,}")
    from headrace.bench.machine import bench_folder
    from tools.bench.performance_page import PIPELINE
    from tools.bench.pipeline import targets
    from tools.bench.targets import verdicts

    found = Measured()
    with benchmark_failures(), bench_folder(folder) as place:
        folders = (place / f"round-{number}" for number in count())
        _measure_rounds(found, folders, events=events, rounds=rounds)
        with found.part("a steady stream"):
            _measure_steady(found, folders, rate=rate, seconds=seconds)
    judged = verdicts(found.measurements, targets(rate))
    show_comparison(found, judged, PIPELINE, folder=folder, page=page, as_json=as_json)


def _measure_rounds(found: Measured, folders: Iterator[Path], *, events: int, rounds: int) -> None:
    from headrace.bench.brokers import HEADRACE
    from headrace.bench.rounds import in_turns
    from tools.bench import pipeline as load

    loads: Mapping[str, Callable[[], Round]] = {
        load.VALIDATE: lambda: load.validate(next(folders)),
        load.FIRST_BATCH: lambda: load.first_batch(next(folders)),
        f"{events:,} orders": lambda: load.all_orders(next(folders), events),
    }
    for name, measured in loads.items():
        with found.part(name):
            found.measurements += in_turns(name, {HEADRACE: measured}, rounds=rounds, client=CLIENT, report=tell)


def _measure_steady(found: Measured, folders: Iterator[Path], *, rate: int, seconds: int) -> None:
    """Run one round per rate, down to the first rate that is sustained."""
    from headrace.bench.brokers import HEADRACE
    from headrace.bench.figures import Measurement
    from tools.bench import pipeline as load

    for _ in range(STEPS_MAX):
        name = load.steady_name(rate)
        tell(f"{name} for {seconds} s")
        figures = load.steady(next(folders), rate=rate, seconds=seconds)
        found.measurements.append(Measurement(load=name, subject=HEADRACE, client=CLIENT, rounds=(figures,)))
        if load.is_sustained(figures):
            return
        rate = round(rate * STEP)
