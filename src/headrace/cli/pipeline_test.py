"""`headrace pipeline test`: run a pipeline on its fixtures with a temporary broker and compare the output."""

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.failures import EXIT_FAILED, Failure, unwritable
from headrace.cli.pipeline_places import load, pipeline_argument, told_failures
from headrace.cli.pipeline_session import LOG_FILE, spark_session
from headrace.model.nearest_names import guess
from headrace.operations.amounts import count_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.pipelines.definition import DatabaseSinkDefinition, IcebergSinkDefinition, Pipeline, Sink

DATABASE_FILE = "tables.sqlite"
"""Takes the place of all databases in a test."""
CATALOG_FILE = "catalog.sqlite"
"""Takes the place of all catalogs of Iceberg in a test."""
DIFFERENCES_SHOWN = 20


@click.command("test")
@pipeline_argument
@click.option("--update", is_flag=True, help="Write the output to expected/ instead of comparing it.")
@click.pass_context
def test(ctx: click.Context, place: Path, update: bool) -> None:
    """Run a pipeline on the records in fixtures/ and compare its output with expected/.

    `fixtures/TOPIC.jsonl` holds the records of a topic: one JSON object per line with key, value, headers, timestamp
    and partition, all optional. `expected/TOPIC.jsonl` holds the expected records of a topic in any order. The file of
    a parquet or delta sink is named after the last part of its path, and the value is the row. All sinks are compared,
    including dead letters and quarantine. The test uses a temporary broker and a temporary folder; only --update
    writes to the folder of the pipeline.
    """
    pipeline = load(place)
    click.echo("starting Spark", err=True)
    with told_failures(), tempfile.TemporaryDirectory(prefix="headrace-test-") as folder:
        log = Path(folder, LOG_FILE)
        if update:
            for file, count in write_expected(pipeline, lambda: spark_session(pipeline, None, log)):
                click.echo(f"wrote {file} ({count_text(count, 'record')})")
            return
        found = compare(pipeline, lambda: spark_session(pipeline, None, log))
    for name, lines in found.items():
        click.echo(f"{name}: {'as expected' if not lines else count_text(len(lines), 'difference')}")
        for line in lines[:DIFFERENCES_SHOWN]:
            click.echo(f"  {line}")
    if any(found.values()):
        ctx.exit(EXIT_FAILED)


def compare(pipeline: "Pipeline", make_session: Any) -> dict[str, list[str]]:
    """Return the differences by topic or table for every sink; a sink without a file must have no output."""
    from headrace.spark.pipelines.example import EXPECTED_FOLDER
    from headrace.spark.pipelines.fixtures import differences, read_lines

    folder = pipeline.folder / EXPECTED_FOLDER
    expected = {file.stem: read_lines(file) for file in sorted(folder.glob("*.jsonl"))}
    fixtures = read_fixtures(pipeline)
    if not expected:
        raise Failure(
            f"{folder} has no *.jsonl, so there is nothing to compare: `headrace pipeline test --update` writes "
            "the output for you to review"
        )
    _refuse_unknown(pipeline, folder, expected)
    actual = run_on_fixtures(pipeline, make_session, fixtures, expected)
    found = {}
    for name in sorted(actual):
        found[name] = differences(expected.get(name, []), actual[name])
        if name not in expected and found[name]:
            found[name].insert(0, f"{folder / name}.jsonl is missing: write it, or let --update write it")
    return found


def write_expected(pipeline: "Pipeline", make_session: Any) -> list[tuple[Path, int]]:
    """Write the output of all sinks to files; return the files with their record counts."""
    from headrace.spark.pipelines.example import EXPECTED_FOLDER
    from headrace.spark.pipelines.fixtures import expected_text

    folder = pipeline.folder / EXPECTED_FOLDER
    known = [file.stem for file in folder.glob("*.jsonl")]
    _refuse_unknown(pipeline, folder, known)
    actual = run_on_fixtures(pipeline, make_session, read_fixtures(pipeline), known)
    written = []
    try:
        folder.mkdir(exist_ok=True)
        for name, entries in sorted(actual.items()):
            file = folder / f"{name}.jsonl"
            file.write_text(expected_text(entries), encoding="utf-8")
            written.append((file, len(entries)))
    except OSError as error:
        raise unwritable(error.filename or folder, error) from None
    return written


