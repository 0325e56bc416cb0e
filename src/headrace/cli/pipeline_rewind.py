"""`headrace pipeline rewind` and `backfill`: read past records again, or records from before the stream."""

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.connection import bootstrap_option
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import Failure, Misuse
from headrace.cli.options import confirm, json_option, yes_option
from headrace.cli.pipeline_places import chosen_bootstrap, find_target, load, pipeline_argument, told_failures
from headrace.cli.pipeline_run import find_pipelines
from headrace.cli.pipeline_session import spark_session
from headrace.operations.amounts import count_text
from headrace.operations.times import EXAMPLES, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.spark.pipelines.checkpoints import Vector

CHUNK_RECORDS_MAX = 100_000_000


@click.command("rewind")
@pipeline_argument
@click.option("--to-earliest", is_flag=True, help="Rewind to the earliest records.")
@click.option("--to-latest", is_flag=True, help="Skip to the end of the topics.")
@click.option("--to-time", metavar="TIME", help=f"Rewind to the first records with this time or later: {EXAMPLES}.")
@click.option("--to-batch", type=click.IntRange(0), metavar="N", help="Rewind to the end of batch N.")
@click.option("--dry-run", is_flag=True, help="Show the start offsets without changing them.")
@yes_option
@bootstrap_option
@json_option
@click.pass_context
def rewind(
    ctx: click.Context,
    place: Path,
    bootstrap: str,
    to_earliest: bool,
    to_latest: bool,
    to_time: str | None,
    to_batch: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Change the offsets at which the next run starts. Refused while the pipeline runs.

    Existing output is kept; records that are read again are written again. State (windows, joins, deduplication) is
    reset.
    """
    from headrace.client import EARLIEST, LATEST, Admin
    from headrace.spark.pipelines.checkpoints import Checkpoint
    from headrace.spark.pipelines.rewind import RewindTarget, starts_at
    from headrace.spark.pipelines.rewound_letters import count_read_twice, letter_ends
    from headrace.spark.pipelines.topics import client_settings

    if sum((to_earliest, to_latest, to_time is not None, to_batch is not None)) != 1:
        raise click.UsageError("give one of --to-earliest, --to-latest, --to-time and --to-batch")
    moment = EARLIEST if to_earliest else LATEST if to_latest else None if to_time is None else _time(to_time)
    pipeline = load(place)
    address = chosen_bootstrap(ctx, pipeline)
    checkpoint = Checkpoint(pipeline.checkpoint)
    with told_failures(), checkpoint.locked():
        _refuse_running(ctx, place)
        with Admin(config=client_settings(address, pipeline)) as admin:
            starts = starts_at(admin, pipeline, RewindTarget(time_ms=moment, batch=to_batch), checkpoint)
            letters = letter_ends(admin, pipeline)
        _show_starts(starts, as_json)
        _say_read_twice(count_read_twice(client_settings(address, pipeline), pipeline, starts))
        if dry_run:
            return
        if not yes:
            confirm(f'rewind pipeline "{pipeline.name}"? Records that are read again are written again.')
        generation = checkpoint.begin_generation(starts, letters).generation
    if not as_json:
        click.echo(f'the next run of pipeline "{pipeline.name}" starts there (generation {generation})')


@click.command("backfill")
@pipeline_argument
@click.option(
    "--from",
    "begin",
    metavar="TIME",
    default="earliest",
    show_default=True,
    help=f"Start of the backfill: earliest, or {EXAMPLES}.",
)
@click.option(
    "--chunk-records", type=click.IntRange(1, CHUNK_RECORDS_MAX), default=1_000_000, show_default=True,
    help="Records per write.",
)  # fmt: skip
@click.option("--again", is_flag=True, help="Repeat a backfill that is already complete.")
@click.option("--master", metavar="URL", help="Spark master. [default: the master in the file, or local[*]]")
@bootstrap_option
@click.pass_context
def backfill(
    ctx: click.Context, place: Path, bootstrap: str, begin: str, chunk_records: int, again: bool, master: str | None
) -> None:
    """Process the records from before the start of a pipeline's stream, exactly up to its start offsets.

    If the pipeline has never run, its stream will start at the current end of the topics. The pipeline may run during
    a backfill. An interrupted backfill continues where it stopped when the command is repeated.
    """
    from headrace.client import EARLIEST, Admin
    from headrace.spark.pipelines.backfill import LOCK, BackfillRefused, plan_backfill, refuse_state, run_backfill
    from headrace.spark.pipelines.checkpoints import Checkpoint
    from headrace.spark.pipelines.sessions import own_session
    from headrace.spark.pipelines.topics import client_settings, prepare_topics

    from_ms = EARLIEST if begin == "earliest" else _time(begin)
    pipeline = load(place)
    address = chosen_bootstrap(ctx, pipeline)
    checkpoint = Checkpoint(pipeline.checkpoint)
    try:
        with told_failures(), checkpoint.locked(LOCK):
            with Admin(config=client_settings(address, pipeline)) as admin:
                prepare_topics(admin, pipeline)
                spark = own_session(spark_session(pipeline, master), pipeline)
                refuse_state(spark, pipeline, address)
                planned = plan_backfill(
                    admin, pipeline, checkpoint, from_ms=from_ms, chunk_records=chunk_records, again=again
                )
            click.echo(f"backfill {planned.name}: {planned.chunks - planned.done} of {planned.chunks} chunks left")
            run_backfill(
                spark,
                pipeline,
                checkpoint,
                planned,
                bootstrap=address,
                on_chunk=lambda now: click.echo(f"chunk {now.done} of {now.chunks} written"),
            )
    except BackfillRefused as error:
        raise Failure(str(error)) from None
    click.echo(f"backfill {planned.name} is complete: the stream continues at {_vectors(planned.ends)}")


def _time(text: str) -> int:
    try:
        return parse_time(text, now=datetime.now().astimezone())
    except ValueError as wrong:
        raise Misuse(str(wrong)) from None


def _refuse_running(ctx: click.Context, place: Path) -> None:
    target = find_target(ctx, place)
    known = find_pipelines(target).get(target.name)
    if known is not None and known.holder is not None and known.is_alive(round(time.time() * 1000)):
        raise Failure(
            f'pipeline "{target.name}" runs on {known.holder.host} as process {known.holder.process_id}: '
            "stop it first with `headrace pipeline stop`"
        )


def _say_read_twice(count: int) -> None:
    if count:
        click.echo(
            f"{count_text(count, 'dead letter')} after this start were sent back to their topics by `replay-dlq`: "
            "the next run reads both the records and the dead letters, so records that are valid now are written twice",
            err=True,
        )


def _show_starts(starts: "Mapping[str, Vector]", as_json: bool) -> None:
    if as_json:
        print_json(starts)
        return
    rows = [
        (source, topic, partition, offset)
        for source, topics in starts.items()
        for topic, partitions in topics.items()
        for partition, offset in sorted(partitions.items(), key=lambda pair: int(pair[0]))
    ]
    print_table(("source", "topic", "partition", "begins at"), rows, right=("partition", "begins at"))


def _vectors(ends: "Mapping[str, Vector]") -> str:
    return ", ".join(
        f"{topic} {'/'.join(str(found[part]) for part in sorted(found, key=int))}"
        for topics in ends.values()
        for topic, found in topics.items()
    )
