"""Lookup of the pipeline that a command names, and of the broker that the pipeline uses."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from headrace.cli.failures import Failure, Misuse
from headrace.model.nearest_names import meant

if TYPE_CHECKING:
    from headrace.spark.pipelines.definition import Pipeline
    from headrace.spark.pipelines.projects import Project

SUFFIXES = (".yml", ".yaml")
"""Suffixes of pipeline files; any other argument that does not exist as a path is taken as a name."""
pipeline_argument = click.argument("place", metavar="[DIR|FILE]", type=click.Path(path_type=Path), default=".")
named_argument = click.argument("place", metavar="[DIR|FILE|NAME]", type=click.Path(path_type=Path), default=".")


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


def load(place: Path) -> "Pipeline":
    """Return the definition; an invalid one fails the command."""
    from headrace.spark.pipelines.definition_reader import find_file, read_pipeline
    from headrace.spark.pipelines.problems import DefinitionError
    from headrace.spark.pipelines.projects import is_project

    file = find_file(place)
    if is_project(file):
        raise Misuse(
            f"{file} is a project of Spark Declarative Pipelines: it can be validated, run, monitored and stopped; "
            "`headrace pipeline run --full-refresh` reads everything again"
        )
    try:
        return read_pipeline(file)
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

    given: str = ctx.params["bootstrap"]
    file = find_file(place)
    if by_name and not file.exists() and len(place.parts) == 1 and place.suffix not in SUFFIXES:
        return Target(name=str(place), bootstrap=given, settings=client_settings(given), file=place, state=place)
    if is_project(file):
        project = load_project(file)
        return Target(
            name=project.name,
            bootstrap=given,
            settings=client_settings(given),
            file=file,
            state=project.state,
            is_project=True,
        )
    pipeline = load(file)
    address = chosen_bootstrap(ctx, pipeline)
    return Target(
        name=pipeline.name,
        bootstrap=address,
        settings=client_settings(address, pipeline),
        file=file,
        state=pipeline.checkpoint,
    )


def chosen_bootstrap(ctx: click.Context, pipeline: "Pipeline") -> str:
    """Return the broker address: from the command line or environment, else from the file, else the default."""
    given: str = ctx.params["bootstrap"]
    if ctx.get_parameter_source("bootstrap") is ParameterSource.DEFAULT and pipeline.bootstrap is not None:
        return pipeline.bootstrap
    return given


def meant_pipeline(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown pipeline: a suggestion, if a known name is similar."""
    return "" if name in known else meant(name, known)


@contextmanager
def told_failures() -> Iterator[None]:
    """Turn errors of pipelines into failures of the command."""
    from headrace.spark.pipelines.checkpoints import CheckpointError
    from headrace.spark.pipelines.claims import AlreadyRunning
    from headrace.spark.pipelines.problems import DefinitionError
    from headrace.spark.pipelines.runner import IncompatibleChange
    from headrace.spark.versions import UnsupportedSpark

    try:
        yield
    except DefinitionError as error:
        raise Misuse(f"this pipeline is invalid:\n{error}") from None
    except (CheckpointError, AlreadyRunning, IncompatibleChange, UnsupportedSpark) as error:
        raise Failure(str(error)) from None
