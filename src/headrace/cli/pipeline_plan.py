"""`headrace pipeline plan` and `deploy`: what a changed file does to state, topics and tables, before it does it."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.connection import bootstrap_option
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import EXIT_FAILED, Failure
from headrace.cli.options import confirm, json_option, yes_option
from headrace.cli.pipeline_places import chosen_bootstrap, find_target, load, pipeline_argument, told_failures
from headrace.cli.pipeline_run import detach, find_pipelines, master_option, metrics_option, stop_run
from headrace.cli.pipeline_session import spark_session

if TYPE_CHECKING:
    from headrace.spark.pipelines.change_plan import ChangePlan, KeyChange, StorageStep
    from headrace.spark.pipelines.definition import Pipeline


@click.command("plan")
@pipeline_argument
@click.option("--spark", "use_spark", is_flag=True, help="Start Spark to decide whether a new transform keeps state.")
@bootstrap_option
@json_option
@click.pass_context
def plan(ctx: click.Context, place: Path, bootstrap: str, use_spark: bool, as_json: bool) -> None:
    """Show what the next run of the file would do to state, topics and tables. Nothing is changed.

    The exit code is 1 if the run would be refused.
    """
    pipeline = load(place)
    found = find_plan(ctx, pipeline, use_spark=use_spark)
    if as_json:
        print_json(plan_json(pipeline, found))
    else:
        print_plan(pipeline, found)
    if found.is_refused:
        ctx.exit(EXIT_FAILED)


@click.command("deploy")
@pipeline_argument
@master_option
@metrics_option
@yes_option
@bootstrap_option
@click.pass_context
def deploy(ctx: click.Context, place: Path, bootstrap: str, master: str | None, metrics: str | None, yes: bool) -> None:
    """Replace the run of a pipeline by a run of the changed file.

    Shows the plan, stops the current run between two batches, and starts the new one in the background. A change that
    the checkpoint, the topics or the tables do not allow is refused before that, and the current run continues. Spark
    is started first if only it can decide.
    """
    from headrace.spark.pipelines.change_plan import StateAction

    pipeline, target = load(place), find_target(ctx, place)
    found = find_plan(ctx, pipeline, use_spark=False)
    if found.state is StateAction.UNDECIDED and not found.is_refused:
        click.echo("starting Spark to decide whether the new transform keeps state", err=True)
        found = find_plan(ctx, pipeline, use_spark=True)
    print_plan(pipeline, found)
    if found.is_refused:
        raise Failure(f'pipeline "{pipeline.name}" is not deployed, and nothing has changed')
    if not yes:
        confirm(f'deploy pipeline "{pipeline.name}"?')
    known = find_pipelines(target).get(target.name)
    if known is not None and known.holder is not None and known.is_alive(round(time.time() * 1000)):
        stop_run(target)
    mode = [*(["--master", master] if master else []), *(["--metrics", metrics] if metrics else [])]
    detach(target, mode)


def find_plan(ctx: click.Context, pipeline: "Pipeline", *, use_spark: bool) -> "ChangePlan":
    from dataclasses import replace

    from headrace.client import Admin
    from headrace.spark.pipelines.change_facts import gather_facts, keeps_state
    from headrace.spark.pipelines.change_plan import plan_change
    from headrace.spark.pipelines.topics import client_settings

    address = chosen_bootstrap(ctx, pipeline)
    with told_failures(), Admin(config=client_settings(address, pipeline)) as admin:
        facts = gather_facts(admin, pipeline)
        if use_spark:
            decided = keeps_state(lambda: spark_session(pipeline, None), pipeline, address)
            facts = replace(facts, keeps_state=decided)
        return plan_change(pipeline, facts)


def plan_json(pipeline: "Pipeline", found: "ChangePlan") -> dict[str, Any]:
    return {
        "pipeline": pipeline.name,
        "environment": pipeline.environment,
        "checkpoint": str(pipeline.checkpoint),
        "state": {"action": found.state, "text": found.state_text},
        "changes": [_change_json(each) for each in found.changes],
        "topics": [step._asdict() for step in found.topics],
        "tables": [step._asdict() for step in found.tables],
        "refused": list(found.refusals),
    }


def _change_json(each: "KeyChange") -> dict[str, Any]:
    return {**each._asdict(), "place": {"file": str(each.place.file), "line": each.place.line}}


def print_plan(pipeline: "Pipeline", found: "ChangePlan") -> None:
    click.echo(f'pipeline "{pipeline.name}": {found.state_text}')
    if found.changes:
        click.echo()
        print_table(
            ("changed key", "before", "after", "takes effect"),
            [(each.key, _short(each.before), _short(each.after), each.effect) for each in found.changes],
        )
    for title, steps in (("topic", found.topics), ("table", found.tables)):
        if steps:
            click.echo()
            print_table((title, "action", ""), [_row(step) for step in steps])
    for reason in found.refusals:
        click.echo(f"refused: {reason}")


def _row(step: "StorageStep") -> tuple[str, str, str]:
    return step.name, step.action, step.text


def _short(text: str) -> str:
    return " ".join(text.split())
