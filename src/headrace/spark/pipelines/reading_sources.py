"""Read the sources of a pipeline file: one under `source`, or several by name under `sources`."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from headrace.core.groups.topic_patterns import NamePattern, PatternRefused
from headrace.model.nearest_names import guess
from headrace.spark.pipelines.definition import (
    INPUT_VIEW,
    RECORD_COLUMNS,
    ROWS_PER_BATCH_MAX,
    SOURCES_MAX,
    ReadAs,
    Source,
    SourceFormat,
    UnknownFields,
    Watermark,
)
from headrace.spark.pipelines.durations import parse_duration
from headrace.spark.pipelines.nodes import YamlSection
from headrace.spark.pipelines.reading_options import source_options
from headrace.spark.pipelines.reading_values import start_of, topic_name, view_name
from headrace.spark.schema_text import SchemaField, parse_schema

SCHEMAS_MAX = 200
"""Schemas that sources can share."""

Fields = tuple[SchemaField, ...]
Schemas = Mapping[str, Fields]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def read_sources(root: YamlSection) -> tuple[Source, ...]:
    single, named = root.section("source"), root.named_sections("sources", most=SOURCES_MAX)
    if single is not None and named:
        root.wrong("sources", "source is given as well: move it here, with a name")
    if single is None and not named and "source" not in root and "sources" not in root:
        root.missing("source", "source: {topic: orders, format: json, schema: id STRING}")
    if root.kind("sources") == "mapping" and not named:
        root.wrong("sources", "there is none: add one, as in `orders: {topic: orders}`")
    sections = {INPUT_VIEW: single} if single is not None else named
    schemas = _schemas(root)
    found = tuple(_source(name, section, schemas) for name, section in sections.items())
    if found and all(source.read_as is ReadAs.TABLE for source in found):
        root.wrong("source" if single is not None else "sources", "at least one source must be read as a stream")
    return found


def _schemas(root: YamlSection) -> Schemas:
    """Return the schemas that sources can refer to by their names."""
    section = root.section("schemas")
    if section is None:
        return {}
    if len(section.keys) > SCHEMAS_MAX:
        root.wrong("schemas", f"{len(section.keys)} are too many: the limit is {SCHEMAS_MAX}")
    return {name: _schema(section, name) for name in section.keys[:SCHEMAS_MAX]}


def _source(name: str, section: YamlSection, schemas: Schemas) -> Source:
    try:
        view_name(name)
    except ValueError as error:
        section.findings.add_at(section.place, str(error))
    topics, pattern = _what(section)
    form = section.choice("format", SourceFormat, SourceFormat.BINARY)
    fields = _fields(section, form, schemas)
    columns = _columns(section, fields, form)
    watermark = _watermark(section, fields, columns if form is SourceFormat.JSON else RECORD_COLUMNS)
    source = Source(
        name=name,
        topics=topics,
        pattern=pattern,
        format=form,
        fields=fields,
        columns=columns,
        unknown_fields=section.choice("unknown_fields", UnknownFields, UnknownFields.ALLOW),
        start=section.parsed("start", start_of) or "earliest",
        rows_per_batch=section.integer("rows_per_batch", least=1, most=ROWS_PER_BATCH_MAX),
        watermark=watermark,
        read_as=section.choice("read_as", ReadAs, ReadAs.STREAM),
        options=source_options(section),
    )
    section.finish()
    _contradictions(section, source)
    return source


def _what(section: YamlSection) -> tuple[tuple[str, ...], str | None]:
    """Return the topics, or the pattern of their names."""
    given = [key for key in ("topic", "topics", "pattern") if key in section]
    if not given:
        section.missing("topic", "topic: orders")
    for key in given[1:]:
        section.wrong(key, f"{given[0]} is given as well: keep one of the two")
    single = section.parsed("topic", topic_name)
    topics = []
    for text in section.texts("topics"):
        try:
            topics.append(topic_name(text))
        except ValueError as error:
            section.wrong("topics", str(error))
    return ((single,) if single else tuple(topics)), section.parsed("pattern", _pattern)


def _pattern(text: str) -> str:
    """Return the pattern; it is checked by the engine that will match it, which supports less than Python's."""
    try:
        NamePattern(text)
    except PatternRefused as error:
        raise ValueError(f'"{text}" is not a valid pattern of topics: {error}') from None
    return text


