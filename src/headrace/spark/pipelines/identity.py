"""The parts of a definition on which its checkpoint depends, and the changes with which a checkpoint can continue."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass

from headrace.spark.pipelines.definition import Pipeline, Source
from headrace.spark.pipelines.nodes import read_text
from headrace.spark.pipelines.source_rows import routes_rejected

DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionIdentity:
    """The parts of a definition that are stored beside a checkpoint, each in a form that is equal when nothing
    changed.
    """

    name: str
    sources: tuple[str, ...]
    """The sources: views, topics and how they are read, in order. Spark finds the offsets of a source by its
    position.
    """
    shapes: tuple[str, ...]
    """The rows of each source: format, fields and watermark."""
    transform: str
    is_stateful: bool
    """True if rows are kept from batch to batch: only then does the checkpoint depend on shapes and transform."""


def identity_of(pipeline: Pipeline, *, is_stateful: bool) -> DefinitionIdentity:
    return DefinitionIdentity(
        name=pipeline.name,
        sources=tuple(_source_text(pipeline, source) for source in pipeline.sources),
        shapes=tuple(map(_shape_text, pipeline.sources)),
        transform=_transform_text(pipeline),
        is_stateful=is_stateful,
    )


def digest(identity: DefinitionIdentity) -> str:
    """Return the hash that is published in progress records and stored beside the checkpoint."""
    text = json.dumps(asdict(identity), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def incompatibilities(old: DefinitionIdentity, new: DefinitionIdentity) -> tuple[str, ...]:
    """Return why the new definition cannot continue from a checkpoint of the old one; empty if it can."""
    found = []
    if old.name != new.name:
        found.append(f'the checkpoint belongs to pipeline "{old.name}", not "{new.name}"')
    if old.sources != new.sources:
        found.append(f"the sources changed from {_listed(old.sources)} to {_listed(new.sources)}")
    if old.is_stateful or new.is_stateful:
        if old.shapes != new.shapes:
            found.append("the schema or the watermark of a source changed, and the transform keeps state")
        if old.transform != new.transform:
            found.append("the transform changed, and it keeps state that the old one created")
    return tuple(found)


def _listed(texts: tuple[str, ...]) -> str:
    return "; ".join(texts)


def _source_text(pipeline: Pipeline, source: Source) -> str:
    what = f"pattern {source.pattern}" if source.pattern is not None else f"topics {', '.join(source.topics)}"
    # Spark logs the offsets a second time for the branch of the dead letters.
    letters = ", with dead letters" if routes_rejected(pipeline, source) else ""
    return f"{source.name} = {what} as {source.read_as}{letters}"


def _shape_text(source: Source) -> str:
    fields = ", ".join(f"{each.name} {each.type}{' not null' if each.is_required else ''}" for each in source.fields)
    mark = source.watermark
    late = f" watermark {mark.column} {mark.delay_ms}" if mark is not None else ""
    return f"{source.format}({fields}){late}"


def _transform_text(pipeline: Pipeline) -> str:
    """Return the transform; comments and white space of SQL do not matter, but a Python file is compared byte by
    byte.
    """
    transform = pipeline.transform
    parts = []
    if transform.sql is not None:
        parts.append(_squeezed(transform.sql))
    if transform.python is not None:
        source = read_text(transform.python.file)
        parts.append(f"{transform.python.function} {hashlib.sha256(source.encode()).hexdigest()[:DIGEST_LENGTH]}")
    return " | ".join(parts)


def _squeezed(sql: str) -> str:
    """Remove comments and collapse white space outside of quotes."""
    pieces = re.split(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)", sql)
    plain = [re.sub(r"\s+", " ", re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)) for text in pieces[::2]]
    quoted = [*pieces[1::2], ""]
    return "".join(text + quote for text, quote in zip(plain, quoted, strict=True)).strip()
