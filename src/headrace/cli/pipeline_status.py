"""`headrace pipeline status`, `lag` and `checkpoint show`: state, progress and lag of pipelines."""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.connection import Properties, connection_of, connection_options
from headrace.cli.console import clean, print_json, print_table
from headrace.cli.failures import Failure, Misuse
from headrace.cli.group import CommandGroup
from headrace.cli.options import json_option
from headrace.cli.pipeline_places import (
    choice_options,
    choices,
    find_target,
    load,
    meant_pipeline,
    monitor_settings,
    named_argument,
    pipeline_argument,
    told_failures,
)
from headrace.operations.times import duration_text, time_text

if TYPE_CHECKING:
    from headrace.spark.pipelines.records import Known

BATCHES_SHOWN = 10
WATCH_SECONDS = 1.0
NOTHING = "-"


@click.command("status")
@click.argument("places", metavar="[DIR|FILE|NAME]...", nargs=-1, type=click.Path(path_type=Path))
@choice_options
@click.option("--watch", is_flag=True, help="Refresh until Ctrl-C.")
@click.option("--prometheus", is_flag=True, help="Print Prometheus text instead of a table.")
@connection_options
@json_option
@click.pass_context
def status(
    ctx: click.Context,
    bootstrap: str,
    properties: Properties,
    places: tuple[Path, ...],
    watch: bool,
    prometheus: bool,
    as_json: bool,
) -> None:
    """Show the state of pipelines as reported to the broker; of all pipelines if none is named."""
    from headrace.client import Admin
    from headrace.spark.pipelines.status_topic import exists, opened

    if not places and choices().arguments:
        raise click.UsageError("with --env or --var, the folder or the file of a pipeline is needed")
    targets = [find_target(ctx, place, by_name=True) for place in places]
    names = [target.name for target in targets]
    settings = targets[0].settings if targets else monitor_settings(connection_of(ctx))
    if any(target.settings != settings for target in targets):
        raise Misuse("these pipelines use different brokers: show them one at a time")
    with Admin(config=settings) as admin:
        if not exists(admin):
            raise Failure("no pipeline has run with this broker yet")
    with opened(settings) as bulletin:
        while True:
            found = bulletin.catch_up().pipelines
            shown = {name: found[name] for name in names or sorted(found) if name in found}
            if unknown := set(names) - set(found):
                name = min(unknown)
                raise Failure(f'pipeline "{name}" is unknown to the broker{meant_pipeline(name, found)}')
            if watch and sys.stdout.isatty():
                click.clear()
            _show(shown, as_json=as_json, prometheus=prometheus, with_batches=bool(names))
            if not watch:
                return
            time.sleep(WATCH_SECONDS)


def _show(found: "Mapping[str, Known]", *, as_json: bool, prometheus: bool, with_batches: bool) -> None:
    now_ms = round(time.time() * 1000)
    if prometheus:
        from headrace.spark.pipelines.metrics import prometheus_text

        click.echo(prometheus_text(found, now_ms), nl=False)
        return
    rows = [_status(name, known, now_ms) for name, known in found.items()]
    if as_json:
        print_json([{**row, "last_batch": found[row["pipeline"]].last_batch()} for row in rows])
        return
    print_table(
        ("pipeline", "state", "heard", "batch", "rows/s", "lag", "lag s"),
        (
            (
                row["pipeline"],
                _cell(row["state"]),
                f"{duration_text(row['heard_ms_ago'])} ago",
                *(_cell(row[name]) for name in ("batch", "rows_per_second", "lag_records", "lag_seconds")),
            )
            for row in rows
        ),
        right=("batch", "rows/s", "lag", "lag s"),
        empty="no pipelines",
    )
    for row in rows:
        if row["message"]:
            click.echo(f"{row['pipeline']}: {row['message']}")
    if with_batches:
        for row, known in zip(rows, found.values(), strict=True):
            click.echo(f"\n{row['pipeline']}: run {_cell(row['run'])} on {_cell(row['host'])}")
            if row["watermark"] is not None:
                click.echo(f"watermark: {row['watermark']}")
            if row["behind_latest"] is not None:
                behind = ", ".join(f"{of} {count:,}" for of, count in row["behind_latest"].items())
                click.echo(f"offsets behind latest: {behind}")
            _print_batches(known)
            _print_totals(row["totals"])


def _status(name: str, known: "Known", now_ms: int) -> dict[str, Any]:
    from headrace.spark.pipelines.records import ENDED

    holder, batch = known.holder, known.last_batch() or {}
    lag = batch.get("lag") or {}
    state = str(holder.state) if holder is not None else None
    if holder is not None and holder.state not in ENDED and not known.is_alive(now_ms):
        state = "lost"
    return {
        "pipeline": name,
        "state": state,
        "run": holder.run if holder is not None else None,
        "host": f"{holder.host}:{holder.process_id}" if holder is not None else None,
        "heard_ms_ago": max(now_ms - known.seen_ms, 0),
        "batch": batch.get("batch"),
        "rows_per_second": batch.get("rows_per_second"),
        "lag_records": lag.get("records"),
        "lag_seconds": lag.get("seconds"),
        "behind_latest": lag.get("behind_latest"),
        "totals": batch.get("totals"),
        "watermark": batch.get("watermark") or None,
        "message": holder.message if holder is not None else "",
    }


