"""Lookup of the pipeline that a command names, and of the broker that the pipeline uses."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from headrace.cli.connection import ClusterConnection, connection_of
from headrace.cli.failures import EXIT_USAGE, Failure, Misuse
from headrace.cli.group import CommandGroup
from headrace.model.nearest_names import meant

if TYPE_CHECKING:
    from headrace.spark.pipelines.definition import Pipeline
    from headrace.spark.pipelines.layers import Choices
    from headrace.spark.pipelines.projects import Project

SUFFIXES = (".yml", ".yaml")
"""Suffixes of pipeline files; any other argument that does not exist as a path is taken as a name."""
_ENVIRONMENT, _VARIABLES, _SECRETS = (f"{__name__}.{name}" for name in ("environment", "variables", "secrets"))
"""Keys of the command's context."""

Command = TypeVar("Command", bound=Callable[..., Any])


class PipelineGroup(CommandGroup):
    """Commands on pipelines: their errors show no secret of the file."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            secrets = ctx.meta.get(_SECRETS)
            hidden = error.message if secrets is None else secrets.hide(error.message)
            if hidden == error.message:
                raise
            raise (Misuse(hidden) if error.exit_code == EXIT_USAGE else Failure(hidden)) from None


def _keep_environment(ctx: click.Context, _parameter: click.Parameter, name: str | None) -> None:
    ctx.meta[_ENVIRONMENT] = name


def _keep_variables(ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> None:
    pairs = [text.partition("=") for text in given]
    for name, equals, _ in pairs:
        if not equals:
            raise click.BadParameter(f'"{name}" has no value: write --var {name}=VALUE')
    ctx.meta[_VARIABLES] = {name: value for name, _, value in pairs}


def choice_options(command: Command) -> Command:
    """Add the options with which the file of a pipeline is read."""
    command = click.option(
        "--var",
        metavar="NAME=VALUE",
        multiple=True,
        expose_value=False,
        callback=_keep_variables,
        help="Set a variable of the file; may be repeated.",
    )(command)
    return click.option(
        "--env",
        metavar="NAME",
        expose_value=False,
        callback=_keep_environment,
        help="Read the file with the overlay of an environment, such as pipeline.NAME.yml.",
    )(command)


def _with_choices(metavar: str) -> Callable[[Command], Command]:
    """Add the argument for a pipeline, and the options with which its file is read."""

    def add(command: Command) -> Command:
        return click.argument("place", metavar=metavar, type=click.Path(path_type=Path), default=".")(
            choice_options(command)
        )

    return add


pipeline_argument = _with_choices("[DIR|FILE]")
named_argument = _with_choices("[DIR|FILE|NAME]")


def choices() -> "Choices":
    """Return the environment and variables that the command line gives."""
    from headrace.spark.pipelines.layers import Choices

    meta = click.get_current_context().meta
    return Choices(meta.get(_ENVIRONMENT), meta.get(_VARIABLES) or {})


def read_chosen(file: Path) -> "Pipeline":
    """Read a definition with these choices; from here on, errors of the command show none of its secrets."""
    from headrace.spark.pipelines.definition_reader import read_pipeline

    pipeline = read_pipeline(file, choices())
    click.get_current_context().meta[_SECRETS] = pipeline.secrets
    return pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A pipeline or Spark project, as far as running and monitoring need to know it."""

    name: str
    bootstrap: str
    settings: Mapping[str, Any]
    """Client configs for Headrace's own clients."""
    file: Path
    state: Path
    """The folder in which runs keep their shared state."""
    is_project: bool = False
    arguments: tuple[str, ...] = ()
    """The options with which another command reads the file in the same way."""


def load(place: Path) -> "Pipeline":
    """Return the definition; an invalid one fails the command."""
    from headrace.spark.pipelines.definition_reader import find_file
    from headrace.spark.pipelines.problems import DefinitionError
    from headrace.spark.pipelines.projects import is_project

    file = find_file(place)
    if is_project(file):
        raise Misuse(
            f"{file} is a project of Spark Declarative Pipelines: it can be validated, run, monitored and stopped; "
            "`headrace pipeline run --full-refresh` reads everything again"
        )
    try:
        return read_chosen(file)
    except DefinitionError as error:
        raise Misuse(f"this pipeline is invalid:\n{error}") from None


