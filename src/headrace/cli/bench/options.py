"""Options, setup and output that the commands of `headrace bench` share."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from headrace.cli.console import clean, print_json, print_table
from headrace.cli.failures import Failure, Misuse
from headrace.cli.options import json_option

if TYPE_CHECKING:
    from headrace.bench.brokers import MeasuredBroker
    from headrace.bench.figures import Measurement
    from headrace.bench.rounds import Measured
    from headrace.bench.setup import BrokerMaker, Setup

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

HIDDEN_FIGURES = ("client_cpu_us_per_request",)
"""Figures of the client rather than the broker; only in JSON."""
IN_PROCESS = "this process"
"""The name of the client of a load that runs in this process."""
REACHED_MS_MAX = 2_000
"""Time limit for the first response of a broker given by --bootstrap."""


class Run(NamedTuple):
    """The options of every load."""

    bootstrap: str | None
    broker_pid: int | None
    touch: bool
    folder: Path | None
    rounds: int
    as_json: bool
    beside: "Sequence[BrokerMaker]" = ()
    """Other kinds of brokers to measure in alternating rounds. The commands here have no option for it."""


def run_options(*, rounds: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of `Run`, which the command receives together as its first argument."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def gathered(**values: Any) -> None:
            run = Run(**{name: values.pop(name) for name in Run._fields if name in values})
            with benchmark_failures():
                function(run, **values)

        decorated: Callable[..., None] = gathered
        for option in _options(rounds):
            decorated = option(decorated)
        return decorated

    return decorate


def _options(rounds: int) -> Sequence[Callable[[Callable[..., None]], Callable[..., None]]]:
    return (
        json_option,
        click.option("--rounds", type=click.IntRange(1), default=rounds, show_default=True, help="Number of rounds."),
        folder_option,
        click.option("--touch", is_flag=True, help="Touch all memory first, for steadier figures of large loads."),
        click.option(
            "--broker-pid", type=int, metavar="PID", help="Process id of that broker, to measure its CPU and memory."
        ),
        click.option("--bootstrap", metavar="HOST:PORT", help="Measure this running broker instead of a new one."),
    )


def refuse(reason: str, *names: str) -> None:
    """Raise UsageError if one of these options was given, instead of ignoring it."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{reason}: leave out {parameter.opts[0]}")


def folder_option(function: Decorated) -> Decorated:
    return click.option(
        "--folder",
        type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
        help="Folder for the data of new brokers. [default: the temporary folder]",
    )(function)


@contextmanager
def own_folder(folder: Path | None, *, touch: bool) -> Iterator[Path]:
    """Create a folder below `folder` and remove it at the end; with `touch`, touch all memory first."""
    from headrace.bench.machine import bench_folder, touched_memory

    with ExitStack() as stack:
        place = stack.enter_context(bench_folder(folder))
        if touch:
            tell("touching the memory")
            stack.enter_context(touched_memory(place))
        yield place


@contextmanager
def benchmark_failures() -> Iterator[None]:
    """Turn errors of the benchmark into a failure of the command."""
    from headrace.bench.errors import BenchError

    try:
        yield
    except BenchError as error:
        raise Failure(str(error)) from error
    finally:
        end_telling()


@contextmanager
def skipped_if_unmeasurable(what: str) -> Iterator[None]:
    """Report a load that cannot be measured here, and continue with the others."""
    from headrace.bench.errors import CannotBeMeasured

    try:
        yield
    except CannotBeMeasured as reason:
        end_telling()
        click.echo(f"skipped: {what}: {reason}", err=True)


@contextmanager
def setup(
    run: Run, *, compiled: bool = True, settings: Mapping[str, str] | None = None, with_pure_python: bool = False
) -> Iterator["Setup"]:
    from headrace.bench.setup import prepared
    from headrace.client import Admin
    from headrace.ports.real.processes import is_running

    if run.broker_pid is not None:
        if run.bootstrap is None:
            raise Misuse("--broker-pid requires --bootstrap: the process of a new broker is known")
        if not is_running(run.broker_pid):
            raise Misuse(f"no process has the id {run.broker_pid}: give the process id of the broker")
    if run.bootstrap is not None:
        with Admin(run.bootstrap, timeout_ms=REACHED_MS_MAX) as admin:
            admin.cluster()
    with prepared(
        folder=run.folder,
        bootstrap=run.bootstrap,
        broker_pid=run.broker_pid,
        touch=run.touch,
        compiled=compiled,
        report=tell,
        settings=settings,
        with_pure_python=with_pure_python,
        beside=run.beside,
    ) as made:
        yield made


def measure(
    made: "Setup",
    run: Run,
    load: str,
    make: Callable[["MeasuredBroker"], "Measured"],
    *,
    client: str = "",
) -> "list[Measurement]":
    """Measure the load on all brokers of the setup, in alternating rounds."""
    subjects = {broker.name: make(broker) for broker in made.brokers}
    return measure_subjects(run, load, subjects, client=client or made.client.description)


def measure_subjects(
    run: Run, load: str, subjects: "Mapping[str, Measured]", *, client: str = IN_PROCESS
) -> "list[Measurement]":
    """Measure the load on all subjects, in alternating rounds."""
    from headrace.bench.rounds import in_turns

    return in_turns(load, subjects, rounds=run.rounds, client=client, report=tell)


def tell(text: str) -> None:
    """Show the current step if stderr is a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{clean(text)}", err=True, nl=False)


def end_telling() -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)


def command_line() -> str:
    """Return the command as it was typed, without the path of the program."""
    program = click.get_current_context().find_root().info_name
    return f"{program} {shlex.join(sys.argv[1:])}"


def show(measurements: Sequence["Measurement"], run: Run) -> None:
    """Print a table and a bar chart, or JSON with every round."""
    from headrace.bench.charts import bar_lines
    from headrace.bench.figures import FIGURES, as_json, median_text

    end_telling()
    if run.as_json:
        print_json({**circumstances(run.folder), "measurements": [as_json(one) for one in measurements]})
        return
    present = {name for one in measurements for name in one.figures()}
    figures = [name for name in FIGURES if name in present and name not in HIDDEN_FIGURES]
    labels = [FIGURES[name].label for name in figures]
    rows = [
        (one.load, one.subject, *(median_text(one, name) if one.values(name) else "" for name in figures))
        for one in measurements
    ]
    print_table(("load", "broker", *labels), rows, right=labels)
    click.echo()
    for line in bar_lines(measurements):
        click.echo(line)
    clients = ", ".join(dict.fromkeys(one.client for one in measurements))
    click.echo(f"\nload by {clients}; medians, ± is half the spread of the rounds")


def circumstances(folder: Path | None) -> dict[str, Any]:
    """Return the command line and a description of the machine."""
    import tempfile

    from headrace.bench.machine import describe

    return {"command": command_line(), "machine": describe(folder or Path(tempfile.gettempdir()))}