def _cell(value: Any) -> Any:
    """Return a value for the table: runs without a batch and Spark projects do not report all values."""
    return NOTHING if value is None else value


def _print_batches(known: "Known") -> None:
    """Print the row counts of batches, then their durations: each table fits 80 columns."""
    newest = [known.batches[number] for number in sorted(known.batches)[-BATCHES_SHOWN:]]
    counts = ("read", "written", "late", "bad", "dead", "quarantined")
    rows = (
        (
            batch["batch"],
            _clock(batch["began"]),
            *(_cell(batch["rows"][name]) for name in counts),
            _cell(batch["rows_per_second"]),
        )
        for batch in newest
    )
    right = ("batch", *counts, "rows/s")
    print_table(("batch", "began", *counts, "rows/s"), rows, right=right, empty="no batch is complete yet")
    if not newest:
        return
    parts = ("plan", "read", "process", "commit")
    columns = ("batch", "seconds", *(f"{part} ms" for part in parts))
    times = (
        (batch["batch"], batch["seconds"], *(_cell(batch["times_ms"].get(part)) for part in parts)) for batch in newest
    )
    click.echo()
    print_table(columns, times, right=columns)


def _print_totals(totals: Mapping[str, Any] | None) -> None:
    """Print the totals of the run, then those of fields and expectations by name."""
    if totals is None:
        return
    counts = ("read", "written", "late", "bad", "dead", "quarantined", "drifted")
    columns = ("run's batches", "restarts", *counts)
    cells = (totals["batches"], totals["restarts"], *(_cell(totals["rows"][name]) for name in counts))
    click.echo()
    print_table(columns, [cells], right=columns)
    for field, what in (("failed_expectations", "not met"), ("drifted_fields", "unknown fields")):
        told = ", ".join(f"{name} {count:,}" for name, count in totals[field].items() if count)
        if told:
            click.echo(f"{what}: {clean(told)}")


def _clock(moment: str) -> str:
    """Return the time of day of a timestamp in Spark's format."""
    return moment.partition("T")[2].partition(".")[0] or moment


@click.command("lag")
@named_argument
@connection_options
@json_option
@click.pass_context
def lag(ctx: click.Context, place: Path, bootstrap: str, properties: Properties, as_json: bool) -> None:
    """Show the lag of a pipeline by partition: records, and the age of the oldest unread record."""
    from headrace.cli.pipeline_run import find_pipelines
    from headrace.client import Admin
    from headrace.spark.pipelines.lag import find_lags

    target = find_target(ctx, place, by_name=True)
    found = find_pipelines(target)
    batch = found[target.name].last_batch() if target.name in found else None
    if batch is None:
        raise Failure(f'pipeline "{target.name}" has not completed a batch yet{meant_pipeline(target.name, found)}')
    with Admin(config=target.settings) as admin:
        lags = find_lags(admin, target.settings, batch["ends"])
    if as_json:
        print_json([{**each._asdict(), "records": each.records} for each in lags])
        return
    print_table(
        ("topic", "partition", "read to", "end", "records", "seconds"),
        ((each.topic, each.partition, each.read_to, each.end, each.records, _seconds(each.seconds)) for each in lags),
        right=("partition", "read to", "end", "records", "seconds"),
    )


def _seconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{seconds:.1f}"


@click.group("checkpoint", cls=CommandGroup)
def checkpoint() -> None:
    """Inspect the checkpoint of a pipeline."""


@checkpoint.command("show")
@pipeline_argument
@click.option("--batches", "count", type=click.IntRange(1), default=BATCHES_SHOWN, show_default=True)
@json_option
def show(place: Path, count: int, as_json: bool) -> None:
    """Show the newest batches of a checkpoint: plan time, end offsets, and whether they are complete."""
    from headrace.spark.pipelines.checkpoints import Checkpoint
    from headrace.spark.pipelines.identity import digest

    pipeline = load(place)
    found = Checkpoint(pipeline.checkpoint)
    with told_failures():
        note = found.note()
        batches = found.batches(note.generation, count)
    known = digest(note.identity) if note.identity is not None else None
    if as_json:
        entries = [{**batch._asdict(), "ends": list(batch.ends)} for batch in batches]
        print_json({"generation": note.generation, "definition": known, "starts": note.starts, "batches": entries})
        return
    click.echo(f"{found.folder}: generation {note.generation}, definition {known or 'not run yet'}")
    print_table(
        ("batch", "planned", "watermark", "done", "ends"),
        (
            (
                batch.number,
                time_text(batch.planned_ms),
                time_text(batch.watermark_ms) if batch.watermark_ms else NOTHING,
                "yes" if batch.is_committed else "no",
                "; ".join(_ends(batch.ends)),
            )
            for batch in batches
        ),
        right=("batch",),
        empty="no batch is planned yet",
    )


def _ends(ends: tuple[Mapping[str, Any] | None, ...]) -> Iterator[str]:
    """Yield the end offsets of the sources; a source that the query reads twice is listed once."""
    from headrace.spark.pipelines.checkpoints import offsets_of

    told = set()
    for end in ends:
        text = ", ".join(
            f"{topic} {'/'.join(str(found[number]) for number in sorted(found, key=int))}"
            for topic, found in offsets_of(end).items()
        )
        if text not in told:
            told.add(text)
            yield text
