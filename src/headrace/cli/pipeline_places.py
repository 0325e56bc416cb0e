"""What the commands for pipelines share: which pipeline is meant, and which broker it uses."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from headrace.cli.failures import Failure, Misuse

if TYPE_CHECKING:
    from headrace.spark.pipelines.definition import Pipeline

pipeline_argument = click.argument("place", metavar="[DIR|FILE]", type=click.Path(path_type=Path), default=".")


def load(place: Path) -> "Pipeline":
    """The definition; its mistakes are the end of the command."""
    from headrace.spark.pipelines.problems import DefinitionError
    from headrace.spark.pipelines.reading import read_pipeline

    try:
        return read_pipeline(place)
    except DefinitionError as error:
        raise Misuse(f"this pipeline cannot be used:\n{error}") from None


def chosen_bootstrap(ctx: click.Context, pipeline: "Pipeline") -> str:
    """The command line and the environment go before the file, and the file before the default."""
    given: str = ctx.params["bootstrap"]
    if ctx.get_parameter_source("bootstrap") is ParameterSource.DEFAULT and pipeline.bootstrap is not None:
        return pipeline.bootstrap
    return given


@contextmanager
def told_failures() -> Iterator[None]:
    """Errors of pipelines become the last line of the command."""
    from headrace.spark.pipelines.checkpoints import CheckpointError
    from headrace.spark.pipelines.problems import DefinitionError
    from headrace.spark.pipelines.running import AlreadyRunning, IncompatibleChange

    try:
        yield
    except DefinitionError as error:
        raise Misuse(f"this pipeline cannot be used:\n{error}") from None
    except (CheckpointError, AlreadyRunning, IncompatibleChange) as error:
        raise Failure(str(error)) from None
