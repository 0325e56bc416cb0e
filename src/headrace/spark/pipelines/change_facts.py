"""Gather the facts on which a plan of changes depends: the checkpoint, the topics of the cluster, the tables."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.client import Admin
from headrace.spark.pipelines.change_plan import Facts, TableFacts, table_name_of, table_names
from headrace.spark.pipelines.checkpoints import Checkpoint
from headrace.spark.pipelines.compiler import compile_pipeline
from headrace.spark.pipelines.definition import (
    DatabaseSinkDefinition,
    DeltaSinkDefinition,
    IcebergSinkDefinition,
    ParquetSinkDefinition,
    Pipeline,
)
from headrace.spark.pipelines.sessions import own_session
from headrace.spark.pipelines.topics import needs_headers, stream_of
from headrace.spark.sink.databases.dialects import dialect_of
from headrace.spark.sink.iceberg.table import CatalogPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def gather_facts(admin: Admin, pipeline: Pipeline) -> Facts:
    checkpoint = Checkpoint(pipeline.checkpoint)
    note = checkpoint.note()
    last = next(iter(checkpoint.batches(note.generation, 1)), None)
    tables = [sink for sink in pipeline.sinks if isinstance(sink, ParquetSinkDefinition | DeltaSinkDefinition)]
    kinds = {sink.path: isinstance(sink, DeltaSinkDefinition) for sink in tables}
    paths = [*kinds, *table_names(note.texts)]
    found: dict[str, TableFacts | None] = {}
    found |= {path: _table(pipeline.folder / path, is_delta=kinds.get(path, False)) for path in paths}
    for sink in pipeline.sinks:
        if isinstance(sink, DatabaseSinkDefinition | IcebergSinkDefinition):
            found[table_name_of(sink)] = _table_of_catalog(sink, pipeline)
    return Facts(
        note=note,
        last_batch=None if last is None else last.number,
        is_finished=last is None or last.is_committed,
        topics={topic.name: len(topic.partitions) for topic in admin.topics()},
        tables={path: facts for path, facts in found.items() if facts is not None},
    )


def keeps_state(make_session: Callable[[], "SparkSession"], pipeline: Pipeline, bootstrap: str) -> bool:
    """Return whether Spark finds that the transform keeps state; DefinitionError if it refuses the transform."""
    spark = own_session(make_session(), pipeline)
    read = stream_of(spark, pipeline, bootstrap=bootstrap, starts={}, with_headers=needs_headers(pipeline))
    return bool(compile_pipeline(spark, pipeline, read).operators)


def _table(path: Path, *, is_delta: bool) -> TableFacts | None:
    if is_delta:
        return _delta_table(path)
    if not path.is_dir():
        return None
    try:
        from headrace.spark.sink.tables.folder_columns import noted_partition_columns
    except ImportError:  # Spark is not installed here
        return TableFacts(None)
    return TableFacts(noted_partition_columns(str(path)))


def _table_of_catalog(sink: DatabaseSinkDefinition | IcebergSinkDefinition, pipeline: Pipeline) -> TableFacts | None:
    try:
        if isinstance(sink, DatabaseSinkDefinition):
            is_there = dialect_of(sink.database, sink.options).below(pipeline.folder).finds(sink.table)
        else:
            place = CatalogPlace.of(sink.catalog, sink.warehouse, sink.options)
            is_there = place.below(pipeline.folder).finds(sink.table)
    except Exception as error:  # of the libraries of the databases
        said = pipeline.secrets.hide(str(error)).partition("\n")[0]
        return TableFacts(None, f"the database cannot be reached: {said}")
    return TableFacts(None) if is_there else None


def _delta_table(path: Path) -> TableFacts | None:
    if not (path / "_delta_log").is_dir():
        return None
    try:
        from deltalake import DeltaTable
    except ImportError:
        return TableFacts(None)
    return TableFacts(tuple(DeltaTable(path).metadata().partition_columns))
