"""`headrace pipeline run` of a project of Spark Declarative Pipelines."""

import signal
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.console import clean
from headrace.cli.failures import Failure
from headrace.cli.pipeline_metrics import serving_metrics
from headrace.cli.pipeline_places import load_project, told_failures
from headrace.cli.pipeline_summary import InUse
from headrace.operations.amounts import count_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.pipelines.project_runner import ProjectRunner
    from headrace.spark.pipelines.projects import Project

EXTRAS = "spark,pipelines"


def run_project(
    file: Path,
    bootstrap: str,
    *,
    is_once: bool,
    master: str | None,
    full_refresh: bool,
    metrics: tuple[str, int] | None = None,
) -> None:
    from headrace.spark.pipelines.claims import new_run
    from headrace.spark.pipelines.metrics import run_page
    from headrace.spark.pipelines.project_runner import REMOTE_PREFIX, ProjectRunner
    from headrace.spark.pipelines.records import RunState

    project = load_project(file)
    _insist_on_packages()
    is_remote = master is not None and master.startswith(REMOTE_PREFIX)
    newest: list[Mapping[str, Any]] = []

    def tell_round(report: Mapping[str, Any]) -> None:
        newest[:] = [report]
        click.echo(round_line(report))

    runner = ProjectRunner(
        project=project,
        bootstrap=bootstrap,
        make_session=lambda settings: _session(project, master, settings),
        is_once=is_once,
        remote=master if is_remote else None,
        full_refresh=full_refresh,
        on_line=lambda line: click.echo(clean(line)),
        on_round=tell_round,
        on_state=lambda text: click.echo(clean(text), err=True),
    )
    _listen_to_signals(runner)
    record = new_run(project.name)
    page = serving_metrics(metrics, lambda: run_page(record, newest[0] if newest else None, is_alive=True))
    with page, told_failures(InUse):
        outcome = runner.run()
    if outcome.state is RunState.FAILED:
        raise Failure(f'project "{project.name}" failed: {outcome.message}')
    click.echo(f'project "{project.name}" {outcome.state} after {count_text(outcome.count, "run")}', err=True)


def _insist_on_packages() -> None:
    """Check that Spark is installed before the run is registered; Spark's own program runs the project."""
    for name in ("pyspark", "grpc_status"):
        try:
            import_module(name)
        except ImportError as error:
            raise Failure(f"Spark is not installed ({error}): pip install 'headrace[{EXTRAS}]'") from None


def round_line(report: Mapping[str, Any]) -> str:
    lag = report.get("lag")
    behind = f", lag {lag['records']:,}" if lag is not None else ""
    read = report["rows"]["read"]
    what = f"{read:,} records read" if read is not None else "done"
    return f"run {report['batch']}: {what}{behind}; {report['seconds']:.2f} s"


def _listen_to_signals(runner: "ProjectRunner") -> None:
    """Stop after the current run of the project on the first Ctrl-C or SIGTERM, and immediately on the second."""

    def stop(number: int, _frame: object) -> None:
        if runner.stop.is_set():
            raise KeyboardInterrupt
        runner.stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError):  # only the main thread can receive signals
            signal.signal(number, stop)


def _session(project: "Project", master: str | None, settings: Mapping[str, str]) -> "SparkSession":
    from headrace.cli.pipeline_session import LOG_FILE, started_session

    return started_session(project.name, master, settings, project.state / LOG_FILE, extras=EXTRAS)
