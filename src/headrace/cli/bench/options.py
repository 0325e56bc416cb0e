"""What the commands of `headrace bench` share: their options, the brokers they measure, and how figures are shown."""

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
"""Only in JSON: they say what the load cost, not what the broker did."""
IN_PROCESS = "this process"
"""The client of a load that needs no other."""
REACHED_MS_MAX = 2_000
"""How long a broker that was named may take for its first answer, before anything is prepared for it."""


class Run(NamedTuple):
    """The options every load takes."""

    bootstrap: str | None
    broker_pid: int | None
    touch: bool
    folder: Path | None
    rounds: int
    as_json: bool
    beside: "Sequence[BrokerMaker]" = ()
    """Brokers of other kinds to measure in turns; no option of these commands, a caller may add one."""


def run_options(*, rounds: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options of `Run`; the command gets them together, as its first argument."""

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
        click.option("--rounds", type=click.IntRange(1), default=rounds, show_default=True, help="How often."),
        folder_option,
        click.option("--touch", is_flag=True, help="Touch the memory first: figures of large loads settle by it."),
        click.option("--broker-pid", type=int, metavar="PID", help="The process of that broker, for CPU and memory."),
        click.option("--bootstrap", metavar="HOST:PORT", help="A running broker, instead of a new one."),
    )


def refuse(reason: str, *names: str) -> None:
    """UsageError if one of these options was given: nothing is asked for in vain."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{reason}: leave out {parameter.opts[0]}")


def folder_option(function: Decorated) -> Decorated:
    return click.option(
        "--folder",
        type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
        help="Where new brokers keep their data meanwhile. [default: the folder for temporary files]",
    )(function)


@contextmanager
def own_folder(folder: Path | None, *, touch: bool) -> Iterator[Path]:
    """One below the folder asked for, which goes at the end; with the memory touched first, if that is wanted."""
    from headrace.bench.machine import bench_folder, touched_memory

    with ExitStack() as stack:
        place = stack.enter_context(bench_folder(folder))
        if touch:
            tell("touching the memory")
            stack.enter_context(touched_memory(place))
        yield place


@contextmanager
def benchmark_failures() -> Iterator[None]:
    """What the benchmark raises becomes the message and the exit code of the command."""
    from headrace.bench.errors import BenchError

    try:
        yield
    except BenchError as error:
        raise Failure(str(error)) from error
    finally:
        end_telling()


@contextmanager
def left_out_if_it_cannot_be(what: str) -> Iterator[None]:
    """A load that this machine or this broker cannot have is told, and the others go on."""
    from headrace.bench.errors import CannotBeMeasured

    try:
        yield
    except CannotBeMeasured as reason:
        end_telling()
        click.echo(f"left out: {what}: {reason}", err=True)


@contextmanager
def setup(
    run: Run, *, compiled: bool = True, settings: Mapping[str, str] | None = None, with_pure_python: bool = False
) -> Iterator["Setup"]:
    from headrace.bench.setup import prepared
    from headrace.client import Admin
    from headrace.ports.real.processes import is_running

    if run.broker_pid is not None:
        if run.bootstrap is None:
            raise Misuse("the process of a new broker is known: give --broker-pid with --bootstrap")
        if not is_running(run.broker_pid):
            raise Misuse(f"no process has the id {run.broker_pid}: give the broker's own with --broker-pid")
    if run.bootstrap is not None:
        with Admin(run.bootstrap, timeout_ms=REACHED_MS_MAX) as admin:
            admin.cluster()
    with prepared(
        folder=run.folder,
        bootstrap=run.bootstrap,
        broker_pid=run.broker_pid,
        touch=run.touch,
        compiled=compiled,
        tell=tell,
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
    """Measure the load on all brokers of the setup, in turns."""
    subjects = {broker.name: make(broker) for broker in made.brokers}
    return measure_subjects(run, load, subjects, client=client or made.client.description)


def measure_subjects(
    run: Run, load: str, subjects: "Mapping[str, Measured]", *, client: str = IN_PROCESS
) -> "list[Measurement]":
    """The load on all of them, in turns."""
    from headrace.bench.rounds import in_turns

    return in_turns(load, subjects, rounds=run.rounds, client=client, tell=tell)


def tell(text: str) -> None:
    """What happens now, for who watches; not for a file."""
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
    """A table and bars, or JSON with every round."""
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
    click.echo(f"\nload by {clients}; medians, ± is half of what the rounds spread")


def circumstances(folder: Path | None) -> dict[str, Any]:
    """What was asked for, and of which machine."""
    import tempfile

    from headrace.bench.machine import describe

    return {"command": command_line(), "machine": describe(folder or Path(tempfile.gettempdir()))}