def read_fixtures(pipeline: "Pipeline") -> dict[str, list[dict[str, Any]]]:
    """Return the records by topic; every topic that the pipeline reads must have a file."""
    from headrace.core.groups.topic_patterns import NamePattern
    from headrace.spark.pipelines.example import FIXTURES_FOLDER
    from headrace.spark.pipelines.fixtures import read_lines

    folder = pipeline.folder / FIXTURES_FOLDER
    found = {file.stem: read_lines(file) for file in sorted(folder.glob("*.jsonl"))}
    wanted = [topic for source in pipeline.sources for topic in source.topics]
    missing = [f"{folder / topic}.jsonl" for topic in wanted if topic not in found]
    patterns = [source.pattern for source in pipeline.sources if source.pattern is not None]
    matched = {name for pattern in patterns for name in NamePattern(pattern).matching(list(found))}
    if patterns and not matched:
        missing.append(f"{folder}/TOPIC.jsonl for a topic that matches {patterns[0]}")
    if missing:
        raise Failure(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: write the records of the topic "
            'there, one {"key": ..., "value": ...} per line'
        )
    strange = [name for name in found if name not in wanted and name not in matched]
    if strange:
        raise Failure(
            f"{folder / strange[0]}.jsonl names a topic that the pipeline does not read: {guess(strange[0], wanted)}"
        )
    return found


def _refuse_unknown(pipeline: "Pipeline", folder: Path, expected: Iterable[str]) -> None:
    """Refuse a file that belongs to no sink, unless rows name their topic, so that any topic can be a sink."""
    from headrace.spark.pipelines.definition import TopicSink

    known = output_names(pipeline)
    if any(isinstance(sink, TopicSink) and sink.topic_from is not None for sink in pipeline.sinks):
        return
    for name in expected:
        if name not in known:
            raise Failure(f"{folder / name}.jsonl belongs to no sink of the pipeline: {guess(name, known)}")


def output_names(pipeline: "Pipeline") -> list[str]:
    """Return the topics and tables that a pipeline writes, by the names of their files in expected/."""
    from headrace.spark.pipelines.definition_reader import written_topics

    tables = [name for sink in pipeline.sinks if (name := _table_name(sink)) is not None]
    return list(dict.fromkeys([*(topic for _, topic in written_topics(pipeline)), *tables]))


def _table_name(sink: "Sink") -> str | None:
    """Return the name of a sink's table in expected/; None for other sinks."""
    from headrace.spark.pipelines.definition import (
        DatabaseSinkDefinition,
        DeltaSinkDefinition,
        IcebergSinkDefinition,
        ParquetSinkDefinition,
    )

    if isinstance(sink, DatabaseSinkDefinition | IcebergSinkDefinition):
        return sink.table.rpartition(".")[2]
    return Path(sink.path).name if isinstance(sink, ParquetSinkDefinition | DeltaSinkDefinition) else None


