"""What of a definition its checkpoint depends on: which changes go on from an old checkpoint, and which cannot."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass

from headrace.spark.pipelines.definition import Pipeline, Source
from headrace.spark.pipelines.nodes import read_text
from headrace.spark.pipelines.source_rows import routes_rejected

DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The parts of a definition that lie beside a checkpoint, each in a form that is equal when nothing changed."""

    name: str
    sources: tuple[str, ...]
    """What is read: views, topics and how, in order. Spark finds the offsets of a source by its place."""
    shapes: tuple[str, ...]
    """What the rows of each source are: format, fields and watermark."""
    transform: str
    is_stateful: bool
    """Whether rows are kept from batch to batch: only then the checkpoint depends on shapes and transform."""


def identity_of(pipeline: Pipeline, *, is_stateful: bool) -> Identity:
    return Identity(
        name=pipeline.name,
        sources=tuple(_source_text(pipeline, source) for source in pipeline.sources),
        shapes=tuple(map(_shape_text, pipeline.sources)),
        transform=_transform_text(pipeline),
        is_stateful=is_stateful,
    )


def digest(identity: Identity) -> str:
    """The hash that is told in progress records and beside the checkpoint."""
    text = json.dumps(asdict(identity), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def incompatibilities(old: Identity, new: Identity) -> tuple[str, ...]:
    """Why a query of the new definition cannot go on from a checkpoint of the old one; empty if it can."""
    found = []
    if old.name != new.name:
        found.append(f'the checkpoint is of pipeline "{old.name}", not "{new.name}"')
    if old.sources != new.sources:
        found.append(f"the sources changed from {_listed(old.sources)} to {_listed(new.sources)}")
    if old.is_stateful or new.is_stateful:
        if old.shapes != new.shapes:
            found.append("the schema or the watermark of a source changed, and the transform keeps state")
        if old.transform != new.transform:
            found.append("the transform changed, and it keeps state that was made by the old one")
    return tuple(found)


def _listed(texts: tuple[str, ...]) -> str:
    return "; ".join(texts)


def _source_text(pipeline: Pipeline, source: Source) -> str:
    what = f"pattern {source.pattern}" if source.pattern is not None else f"topics {', '.join(source.topics)}"
    # Spark notes its offsets a second time for the branch of the letters.
    letters = ", with dead letters" if routes_rejected(pipeline, source) else ""
    return f"{source.name} = {what} as {source.read_as}{letters}"


def _shape_text(source: Source) -> str:
    fields = ", ".join(f"{each.name} {each.type}{' not null' if each.is_required else ''}" for each in source.fields)
    mark = source.watermark
    late = f" watermark {mark.column} {mark.delay_ms}" if mark is not None else ""
    return f"{source.format}({fields}){late}"


def _transform_text(pipeline: Pipeline) -> str:
    """Comments and white space of SQL do not matter; a Python file is the same only byte for byte."""
    transform = pipeline.transform
    parts = []
    if transform.sql is not None:
        parts.append(_squeezed(transform.sql))
    if transform.python is not None:
        source = read_text(transform.python.file)
        parts.append(f"{transform.python.function} {hashlib.sha256(source.encode()).hexdigest()[:DIGEST_LENGTH]}")
    return " | ".join(parts)


def _squeezed(sql: str) -> str:
    """Outside of quotes, comments become nothing and white space one blank."""
    pieces = re.split(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)", sql)
    plain = [re.sub(r"\s+", " ", re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)) for text in pieces[::2]]
    quoted = [*pieces[1::2], ""]
    return "".join(text + quote for text, quote in zip(plain, quoted, strict=True)).strip()
