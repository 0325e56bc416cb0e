"""`headrace pipeline run` and `stop`."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.console import clean
from headrace.cli.failures import Failure
from headrace.cli.options import bootstrap_option
from headrace.cli.pipeline_places import chosen_bootstrap, load, pipeline_argument, told_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.pipelines.definition import Pipeline
    from headrace.spark.pipelines.records import Known
    from headrace.spark.pipelines.running import Runner

START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.2


@click.command("run")
@pipeline_argument
@click.option("--once", is_flag=True, help="Read all there is, then end.")
@click.option("--continuous", is_flag=True, help="Go on until it is stopped.")
@click.option("--detach", is_flag=True, help="Return when it runs; it goes on in the background.")
@click.option("--master", metavar="URL", help="Where Spark runs it. [default: what the file says, or local[*]]")
@bootstrap_option
@click.pass_context
def run(
    ctx: click.Context, place: Path, bootstrap: str, once: bool, continuous: bool, detach: bool, master: str | None
) -> None:
    """Run a pipeline; whether once or for ever says its trigger, if not you.

    Topics it writes to are made if they are not there. Ctrl-C stops it between two batches.
    """
    if once and continuous:
        raise click.UsageError("--once and --continuous contradict each other")
    pipeline = load(place)
    address = chosen_bootstrap(ctx, pipeline)
    is_once = once or (pipeline.trigger.interval_ms is None and not continuous)
    if detach:
        _detach(pipeline, address, is_once=is_once, master=master)
    else:
        _run_here(pipeline, address, is_once=is_once, master=master)


def _run_here(pipeline: "Pipeline", bootstrap: str, *, is_once: bool, master: str | None) -> None:
    from headrace.spark.pipelines.records import State
    from headrace.spark.pipelines.running import Runner

    runner = Runner(
        pipeline=pipeline,
        bootstrap=bootstrap,
        make_session=lambda: _interruptible(spark_session(pipeline, master), runner),
        is_once=is_once,
        on_batch=lambda report: click.echo(batch_line(report)),
        on_state=lambda text: click.echo(clean(text), err=True),
    )
    with told_failures():
        outcome = runner.run()
    if outcome.state is State.FAILED:
        raise Failure(f'pipeline "{pipeline.name}" failed: {outcome.message} (more in {pipeline.checkpoint}/run.log)')
    click.echo(f'pipeline "{pipeline.name}" {outcome.state} after {len(outcome.batches)} batches', err=True)


def _interruptible(session: "SparkSession", runner: "Runner") -> "SparkSession":
    """Ctrl-C and a plain kill end the run between two batches; Spark has set a handler of its own for the first."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: runner.stop.set())
    return session


def spark_session(pipeline: "Pipeline", master: str | None) -> "SparkSession":
    """As the file asks for it."""
    try:
        from headrace.spark import session
        from headrace.spark.java import JavaMissing

        settings = {"spark.log.level": "OFF", "spark.ui.enabled": "false", **pipeline.spark.settings}
        return session(f"headrace-{pipeline.name}", master=master or pipeline.spark.master, conf=settings)
    except ImportError as error:
        raise Failure(f"Spark is not installed ({error}): pip install 'headrace[spark]'") from None
    except JavaMissing as error:
        raise Failure(str(error)) from None


def batch_line(report: Mapping[str, Any]) -> str:
    """What one batch did, in one line."""
    rows, times = report["rows"], report["times_ms"]
    shown = [f"{rows['read']:,} read", f"{rows['written']:,} written"]
    shown += [f"{rows[name]:,} {name}" for name in ("late", "bad", "dead", "quarantined", "drifted") if rows[name]]
    shown += [f"{count:,} not {name}" for name, count in report["failed_expectations"].items() if count]
    lag = report.get("lag")
    if lag is not None:
        shown.append(f"lag {lag['records']:,}" + (f" ({lag['seconds']:.1f} s)" if lag["records"] else ""))
    parts = ", ".join(f"{name} {took}" for name, took in times.items())
    return clean(f"batch {report['batch']}: {', '.join(shown)}; {report['seconds']:.2f} s ({parts} ms)")


def _detach(pipeline: "Pipeline", bootstrap: str, *, is_once: bool, master: str | None) -> None:
    from headrace.spark.pipelines.checkpoints import Checkpoint

    arguments = ["pipeline", "run", str(pipeline.file), "--bootstrap", bootstrap]
    arguments += ["--once" if is_once else "--continuous", *(["--master", master] if master else [])]
    log = Checkpoint(pipeline.checkpoint).log_file
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("a")
    except OSError as error:
        raise Failure(f"{log} cannot be written: {error.strerror}") from None
    with output:
        process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            [sys.executable, "-m", "headrace", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _await_start(pipeline, bootstrap, process, log)


def _await_start(pipeline: "Pipeline", bootstrap: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    from headrace.spark.pipelines.records import State

    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        known = find_known(pipeline, bootstrap)
        holder = known.holder if known is not None else None
        if holder is not None and holder.process_id == process.pid and holder.state is not State.STARTING:
            click.echo(f'pipeline "{pipeline.name}" runs as process {process.pid}, run {holder.run}; log in {log}')
            return
        if process.poll() is not None:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            said = next((line for line in reversed(lines) if line.startswith("headrace: ")), "headrace: it ended")
            raise Failure(f"{said.removeprefix('headrace: ')} (log in {log})")
        time.sleep(LOOK_SECONDS)
    raise Failure(f"it has not begun in {START_SECONDS_MAX:g} s: look into {log}")


def find_known(pipeline: "Pipeline", bootstrap: str) -> "Known | None":
    """What is told of the pipeline; None if nothing is."""
    from headrace.client import Admin
    from headrace.spark.pipelines.bulletin import exists, opened
    from headrace.spark.pipelines.topics import client_settings

    settings = client_settings(bootstrap, pipeline)
    with Admin(config=settings) as admin:
        if not exists(admin):
            return None
    with opened(settings) as bulletin:
        return bulletin.catch_up().pipelines.get(pipeline.name)


@click.command("stop")
@pipeline_argument
@bootstrap_option
@click.pass_context
def stop(ctx: click.Context, place: Path, bootstrap: str) -> None:
    """Stop the run of a pipeline, wherever it is, between two batches; returns when it has stopped."""
    from headrace.spark.pipelines.bulletin import opened
    from headrace.spark.pipelines.records import stop_message
    from headrace.spark.pipelines.topics import client_settings

    pipeline = load(place)
    address = chosen_bootstrap(ctx, pipeline)
    known = find_known(pipeline, address)
    if known is None or known.holder is None or not known.is_alive(round(time.time() * 1000)):
        raise Failure(f'pipeline "{pipeline.name}" is not running')
    run_id = known.holder.run
    deadline = time.monotonic() + STOP_SECONDS_MAX
    with opened(client_settings(address, pipeline)) as bulletin:
        bulletin.tell_now(stop_message(pipeline.name, run_id))
        while time.monotonic() < deadline:
            bulletin.follow(LOOK_SECONDS * 1000)
            seen = bulletin.ledger.pipelines.get(pipeline.name)
            if seen is not None and seen.holder is not None and not seen.is_alive(round(time.time() * 1000)):
                click.echo(f'pipeline "{pipeline.name}": run {run_id} {seen.holder.state}')
                return
    raise Failure(f"run {run_id} has not stopped in {STOP_SECONDS_MAX:g} s: its batch takes longer, or it is gone")