def _schema(section: YamlSection, key: str, schemas: Schemas = MappingProxyType({})) -> Fields:
    """Return a schema, written as one text, as a mapping of names to types, or as the name of a shared schema."""
    if section.kind(key) != "mapping":
        return section.parsed(key, lambda text: _named_or_parsed(text, schemas)) or ()
    pairs = section.pairs(key)
    found: list[SchemaField] = []
    for name, kind in pairs.items():
        try:
            found.extend(parse_schema(f"`{name}` {kind}"))
        except ValueError as error:
            section.wrong(f"{key}.{name}", str(error))
    if not pairs:
        section.wrong(key, "there is no field: add one, as in `id: STRING`")
    return tuple(found)


def _named_or_parsed(text: str, schemas: Schemas) -> Fields:
    """A single word cannot be a schema, which has a name and a type for each field, so it is the name of one."""
    word = text.strip()
    if not schemas or not _NAME.fullmatch(word):
        return parse_schema(text)
    if word not in schemas:
        raise ValueError(f'there is no schema "{word}": {guess(word, schemas)}')
    return schemas[word]


def _fields(section: YamlSection, form: SourceFormat, schemas: Schemas) -> Fields:
    fields = _schema(section, "schema", schemas)
    if form is SourceFormat.JSON and "schema" not in section:
        section.missing("schema", "schema: id STRING NOT NULL, amount DOUBLE")
    if form is not SourceFormat.JSON and fields:
        section.wrong("schema", f"format {form} has no schema: choose json, or leave this out")
    return fields


def _columns(section: YamlSection, fields: Fields, form: SourceFormat) -> tuple[str, ...]:
    """Return the columns of the record that are wanted beside the fields."""
    found = section.texts("columns")
    if found and form is not SourceFormat.JSON:
        section.wrong("columns", f"format {form} already has all columns of the record: leave this out")
    for name in found:
        if name not in RECORD_COLUMNS:
            section.wrong("columns", f'a record has no column "{name}": {guess(name, RECORD_COLUMNS)}')
        if name in {field.name for field in fields}:
            section.wrong("columns", f'"{name}" is already a field of the schema')
    return found


def _watermark(section: YamlSection, fields: Fields, columns: tuple[str, ...]) -> Watermark | None:
    inner = section.section("watermark")
    if inner is None:
        return None
    column, delay_ms = inner.text("column"), inner.parsed("delay", parse_duration)
    window_ms, session_ms = inner.parsed("window", parse_duration), inner.parsed("session", parse_duration)
    inner.finish()
    if column is None:
        inner.missing("column", "column: at")
    if delay_ms is None and "delay" not in inner:
        inner.missing("delay", "delay: 10 minutes")
    if window_ms is not None and session_ms is not None:
        inner.wrong("session", "window is given as well: keep the one that the transform uses")
    if window_ms == 0:
        inner.wrong("window", "a window needs a length")
    known = {field.name for field in fields} | set(columns)
    schema_is_read = bool(fields) or "schema" not in section
    if column is not None and column not in known and schema_is_read:
        inner.wrong("column", f'the source has no column "{column}": {guess(column, known)}')
    types = {field.name: field.type for field in fields}
    if column in types and not types[column].startswith("timestamp"):
        inner.wrong("column", f'"{column}" is {types[column]}: a watermark needs a TIMESTAMP')
    if column is None or delay_ms is None:
        return None
    return Watermark(column=column, delay_ms=delay_ms, window_ms=window_ms, session_ms=session_ms)


def _contradictions(section: YamlSection, source: Source) -> None:
    if source.read_as is ReadAs.TABLE:
        for key in ("watermark", "rows_per_batch", "start"):
            if key in section:
                section.wrong(key, "a table is always read completely: leave this out, or read it as a stream")
    if source.format is not SourceFormat.JSON and source.unknown_fields is not UnknownFields.ALLOW:
        section.wrong("unknown_fields", f"format {source.format} has no fields")
