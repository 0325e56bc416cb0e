"""`headrace pipeline test`: a pipeline on the records of its fixtures, with a broker of its own, and what came out."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.console import count_text
from headrace.cli.failures import EXIT_FAILED, Failure
from headrace.cli.pipeline_places import load, pipeline_argument, told_failures
from headrace.cli.pipeline_session import LOG_FILE, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.pipelines.definition import Pipeline, Sink

DIFFERENCES_SHOWN = 20


@click.command("test")
@pipeline_argument
@click.pass_context
def test(ctx: click.Context, place: Path) -> None:
    """Run a pipeline on the records in fixtures/ and compare what comes out with expected/.

    `fixtures/TOPIC.jsonl` has the records of a topic, one JSON object per line with key, value, headers, timestamp and
    partition, all optional. `expected/TOPIC.jsonl` has what must be in a topic at the end, in any order; for a parquet
    or delta sink it is called like the last part of its path, and the value is the row. Nothing outside of a temporary
    folder is read or written: the broker is one of its own.
    """
    pipeline = load(place)
    click.echo("starting Spark", err=True)
    with told_failures(), tempfile.TemporaryDirectory(prefix="headrace-test-") as folder:
        found = compare(pipeline, lambda: spark_session(pipeline, None, Path(folder, LOG_FILE)))
    for name, lines in found.items():
        click.echo(f"{name}: {'as expected' if not lines else count_text(len(lines), 'difference')}")
        for line in lines[:DIFFERENCES_SHOWN]:
            click.echo(f"  {line}")
    if any(found.values()):
        ctx.exit(EXIT_FAILED)


def compare(pipeline: "Pipeline", make_session: Any) -> dict[str, list[str]]:
    """The differences by what is expected of which topic or table."""
    from headrace.spark.pipelines.example import EXPECTED_FOLDER, FIXTURES_FOLDER
    from headrace.spark.pipelines.fixtures import differences, fixture_of, read_lines
    from headrace.spark.pipelines.records import State
    from headrace.spark.pipelines.running import Runner
    from headrace.testing import EmbeddedBroker

    fixtures = {file.stem: read_lines(file) for file in sorted((pipeline.folder / FIXTURES_FOLDER).glob("*.jsonl"))}
    expected = {file.stem: read_lines(file) for file in sorted((pipeline.folder / EXPECTED_FOLDER).glob("*.jsonl"))}
    if not fixtures or not expected:
        raise Failure(
            f"{pipeline.folder} has no {FIXTURES_FOLDER}/*.jsonl or no {EXPECTED_FOLDER}/*.jsonl: "
            "`headrace pipeline init` shows how they look"
        )
    with tempfile.TemporaryDirectory(prefix="headrace-test-") as folder, EmbeddedBroker() as broker:
        tried = _moved(pipeline, Path(folder))
        for topic, entries in fixtures.items():
            broker.create_topic(topic)
            _send(broker.bootstrap_servers, topic, [fixture_of(entry) for entry in entries])
        runner = Runner(pipeline=tried, bootstrap=broker.bootstrap_servers, make_session=make_session, is_once=True)
        outcome = runner.run()
        if outcome.state is not State.DONE:
            raise Failure(f'pipeline "{pipeline.name}" failed on its fixtures: {outcome.message}')
        tables = _tables(tried, make_session())
        found = {}
        for name, entries in expected.items():
            actual = tables.get(name) if name in tables else _read(broker.bootstrap_servers, name)
            found[name] = differences(entries, actual or [])
        return found


def _moved(pipeline: "Pipeline", folder: Path) -> "Pipeline":
    """The same pipeline with all it writes to files in another folder, in one attempt."""
    from headrace.spark.pipelines.definition import DeltaSink, ParquetSink, Restart

    def moved(sink: "Sink") -> "Sink":
        return (
            replace(sink, path=str(folder / Path(sink.path).name))
            if isinstance(sink, ParquetSink | DeltaSink)
            else sink
        )

    return replace(
        pipeline,
        checkpoint=folder / "checkpoint",
        sinks=tuple(map(moved, pipeline.sinks)),
        restart=Restart(attempts=0),
    )


def _send(bootstrap: str, topic: str, records: list[Any]) -> None:
    from headrace.client import Producer

    with Producer(bootstrap) as producer:
        for record in records:
            producer.send(
                topic,
                record.value,
                key=record.key,
                headers=record.headers,
                partition=record.partition,
                timestamp=record.timestamp_ms,
            )


def _read(bootstrap: str, topic: str) -> list[Mapping[str, Any]]:
    """All committed records of a topic; of one that is not there, none."""
    from headrace.client.blocking.whole_topics import read_topic
    from headrace.spark.pipelines.fixtures import shown

    records = read_topic({"bootstrap.servers": bootstrap}, topic)
    return [shown(each.key, each.value, each.headers) for each in records]


def _tables(pipeline: "Pipeline", spark: "SparkSession") -> dict[str, list[Mapping[str, Any]]]:
    """The rows of the sinks that are tables, by the last part of their paths."""
    from headrace.spark.pipelines.definition import DeltaSink, ParquetSink

    spark = spark.newSession()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for sink in pipeline.sinks:
        path = Path(getattr(sink, "path", ""))
        if isinstance(sink, ParquetSink):
            files = [str(path)] if path.exists() else []
        elif isinstance(sink, DeltaSink):
            from deltalake import DeltaTable

            is_table = DeltaTable.is_deltatable(str(path))
            files = [str(path / file) for file in _files(DeltaTable(str(path)))] if is_table else []
        else:
            continue
        found[path.name] = [{"value": row} for row in _rows(spark, path, files)]
    return found


def _rows(spark: "SparkSession", path: Path, files: list[str]) -> list[Any]:
    from pyspark.sql import functions as sql

    if not files:
        return []
    rows = spark.read.option("basePath", str(path)).parquet(*files)
    return [json.loads(row[0]) for row in rows.select(sql.to_json(sql.struct("*"))).collect()]


def _files(table: Any) -> list[str]:
    return [str(uri).rpartition(f"{table.table_uri.rstrip('/')}/")[2] for uri in table.file_uris()]