def run_on_fixtures(
    pipeline: "Pipeline", make_session: Any, fixtures: Mapping[str, list[dict[str, Any]]], more: Iterable[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """Run the pipeline once; return the output of every sink and the records of the topics `more`."""
    from headrace.spark.pipelines.fixtures import fixture_of
    from headrace.spark.pipelines.records import RunState
    from headrace.spark.pipelines.runner import Runner
    from headrace.testing import EmbeddedBroker

    with tempfile.TemporaryDirectory(prefix="headrace-test-") as folder, EmbeddedBroker() as broker:
        tried = _moved(pipeline, Path(folder))
        for topic, entries in fixtures.items():
            broker.create_topic(topic)
            _send(broker.bootstrap_servers, topic, [fixture_of(entry) for entry in entries])
        runner = Runner(pipeline=tried, bootstrap=broker.bootstrap_servers, make_session=make_session, is_once=True)
        outcome = runner.run()
        if outcome.state is not RunState.DONE:
            raise Failure(f'pipeline "{pipeline.name}" failed on its fixtures: {outcome.message}')
        tables = _tables(tried, make_session())
        names = dict.fromkeys([*output_names(pipeline), *more])
        return {name: tables[name] if name in tables else _read(broker.bootstrap_servers, name) for name in names}


def _moved(pipeline: "Pipeline", folder: Path) -> "Pipeline":
    """Return the same pipeline, with its files in another folder and without retries."""
    from headrace.spark.pipelines.definition import (
        DatabaseSinkDefinition,
        DeltaSinkDefinition,
        IcebergSinkDefinition,
        ParquetSinkDefinition,
        Restart,
    )

    def moved(sink: "Sink") -> "Sink":
        if isinstance(sink, DatabaseSinkDefinition):
            table = sink.table.rpartition(".")[2]
            return replace(sink, database=f"sqlite:///{folder / DATABASE_FILE}", table=table, options={})
        if isinstance(sink, IcebergSinkDefinition):
            catalog = f"sqlite:///{folder / CATALOG_FILE}"
            return replace(sink, catalog=catalog, warehouse=str(folder / "warehouse"), options={})
        if isinstance(sink, ParquetSinkDefinition | DeltaSinkDefinition):
            return replace(sink, path=str(folder / Path(sink.path).name))
        return sink

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
    """Return all committed records of a topic; none if the topic does not exist."""
    from headrace.client.blocking.whole_topics import read_topic
    from headrace.spark.pipelines.fixtures import shown

    records = read_topic({"bootstrap.servers": bootstrap}, topic)
    return [shown(each.key, each.value, each.headers) for each in records]


def _tables(pipeline: "Pipeline", spark: "SparkSession") -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of table sinks, by the last part of their paths."""
    from headrace.spark.pipelines.definition import (
        DatabaseSinkDefinition,
        DeltaSinkDefinition,
        IcebergSinkDefinition,
        ParquetSinkDefinition,
    )

    spark = spark.newSession()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for sink in pipeline.sinks:
        if isinstance(sink, DatabaseSinkDefinition):
            found[sink.table] = [{"value": row} for row in _database_rows(sink)]
            continue
        if isinstance(sink, IcebergSinkDefinition):
            found[sink.table.rpartition(".")[2]] = [{"value": row} for row in _iceberg_rows(sink, spark)]
            continue
        path = Path(getattr(sink, "path", ""))
        if isinstance(sink, ParquetSinkDefinition):
            files = [str(path)] if path.exists() else []
        elif isinstance(sink, DeltaSinkDefinition):
            from deltalake import DeltaTable

            is_table = DeltaTable.is_deltatable(str(path))
            files = [str(path / file) for file in _files(DeltaTable(str(path)))] if is_table else []
        else:
            continue
        found[path.name] = [{"value": row} for row in _rows(spark, path, files)]
    return found


def _iceberg_rows(sink: "IcebergSinkDefinition", spark: "SparkSession") -> list[Any]:
    from pyspark.sql import functions as sql

    from headrace.spark.sink.iceberg.table import CatalogPlace

    place = CatalogPlace.of(sink.catalog, sink.warehouse, {}).below(Path())
    if not place.finds(sink.table):
        return []
    rows = spark.createDataFrame(place.load().load_table(sink.table).scan().to_arrow())
    return [json.loads(row[0]) for row in rows.select(sql.to_json(sql.struct("*"))).collect()]


def _database_rows(sink: "DatabaseSinkDefinition") -> list[Any]:
    from headrace.spark.sink.databases.dialects import dialect_of

    rows = dialect_of(sink.database, {}).read(sink.table)
    return [{name: _shown(value) for name, value in row.items()} for row in rows]


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _rows(spark: "SparkSession", path: Path, files: list[str]) -> list[Any]:
    from pyspark.sql import functions as sql

    if not files:
        return []
    rows = spark.read.option("basePath", str(path)).parquet(*files)
    return [json.loads(row[0]) for row in rows.select(sql.to_json(sql.struct("*"))).collect()]


def _files(table: Any) -> list[str]:
    return [str(uri).rpartition(f"{table.table_uri.rstrip('/')}/")[2] for uri in table.file_uris()]
