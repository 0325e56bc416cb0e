"""`headrace pipeline run` and `stop`."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.connection import Properties, bootstrap_option, connection_options
from headrace.cli.console import clean
from headrace.cli.failures import Failure, unwritable
from headrace.cli.pipeline_log import RunLog
from headrace.cli.pipeline_metrics import serving_metrics
from headrace.cli.pipeline_places import (
    Target,
    find_target,
    load,
    meant_pipeline,
    named_argument,
    pipeline_argument,
    told_failures,
)
from headrace.cli.pipeline_session import LOG_FILE, spark_session
from headrace.cli.pipeline_summary import EXIT_STOPPED, InUse, RunSummary
from headrace.cli.termination import end_in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.pipelines.definition import Pipeline
    from headrace.spark.pipelines.records import Known
    from headrace.spark.pipelines.runner import Runner
    from headrace.spark.pipelines.supervision import Supervised

START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.2

master_option = click.option(
    "--master", metavar="URL", help="Spark master. [default: the master in the file, or local[*]]"
)
metrics_option = click.option(
    "--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics at this address; port 0 selects a free port."
)


@click.command("run")
@pipeline_argument
@click.option("--once", is_flag=True, help="Process all available records, then exit.")
@click.option("--continuous", is_flag=True, help="Run until stopped.")
@click.option(
    "--detach", "background", is_flag=True, help="Run in the background; the command returns when the run has started."
)
@master_option
@metrics_option
@click.option("--full-refresh", is_flag=True, help="Empty the tables of a Spark project and read everything again.")
@bootstrap_option
@click.pass_context
def run(
    ctx: click.Context,
    place: Path,
    bootstrap: str,
    once: bool,
    continuous: bool,
    background: bool,
    master: str | None,
    metrics: str | None,
    full_refresh: bool,
) -> None:
    """Run a pipeline, once or continuously as its trigger says, or as --once and --continuous say.

    Creates the topics that the pipeline writes to. Ctrl-C stops it between two batches. A folder with a
    spark-pipeline.yml is a project of Spark Declarative Pipelines: it is run once, or repeatedly with --continuous.
    Its files get the address of the broker in HEADRACE_BOOTSTRAP.

    With --once, the last line is a JSON object with the result. Exit codes: 0 everything is read, 1 failed, 2 the file
    or the command is wrong, 3 another run holds the pipeline, 4 stopped before the end.
    """
    from headrace.spark.pipelines.supervision import supervised

    if once and continuous:
        raise click.UsageError("--once and --continuous exclude each other")
    address = None if metrics is None else _address(metrics)
    child = supervised()
    summary = RunSummary()
    with summary.printed() if once and child is None and not background else nullcontext():
        target = find_target(ctx, place)
        summary.name = target.name
        if full_refresh and not target.is_project:
            raise click.UsageError("--full-refresh is for Spark projects: use `headrace pipeline rewind` to read again")
        if background:
            mode = ["--once"] if once else ["--continuous"] if continuous else []
            mode += [*(["--master", master] if master else []), *(["--full-refresh"] if full_refresh else [])]
            detach(target, [*mode, *(["--metrics", metrics] if metrics is not None else [])])
        elif target.is_project:
            from headrace.cli.pipeline_project import run_project

            is_once = not continuous
            run_project(
                target.file,
                target.bootstrap,
                is_once=is_once,
                master=master,
                full_refresh=full_refresh,
                metrics=address,
            )
        else:
            pipeline = load(place)
            is_once = once or (pipeline.trigger.interval_ms is None and not continuous)
            if child is not None:
                end_in_order(ctx, (signal.SIGTERM,))
                _run_here(pipeline, target.bootstrap, child, is_once=is_once, master=master)
                return
            mode = ["--once" if is_once else "--continuous", *(["--master", master] if master else [])]
            _supervise(ctx, pipeline, target, mode, address, summary)


def _address(text: str) -> tuple[str, int]:
    from headrace.model.configs.listeners import parse_address

    try:
        return parse_address(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--metrics") from None


def _supervise(
    ctx: click.Context,
    pipeline: "Pipeline",
    target: Target,
    mode: list[str],
    metrics: tuple[str, int] | None,
    summary: RunSummary,
) -> None:
    """Run the pipeline in a separate process, and restart the process if Spark dies."""
    from headrace.spark.pipelines.claims import new_run
    from headrace.spark.pipelines.records import RunState
    from headrace.spark.pipelines.supervision import Supervisor

    log, hide = RunLog(pipeline.checkpoint), pipeline.secrets.hide

    def told(line: str) -> None:
        click.echo(hide(line), err=True)
        log.add(hide(line))

    supervisor = Supervisor(
        command=_command(target, mode),
        record=new_run(pipeline.name),
        settings=target.settings,
        policy=pipeline.restart,
        on_output=lambda line: click.echo(hide(line)),
        on_error=told,
        on_state=lambda text: told(clean(text)),
    )
    summary.follow(pipeline, supervisor)
    with suppress(ValueError):  # only the main thread can receive signals
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, lambda number, _frame: supervisor.forward(number))
            ctx.call_on_close(partial(signal.signal, number, before))
    with serving_metrics(metrics, supervisor.page), told_failures(InUse):
        status, said = supervisor.run()
    if said:
        raise Failure(_failed(pipeline, said))
    is_stopped = not status and "--once" in mode and supervisor.end.get("state") != RunState.DONE
    ctx.exit(EXIT_STOPPED if is_stopped else status)


def _failed(pipeline: "Pipeline", said: str) -> str:
    return f'pipeline "{pipeline.name}" failed: {said} (more in {pipeline.checkpoint}/run.log)'


def _run_here(
    pipeline: "Pipeline",
    bootstrap: str,
    child: "Supervised",
    *,
    is_once: bool,
    master: str | None,
) -> None:
    from headrace.spark.pipelines.claims import STOPPED_EARLY
    from headrace.spark.pipelines.records import RunState
    from headrace.spark.pipelines.runner import Runner
    from headrace.spark.pipelines.spark_process import SparkDied

    def publish_batch(report: Mapping[str, Any]) -> None:
        click.echo(batch_line(report))
        child.publish_batch(report)

    runner = Runner(
        pipeline=pipeline,
        bootstrap=bootstrap,
        make_session=lambda: _interruptible(spark_session(pipeline, master), runner),
        is_once=is_once,
        on_batch=publish_batch,
        on_state=lambda text: click.echo(clean(text), err=True),
        supervised_as=child.record,
        restarts_before=child.restarts,
    )
    child.watch(runner.stop)
    try:
        with told_failures(InUse):
            outcome = runner.run()
    except SparkDied as error:
        child.die(pipeline.secrets.hide(f"{error}; its output is in {pipeline.checkpoint / LOG_FILE}"))
        return
    except click.ClickException as error:
        child.publish_end(RunState.FAILED, error.message)
        raise
    except SystemExit:  # once Spark has started, SIGTERM is a request to stop
        click.echo(f'headrace: pipeline "{pipeline.name}" was {STOPPED_EARLY}', err=True)
        raise
    child.publish_end(outcome.state, outcome.message)
    if outcome.state is RunState.FAILED:
        raise Failure(_failed(pipeline, outcome.message))
    click.echo(f'pipeline "{pipeline.name}" {outcome.state} after {_batches(outcome.count)}', err=True)


def _batches(count: int) -> str:
    return "1 batch" if count == 1 else f"{count} batches"


def _interruptible(session: "SparkSession", runner: "Runner") -> "SparkSession":
    """Stop the run between two batches on Ctrl-C and SIGTERM; Spark has installed its own handler for Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: runner.stop.set())
    return session


