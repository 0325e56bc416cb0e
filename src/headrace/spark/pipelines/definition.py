"""The typed form of a `pipeline.yml`, which everything else works on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from headrace.spark.pipelines.problems import Place, Problem
from headrace.spark.pipelines.secret_texts import Secrets
from headrace.spark.schema_text import SchemaField

RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
"""The columns of a record before its value is parsed."""

PIPELINE_FILE = "pipeline.yml"

INPUT_VIEW = "input"
"""The view name of the only source in a transform."""

NAME_LENGTH_MAX = 100
SOURCES_MAX = 8
SINKS_MAX = 8
EXPECTATIONS_MAX = 100
ATTEMPTS_MAX = 1_000
ROWS_PER_BATCH_MAX = 100_000_000
PARTITIONS_MAX = 100_000
"""Partitions of a topic that a pipeline creates; the broker may allow fewer."""


class SourceFormat(StrEnum):
    JSON = "json"
    STRING = "string"
    BINARY = "binary"


class ReadAs(StrEnum):
    STREAM = "stream"
    TABLE = "table"
    """The newest row of every key, read again for each batch: the content of a compacted topic."""


class UnknownFields(StrEnum):
    """The action for a JSON record with fields that the schema does not have."""

    ALLOW = "allow"
    WARN = "warn"
    REJECT = "reject"


class ExpectationAction(StrEnum):
    """The action for a row that violates an expectation."""

    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"


class CheckedRows(StrEnum):
    """The rows that an expectation checks: those of the source, or those of the transform."""

    INPUT = "input"
    OUTPUT = "output"


class BadRecordAction(StrEnum):
    DEAD_LETTER = "dead_letter"
    DROP = "drop"
    FAIL = "fail"


class DeliveryGuarantee(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class WriteMode(StrEnum):
    APPEND = "append"
    UPSERT = "upsert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    column: str
    delay_ms: int
    window_ms: int | None = None
    """Length of the windows of the transform: a row is late when its window is closed, not when it is old."""
    session_ms: int | None = None
    """The gap after which a session ends, if the transform uses sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    name: str
    """Name of the view that the transform reads."""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    format: SourceFormat = SourceFormat.BINARY
    fields: tuple[SchemaField, ...] = ()
    columns: tuple[str, ...] = ()
    """Columns of the record itself, beside the fields of its JSON value: key, timestamp and so on."""
    unknown_fields: UnknownFields = UnknownFields.ALLOW
    start: str = "earliest"
    """earliest, latest, or milliseconds since 1970."""
    rows_per_batch: int | None = None
    watermark: Watermark | None = None
    read_as: ReadAs = ReadAs.STREAM
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


class PythonFunction(NamedTuple):
    file: Path
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    sql: str | None = None
    sql_file: Path | None = None
    """The file that contains the text, if not the pipeline file itself."""
    python: PythonFunction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    name: str
    check: str
    action: ExpectationAction
    checked_rows: CheckedRows
    quarantine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecords:
    action: BadRecordAction = BadRecordAction.FAIL
    topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSink:
    name: str
    topic: str | None
    topic_from: str | None = None
    topics: tuple[str, ...] = ()
    """Topics that `topic_from` may name, so that they can be created before the first row."""
    key: str | None = None
    value: str | None = None
    """A SQL expression; None: all columns as a JSON object."""
    headers: str | None = None
    partition: str | None = None
    delivery: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE
    partitions: int | None = None
    """Partitions of the topics that are created for this sink; None: the broker's default."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Configs of those topics."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def named_topics(self) -> tuple[str, ...]:
        return (self.topic, *self.topics) if self.topic is not None else self.topics


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSinkDefinition:
    name: str
    path: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSinkDefinition:
    name: str
    path: str
    mode: WriteMode = WriteMode.APPEND
    keys: tuple[str, ...] = ()
    order_by: str | None = None
    """The column that decides which of several rows with one key is the newest."""
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSinkDefinition:
    name: str
    database: str
    """The URL of a database."""
    table: str
    mode: WriteMode = WriteMode.APPEND
    keys: tuple[str, ...] = ()
    order_by: str | None = None
    """The column that decides which of several rows with one key is the newest."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSinkDefinition:
    name: str
    table: str
    """The namespace and the name."""
    catalog: str
    """The URL of the catalog."""
    warehouse: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSink:
    name: str
    rows: int = 20


TableSink = ParquetSinkDefinition | DeltaSinkDefinition | DatabaseSinkDefinition | IcebergSinkDefinition
Sink = TopicSink | TableSink | ConsoleSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    interval_ms: int | None
    """None: process all existing records, then end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    attempts: int = 3
    backoff_ms: int = 5_000
    window_ms: int = 3_600_000
    """Attempts are counted within this time: a job of months may fail now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    file: Path
    name: str
    bootstrap: str | None
    sources: tuple[Source, ...]
    transform: Transform
    expectations: tuple[Expectation, ...]
    bad_records: BadRecords
    sinks: tuple[Sink, ...]
    trigger: Trigger
    checkpoint: Path
    restart: Restart
    spark: Engine
    environment: str | None = None
    secrets: Secrets = field(default_factory=Secrets, compare=False)
    """The secrets that the file refers to, which must not be shown."""
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)
    """The file and line of every key, by its path such as `sinks[0].topic`; for multi-line text the line in which it
    begins.
    """
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The text of every key that has one, by its path; secrets are references."""

    @property
    def folder(self) -> Path:
        return self.file.parent

    def place_of(self, *paths: str) -> Place:
        """Return the place of the first of these keys that the file has."""
        return next((self.places[path] for path in paths if path in self.places), Place(self.file, 0))

    def problem(self, path: str, text: str, *, below: int = 0) -> Problem:
        """Return a problem of the text under a key, or of a line below its beginning."""
        place = self.place_of(path).below(below)
        return Problem(place.file, place.line, f"{path}: {text}")