def load_project(file: Path) -> "Project":
    from headrace.spark.pipelines.problems import DefinitionError
    from headrace.spark.pipelines.projects import read_project

    try:
        return read_project(file)
    except DefinitionError as error:
        raise Misuse(f"this project is invalid:\n{error}") from None


def find_target(ctx: click.Context, place: Path, *, by_name: bool = False) -> Target:
    """Find a pipeline by its folder or file or, if `by_name` allows it, by its name, for users without its files."""
    from headrace.spark.pipelines.definition_reader import find_file
    from headrace.spark.pipelines.projects import is_project
    from headrace.spark.pipelines.topics import client_settings

    file = find_file(place)
    if by_name and not file.exists() and len(place.parts) == 1 and place.suffix not in SUFFIXES:
        if choices().arguments:
            raise Misuse(f'"{place}" is the name of a pipeline: --env and --var are for its folder or file')
        given = _connection(ctx)
        return Target(
            name=str(place), bootstrap=given.bootstrap, settings=monitor_settings(given), file=place, state=place
        )
    if is_project(file):
        refuse_choices(file)
        project = load_project(file)
        given = _connection(ctx)
        return Target(
            name=project.name,
            bootstrap=given.bootstrap,
            settings=monitor_settings(given),
            file=file,
            state=project.state,
            is_project=True,
        )
    pipeline = load(file)
    chosen = _connection(ctx, default=pipeline.bootstrap)
    return Target(
        name=pipeline.name,
        bootstrap=chosen.bootstrap,
        settings={**client_settings(chosen.bootstrap, pipeline), **monitor_settings(chosen)},
        file=file,
        state=pipeline.checkpoint,
        arguments=tuple(choices().arguments),
    )


def _connection(ctx: click.Context, *, default: str | None = None) -> ClusterConnection:
    """Return the connection of a command; one that runs Spark takes an address alone, its security is in the file."""
    if "properties" in ctx.params:
        return connection_of(ctx, default=default)
    is_given = ctx.get_parameter_source("bootstrap") is not ParameterSource.DEFAULT
    address: str = ctx.params["bootstrap"] if is_given or default is None else default
    return ClusterConnection(address, {}, is_chosen=is_given)


def monitor_settings(connection: ClusterConnection) -> dict[str, Any]:
    """Return the settings of a client that reads what runs have published, by Kafka's names."""
    dotted = {name.replace("_", "."): value for name, value in connection.properties.items()}
    return {"bootstrap.servers": connection.bootstrap, **dotted}


def refuse_choices(file: Path) -> None:
    """Refuse choices for a project of Spark: its files have neither overlays nor variables."""
    if choices().arguments:
        raise Misuse(f"{file} is a project of Spark Declarative Pipelines: --env and --var are for a pipeline.yml")


def chosen_bootstrap(ctx: click.Context, pipeline: "Pipeline") -> str:
    """Return the broker address: from the command line or environment, else from the file, else the default."""
    return _connection(ctx, default=pipeline.bootstrap).bootstrap


def meant_pipeline(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown pipeline: a suggestion, if a known name is similar."""
    return "" if name in known else meant(name, known)


@contextmanager
def told_failures(in_use: type[Failure] = Failure) -> Iterator[None]:
    """Turn errors of pipelines into failures of the command; `in_use` reports that another run holds one."""
    from headrace.spark.pipelines.checkpoints import CheckpointError, CheckpointInUse
    from headrace.spark.pipelines.claims import AlreadyRunning
    from headrace.spark.pipelines.problems import DefinitionError
    from headrace.spark.pipelines.runner import IncompatibleChange
    from headrace.spark.versions import UnsupportedSpark

    try:
        yield
    except DefinitionError as error:
        raise Misuse(f"this pipeline is invalid:\n{error}") from None
    except (AlreadyRunning, CheckpointInUse) as error:
        raise in_use(str(error)) from None
    except (CheckpointError, IncompatibleChange, UnsupportedSpark) as error:
        raise Failure(str(error)) from None