def batch_line(report: Mapping[str, Any]) -> str:
    """Return one line about a batch."""
    rows, times = report["rows"], report["times_ms"]
    shown = [f"{rows['read']:,} read", f"{rows['written']:,} written"]
    shown += [f"{rows[name]:,} {name}" for name in ("late", "bad", "dead", "quarantined", "drifted") if rows[name]]
    shown += [f"{count:,} not {name}" for name, count in report["failed_expectations"].items() if count]
    lag = report.get("lag")
    if lag is not None:
        shown.append(f"lag {lag['records']:,}" + (f" ({lag['seconds']:.1f} s)" if lag["records"] else ""))
    parts = ", ".join(f"{name} {took}" for name, took in times.items())
    return clean(f"batch {report['batch']}: {', '.join(shown)}; {report['seconds']:.2f} s ({parts} ms)")


def _command(target: Target, mode: list[str]) -> list[str]:
    """Run the same command as a background process."""
    run = ["pipeline", "run", str(target.file), *target.arguments, "--bootstrap", target.bootstrap, *mode]
    return [sys.executable, "-m", "headrace", *run]


def detach(target: Target, mode: list[str]) -> None:
    from headrace.spark.pipelines.checkpoints import Checkpoint

    log = Checkpoint(target.state).log_file
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("a")
        said_before = log.stat().st_size
    except OSError as error:
        raise unwritable(log, error) from None
    with output:
        process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            _command(target, mode),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _await_start(target, process, log, said_before)


