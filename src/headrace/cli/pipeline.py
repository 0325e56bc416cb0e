"""`headrace pipeline`: create, validate, test, run, monitor, rewind and backfill pipelines."""

import re
from pathlib import Path

import click

from headrace.cli.console import print_json
from headrace.cli.failures import EXIT_FAILED, Failure
from headrace.cli.options import json_option
from headrace.cli.pipeline_letters import replay_dlq
from headrace.cli.pipeline_places import PipelineGroup, pipeline_argument, read_chosen, refuse_choices
from headrace.cli.pipeline_plan import deploy, plan
from headrace.cli.pipeline_rewind import backfill, rewind
from headrace.cli.pipeline_run import run, stop
from headrace.cli.pipeline_status import checkpoint, lag, status
from headrace.cli.pipeline_test import test
from headrace.operations.amounts import count_text


@click.group("pipeline", cls=PipelineGroup)
def command() -> None:
    """Create, validate, test, run and monitor Spark pipelines defined in files."""


@command.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--declarative", is_flag=True, help="Create a project of Spark Declarative Pipelines instead.")
def init(folder: Path, declarative: bool) -> None:
    """Create a small working pipeline with fixtures in a folder."""
    from headrace.spark.pipelines.example import example_files, project_files, write_files

    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-") or "orders"
    files = project_files(folder, name) if declarative else example_files(name)
    try:
        written = write_files(folder, files)
    except FileExistsError as error:
        raise Failure(f"{error} already exists: choose another folder") from None
    except OSError as error:
        raise Failure(f"cannot write {error.filename or folder}: {error.strerror}") from None
    for path in written:
        click.echo(f"wrote {path}")
    click.echo(f"next: headrace pipeline {'run' if declarative else 'test'} {folder}")


@command.command("validate")
@pipeline_argument
@json_option
@click.pass_context
def validate(ctx: click.Context, place: Path, as_json: bool) -> None:
    """Validate the files of a pipeline without starting Spark; errors are reported with line numbers."""
    from headrace.spark.pipelines.definition_reader import find_file
    from headrace.spark.pipelines.problems import DefinitionError, Problem

    file, said, problems = find_file(place), "", tuple[Problem, ...]()
    try:
        said = _summary(file)
    except DefinitionError as error:
        problems = error.problems
    if as_json:
        found = [{"file": str(each.file), "line": each.line, "text": each.text} for each in problems]
        print_json({"file": str(file), "valid": not problems, "problems": found})
    else:
        for problem in problems:
            click.echo(str(problem), err=True)
        if said:
            click.echo(f"{file}: {said}")
    if problems:
        ctx.exit(EXIT_FAILED)


def _summary(file: Path) -> str:
    """Return a summary of a valid definition; raise DefinitionError for an invalid one."""
    from headrace.spark.pipelines.projects import is_project, read_project

    if is_project(file):
        refuse_choices(file)
        project = read_project(file)
        what = f"{count_text(len(project.files), 'file')}, {count_text(len(project.places), 'definition')}"
        return f'project "{project.name}" of Spark Declarative Pipelines is valid ({what})'
    pipeline = read_chosen(file)
    what = f"{count_text(len(pipeline.sources), 'source')}, {count_text(len(pipeline.sinks), 'sink')}"
    return f'pipeline "{pipeline.name}" is valid ({what})'


for each in (test, plan, run, deploy, status, lag, checkpoint, rewind, backfill, replay_dlq, stop):
    command.add_command(each)