def _await_start(target: Target, process: "subprocess.Popen[bytes]", log: Path, said_before: int) -> None:
    from headrace.client import Admin
    from headrace.spark.pipelines.records import UNBEGUN
    from headrace.spark.pipelines.status_topic import exists, opened

    deadline = time.monotonic() + START_SECONDS_MAX
    with Admin(config=target.settings) as admin:
        while not exists(admin):
            _insist_it_lives(process, log, said_before, deadline)
            time.sleep(LOOK_SECONDS)
    with opened(target.settings) as bulletin:
        while True:
            bulletin.follow(LOOK_SECONDS * 1000)
            known = bulletin.ledger.pipelines.get(target.name)
            holder = known.holder if known is not None else None
            if holder is not None and holder.process_id == process.pid and holder.state not in UNBEGUN:
                click.echo(f'pipeline "{target.name}" runs as process {process.pid}, run {holder.run}; log in {log}')
                return
            _insist_it_lives(process, log, said_before, deadline)


def _insist_it_lives(process: "subprocess.Popen[bytes]", log: Path, said_before: int, deadline: float) -> None:
    if process.poll() is not None:
        lines = log.read_bytes()[said_before:].decode(errors="replace").splitlines()
        said = next((line for line in reversed(lines) if line.startswith("headrace: ")), "headrace: the run ended")
        raise Failure(f"{said.removeprefix('headrace: ')} (log in {log})")
    if time.monotonic() > deadline:
        raise Failure(f"the run has not started within {START_SECONDS_MAX:g} s: see {log}")


def find_pipelines(target: Target) -> "Mapping[str, Known]":
    """Return the status of this pipeline, and of all pipelines by name."""
    from headrace.client import Admin
    from headrace.spark.pipelines.status_topic import exists, opened

    with Admin(config=target.settings) as admin:
        if not exists(admin):
            return {}
    with opened(target.settings) as bulletin:
        return bulletin.catch_up().pipelines


@click.command("stop")
@named_argument
@connection_options
@click.pass_context
def stop(ctx: click.Context, place: Path, bootstrap: str, properties: Properties) -> None:
    """Stop the run of a pipeline, on any machine, between two batches. Returns when it has stopped.

    The argument is a folder, a file or a name. The run is found by the name of the pipeline, so any copy of the folder
    works.
    """
    stop_run(find_target(ctx, place, by_name=True))


def stop_run(target: Target) -> None:
    """Ask the run of a pipeline to stop, and wait until it has."""
    from headrace.spark.pipelines.records import ENDED, stop_message
    from headrace.spark.pipelines.status_topic import opened

    found = find_pipelines(target)
    known = found.get(target.name)
    if known is None or known.holder is None or not known.is_alive(round(time.time() * 1000)):
        raise Failure(f'pipeline "{target.name}" is not running{meant_pipeline(target.name, found)}')
    run_id = known.holder.run
    deadline = time.monotonic() + STOP_SECONDS_MAX
    with opened(target.settings) as bulletin:
        bulletin.publish_and_wait(stop_message(target.name, run_id))
        while time.monotonic() < deadline:
            bulletin.follow(LOOK_SECONDS * 1000)
            seen = bulletin.ledger.pipelines.get(target.name)
            if seen is not None and seen.holder is not None and seen.holder.run != run_id:
                raise Failure(f"run {run_id} is gone, and run {seen.holder.run} has replaced it: stop that one")
            if seen is not None and seen.holder is not None and seen.holder.state in ENDED:
                click.echo(f'pipeline "{target.name}": run {run_id} {seen.holder.state}')
                return
    raise Failure(
        f"run {run_id} has not stopped within {STOP_SECONDS_MAX:g} s: its batch takes longer, or its process is gone"
    )
